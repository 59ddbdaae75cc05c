//! The service.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate_server::{Server, Settings};

/// A service that ends with the test.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Service {
    /// Serves a policy.
    pub(crate) async fn start(policy: &str) -> Self {
        Self::start_at(policy, (Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Serves a policy at an address that no other socket uses, so that a later service can have
    /// its port too.
    pub(crate) async fn start_alone(policy: &str) -> Self {
        static COUNT: AtomicU8 = AtomicU8::new(1);
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, COUNT.fetch_add(1, Relaxed), high, low);
        Self::start_at(policy, (address, 0).into()).await
    }

    pub(crate) async fn start_at(policy: &str, address: SocketAddr) -> Self {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        fs::write(file.path(), policy).unwrap();
        let mut settings = Settings::default();
        settings.policy = Some(file.path().to_owned());
        settings.watch = false;
        settings.listen = address;
        settings.admin = None;
        let server = Server::bind(settings).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            address: server.address(),
            stop: Some(stop),
            serving: tokio::spawn(server.run(async { drop(stopped.await) })),
        }
    }

    /// Ends the service, and waits until it has ended.
    pub(crate) async fn end(&mut self) {
        drop(self.stop.take());
        (&mut self.serving).await.unwrap();
    }
}
