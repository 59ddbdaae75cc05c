//! A private server, stopped when it is dropped.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::script;

/// The servers that the tests run on, by the variables that name their programs.
pub(super) const SERVERS: [(&str, &str); 2] = [
    ("TOLLGATE_REDIS_SERVER", "redis-server"),
    ("TOLLGATE_VALKEY_SERVER", "valkey-server"),
];

pub(super) struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts a server on a socket in a folder of its own, so that no port can be in use.
    fn start(program: &str) -> Option<Self> {
        // A thread has one server at a time.
        let name = format!("tollgate-{}-{:?}", process::id(), thread::current().id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for the server");
        let mut command = Command::new(program);
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--unixsocket").arg(socket(&folder));
        command.arg("--dir").arg(&folder);
        match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => Some(Self { child, folder }),
            Err(_) => {
                let _ = fs::remove_dir_all(&folder);
                None
            }
        }
    }

    pub(super) fn connect(&self) -> redis::Connection {
        let url = format!("unix://{}", socket(&self.folder).display());
        let client = redis::Client::open(url).expect("an address");
        let start = Instant::now();
        loop {
            match client.get_connection() {
                Ok(connection) => return connection,
                Err(error) if start.elapsed() > Duration::from_secs(30) => panic!("{error}"),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

/// Runs a test on each server that this machine has.
pub(super) fn on_each_server(test: impl Fn(&mut redis::Connection)) {
    for (variable, usual) in SERVERS {
        let program = env::var(variable).unwrap_or_else(|_| usual.to_owned());
        match Server::start(&program) {
            Some(server) => {
                let mut connection = server.connect();
                for script in script::all() {
                    let load = redis::cmd("SCRIPT")
                        .arg("LOAD")
                        .arg(script.controlled())
                        .exec(&mut connection);
                    load.expect("the script has no error of syntax");
                }
                test(&mut connection);
            }
            None => println!("skipped: {program} can't be started; {variable} can name another"),
        }
    }
}
