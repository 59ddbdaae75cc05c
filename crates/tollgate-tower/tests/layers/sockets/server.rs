//! Servers that a test starts and stops.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server. The function gets its listener, and a future that ends when it has to stop.
    pub(crate) async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
    ) -> Self {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            address,
            stop,
            task: tokio::spawn(serve(listener, stopped)),
        }
    }

    /// Starts a server of axum.
    pub(crate) async fn axum(router: Router) -> Self {
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let serve = |listener, stopped: oneshot::Receiver<()>| async move {
            let stopped = async { stopped.await.unwrap_or(()) };
            axum::serve(listener, service)
                .with_graceful_shutdown(stopped)
                .await
                .unwrap();
        };
        Self::start(serve).await
    }

    /// Stops the server, and waits until its connections are closed.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}
