//! A service that decides by a policy.

use std::net::SocketAddr;
use std::{fs, future};

use tempfile::NamedTempFile;
use tokio::runtime::{Builder, Runtime};
use tollgate_server::{Server, Settings};

use super::Client;

/// A service in threads of its own. It is killed when it is dropped.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
    _file: NamedTempFile,
}

impl Service {
    pub(crate) fn start(policy: &str) -> Self {
        Self::start_with(policy, |_| {})
    }

    pub(crate) fn start_with(policy: &str, set: impl FnOnce(&mut Settings)) -> Self {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        fs::write(file.path(), policy).unwrap();
        let mut settings = Settings::default();
        settings.policy = Some(file.path().to_owned());
        settings.watch = false;
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.admin = None;
        set(&mut settings);
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        // Tests are in a runtime, where another one can't wait.
        let handle = runtime.handle().clone();
        let server = std::thread::spawn(move || handle.block_on(Server::bind(settings)));
        let server = server.join().unwrap().unwrap();
        let address = server.address();
        runtime.spawn(server.run(future::pending()));
        let runtime = Some(runtime);
        Self {
            address,
            runtime,
            _file: file,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Ends the service at once, with all of its connections.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
