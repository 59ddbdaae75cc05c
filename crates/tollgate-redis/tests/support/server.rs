//! Private servers for tests. Each is stopped when it is dropped, also by a test that panics.
//!
//! A server listens on a socket in a folder of its own, so no port can be in use, and a server that
//! is started again has the same address. [`Server::with_port`] adds a port of the loopback
//! address, for what sockets can't do: clusters.

use std::env;
use std::fs;
use std::net::TcpListener;
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
    port: Option<u16>,
    /// The port for the other nodes of a cluster.
    bus: Option<u16>,
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
            port: None,
            bus: None,
            child: None,
        }
    }

    /// Returns a server that is not started, and will listen on a free port too.
    pub(crate) fn with_port(program: &str) -> Self {
        let mut server = Self::new(program);
        server.port = Some(free_port());
        server
    }

    /// Returns a node of a cluster that is not started, with two ports.
    pub(crate) fn with_bus(program: &str) -> Self {
        let mut server = Self::with_port(program);
        server.bus = Some(free_port());
        server
    }

    /// Returns another server of the same program, which is not started.
    pub(crate) fn another(&self) -> Self {
        match self.port {
            Some(_) => Self::with_port(&self.program),
            None => Self::new(&self.program),
        }
    }

    /// Starts the server. With `keeps_data` it writes each change to its folder, and finds them
    /// when it is started again.
    pub(crate) fn start(&mut self, keeps_data: bool) {
        self.start_with(&["--appendonly", if keeps_data { "yes" } else { "no" }]);
    }

    /// Starts the server with more arguments, and waits until it answers.
    pub(crate) fn start_with(&mut self, arguments: &[&str]) {
        // The ports may be in use by now.
        for _ in 0..10 {
            self.spawn(arguments);
            if self.connect().is_some() {
                return;
            }
            self.kill();
            self.port = self.port.map(|_| free_port());
            self.bus = self.bus.map(|_| free_port());
        }
        panic!("{} does not start with {arguments:?}", self.program);
    }

    fn spawn(&mut self, arguments: &[&str]) {
        let mut command = Command::new(&self.program);
        command.args(["--save", "", "--appendfsync", "always"]);
        command.args(["--bind", "127.0.0.1"]);
        command.args(["--port", &self.port.unwrap_or(0).to_string()]);
        if let Some(bus) = self.bus {
            command.args(["--cluster-port", &bus.to_string()]);
        }
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(&self.folder);
        command.args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("the server starts"));
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
        let mut connection = self.connection();
        packed.query(&mut connection).expect("the server answers")
    }

    /// Returns a number that `INFO` has under this name, or 0.
    pub(crate) fn info(&self, name: &str) -> u64 {
        let info: String = self.run("INFO everything");
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(found, _)| *found == name);
        found.map_or(0, |(_, value)| value.parse().expect("a number"))
    }

    /// Returns how many commands of this name the server has run, and how many of them failed.
    fn command(&self, name: &str) -> (u64, u64) {
        let info: String = self.run("INFO commandstats");
        let start = format!("cmdstat_{name}:");
        let line = info.lines().find_map(|line| line.strip_prefix(&start));
        let fields = || line.into_iter().flat_map(|line| line.split(','));
        let field = |wanted| {
            let mut fields = fields().filter_map(|field| field.split_once('='));
            let found = fields.find(|(name, _)| *name == wanted);
            found.map_or(0, |(_, value)| value.parse().expect("a number"))
        };
        (field("calls"), field("failed_calls"))
    }

    /// Returns how many commands of this name the server has run.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        self.command(command).0
    }

    /// Returns how many values the scripts of buckets and windows have written.
    pub(crate) fn writes(&self) -> u64 {
        self.calls("set") + self.calls("psetex")
    }

    /// Returns how many scripts the server has run to their end.
    pub(crate) fn scripts(&self) -> u64 {
        let done = |(calls, failed)| calls - failed;
        done(self.command("evalsha")) + done(self.command("eval"))
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the URL of the server's socket.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Returns the port of a server that was created with one.
    pub(crate) fn port(&self) -> u16 {
        self.port.expect("a server with a port")
    }

    /// Returns the port for the other nodes of a cluster.
    pub(crate) fn bus(&self) -> u16 {
        self.bus.expect("a node of a cluster")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Returns a connection to the server, which runs.
    pub(crate) fn connection(&self) -> redis::Connection {
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

    /// Waits until the server answers, and returns `None` if it ends instead.
    fn connect(&mut self) -> Option<()> {
        let client = redis::Client::open(self.url()).expect("an address");
        let child = self.child.as_mut().expect("the server was started");
        let start = Instant::now();
        loop {
            if child.try_wait().expect("a status").is_some() {
                return None;
            }
            match client.get_connection() {
                Ok(mut connection) => {
                    // It may still read its data.
                    if redis::cmd("PING").exec(&mut connection).is_ok() {
                        return Some(());
                    }
                }
                Err(error) if start.elapsed() > DEADLINE => panic!("{error}"),
                Err(_) => {}
            }
            thread::sleep(Duration::from_millis(5));
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

/// Returns a port of the loopback address that nothing uses now. It lies below the ports that
/// systems give to clients (32768 and above), so that no client takes it before the server does.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 20_000;
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..PORTS {
        *last += 1;
        // Processes at the same time begin at ports that are far apart.
        let port = FIRST + process::id().wrapping_mul(101).wrapping_add(*last) % PORTS;
        let port = u16::try_from(port).expect("a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

/// Runs a test on each program that this machine has.
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
