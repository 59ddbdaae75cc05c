//! A proxy's process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::program::find;

/// A proxy in a folder of its own. It is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Process {
    /// Starts a program and waits until it listens. `configure` writes into the folder, and returns
    /// the arguments. `None` if the program is not installed.
    pub(crate) fn start(
        name: &'static str,
        configure: impl Fn(&Path, SocketAddr) -> Vec<String>,
    ) -> Option<Self> {
        let program = find(name)?;
        // Another program can take the port before the proxy does.
        for _ in 0..10 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let folder = tempfile::tempdir().unwrap();
            let log = std::fs::File::create(folder.path().join("log")).unwrap();
            let mut command = Command::new(&program);
            command.args(configure(folder.path(), address));
            command
                .current_dir(folder.path())
                .env("HOME", folder.path())
                .env("XDG_DATA_HOME", folder.path())
                .env("XDG_CONFIG_HOME", folder.path())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .stdin(Stdio::null());
            let mut process = Self {
                child: command.spawn().unwrap(),
                name,
                address,
                folder,
            };
            if process.listens() {
                return Some(process);
            }
            println!("{}", process.log());
        }
        panic!("{program:?} does not start");
    }

    /// Waits until the process listens, or has ended.
    fn listens(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                // It may be another program's port: the proxy has ended in that case.
                return self.child.try_wait().unwrap().is_none();
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Returns what the process has said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
