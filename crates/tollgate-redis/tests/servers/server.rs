//! A private server, stopped when it is dropped, also by a test that panics.
//!
//! It listens on a socket in a folder of its own, so no port can be in use, and a server that is
//! started again has the same address.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The servers that the tests run on, by the variables that name their programs.
const SERVERS: [(&str, &str); 2] = [
    ("TOLLGATE_REDIS_SERVER", "redis-server"),
    ("TOLLGATE_VALKEY_SERVER", "valkey-server"),
];

/// The longest that a test waits for a condition.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Server {
    program: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl Server {
    /// Returns a server that is not started.
    pub(crate) fn new(program: &str) -> Self {
        static LAST: Mutex<u64> = Mutex::new(0);
        let number = {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            *last += 1;
            *last
        };
        let name = format!("tollgate-server-{}-{number}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for the server");
        Self {
            program: program.to_owned(),
            folder,
            child: None,
        }
    }

    /// Starts the server. With `keeps_data` it writes each change to its folder, and finds them
    /// when it is started again.
    pub(crate) fn start(&mut self, keeps_data: bool) {
        let mut command = Command::new(&self.program);
        command.args(["--port", "0", "--save", "", "--appendfsync", "always"]);
        command.args(["--appendonly", if keeps_data { "yes" } else { "no" }]);
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(&self.folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("the server starts"));
        self.connect();
    }

    /// Kills the server as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the server is killed");
            child.wait().expect("the server has ended");
        }
    }

    /// Sends a signal, such as `STOP` or `CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("the server runs");
        let mut command = Command::new("kill");
        command
            .arg(format!("-{signal}"))
            .arg(child.id().to_string());
        assert!(command.status().expect("kill runs").success());
    }

    /// Runs one command, whose words are separated by spaces.
    pub(crate) fn run<T: redis::FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut packed = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            packed.arg(word);
        }
        packed
            .query(&mut self.connect())
            .expect("the server answers")
    }

    /// Returns how many commands of this name the server has run.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let info: String = self.run("INFO commandstats");
        let start = format!("cmdstat_{command}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|line| line.split(',').next()?.parse().ok())
            .unwrap_or(0)
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("an address");
        let start = Instant::now();
        loop {
            match client.get_connection() {
                Ok(connection) => return connection,
                Err(error) if start.elapsed() > DEADLINE => panic!("{error}"),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a test on each server that this machine has.
pub(crate) fn on_each_server(test: impl Fn(Server)) {
    for (variable, usual) in SERVERS {
        let program = env::var(variable).unwrap_or_else(|_| usual.to_owned());
        let mut version = Command::new(&program);
        version.arg("--version").stdout(Stdio::null());
        match version.status() {
            Ok(_) => test(Server::new(&program)),
            Err(_) => println!("skipped: {program} can't be started; {variable} can name another"),
        }
    }
}
