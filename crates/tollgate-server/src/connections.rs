//! Accepts connections, and bounds what each of them can take.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::settings::Limits;

/// What is counted of an address's connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// How many are open.
    pub(crate) open: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    /// Those that were closed at once, because too many were open.
    pub(crate) refused: AtomicU64,
    /// Those that were closed because no request came in time.
    pub(crate) idle: AtomicU64,
}

/// Answers the requests of all connections, until `stop` is set. Then it waits until the requests
/// that have begun are answered, but not longer than [`Limits::drain`].
pub(crate) async fn serve<F, B, A>(
    listener: TcpListener,
    tls: Tls,
    limits: Limits,
    counts: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
    answer: F,
) where
    F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(limits.connections));
    // The receiver ends when all connections have dropped their senders.
    let (open, mut closed) = mpsc::channel::<Infallible>(1);
    let mut has_failed = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // One line an outage, such as one in which the process has too many files open.
                if is_of_process(&error) {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::error!(%error, "no connection can be accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                continue;
            }
        };
        if std::mem::take(&mut has_failed) {
            tracing::info!("connections are accepted again");
        }
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            counts.refused.fetch_add(1, Relaxed);
            continue;
        };
        counts.accepted.fetch_add(1, Relaxed);
        let connection = Connection {
            limits: limits.clone(),
            counts: Arc::clone(&counts),
            stop: stop.clone(),
            _open: open.clone(),
            _place: place,
        };
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move { connection.accept(stream, peer, tls, answer).await });
    }
    drop(listener);
    drop(open);
    let _ = tokio::time::timeout(limits.drain, closed.recv()).await;
}

/// Returns whether the process can't accept connections, and not only that one of them is gone.
fn is_of_process(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    let of_one = [
        ConnectionAborted,
        ConnectionRefused,
        ConnectionReset,
        Interrupted,
    ];
    !of_one.contains(&error.kind())
}

/// How connections are encrypted, if they are.
#[derive(Clone)]
pub(crate) enum Tls {
    Off,
    #[cfg(feature = "tls")]
    On(Arc<crate::tls::Certificate>),
}

struct Connection {
    limits: Limits,
    counts: Arc<Connections>,
    stop: watch::Receiver<bool>,
    _open: mpsc::Sender<Infallible>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn accept<F, B, A>(self, stream: TcpStream, peer: SocketAddr, tls: Tls, answer: F)
    where
        F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        // Answers are small: none waits for another.
        let _ = stream.set_nodelay(true);
        match tls {
            Tls::Off => self.serve(stream, peer.ip(), answer).await,
            #[cfg(feature = "tls")]
            Tls::On(certificate) => {
                let shaken = certificate.acceptor().accept(stream);
                let shaken = tokio::time::timeout(self.limits.body_time, shaken);
                if let Ok(Ok(stream)) = shaken.await {
                    self.serve(stream, peer.ip(), answer).await;
                }
            }
        }
    }

    async fn serve<S, F, B, A>(mut self, stream: S, peer: IpAddr, answer: F)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let _counted = Counted::new(&self.counts.open);
        let requests = Arc::new(Requests::default());
        let of_service = Arc::clone(&requests);
        let service = service_fn(move |request| {
            let ends = Requests::begin(&of_service);
            let answer = answer(peer, request);
            async move {
                let answer = answer.await;
                drop(ends);
                Ok::<_, Infallible>(answer)
            }
        });
        let builder = builder(&self.limits);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut seen = requests.seen();
        let mut idle = pin!(tokio::time::sleep(self.limits.idle));
        let mut stops = false;
        loop {
            tokio::select! {
                biased;
                // An error is the client's: it has left, or does not speak HTTP.
                _ = connection.as_mut() => return,
                _ = self.stop.wait_for(|stop| *stop), if !stops => {
                    connection.as_mut().graceful_shutdown();
                    stops = true;
                }
                () = idle.as_mut() => {
                    let now = requests.seen();
                    if now == seen && requests.open.load(Relaxed) == 0 {
                        self.counts.idle.fetch_add(1, Relaxed);
                        return;
                    }
                    seen = now;
                    idle.as_mut().reset(Instant::now() + self.limits.idle);
                }
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Not `pipeline_flush`: with it, hyper does not send the 431 for a head that is too long.
    builder
        .http1()
        // `Connection::serve` bounds this time, without a timer for each request.
        .header_read_timeout(None)
        // hyper refuses a buffer of less.
        .max_buf_size(limits.head_bytes.max(8 * 1024));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(1024)
        .keep_alive_interval(limits.idle);
    builder
}

/// The requests of one connection.
#[derive(Debug, Default)]
struct Requests {
    begun: AtomicU64,
    open: AtomicUsize,
}

impl Requests {
    fn begin(this: &Arc<Self>) -> impl Drop + use<> {
        struct Ends(Arc<Requests>);

        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.open.fetch_sub(1, Relaxed);
            }
        }
        this.begun.fetch_add(1, Relaxed);
        this.open.fetch_add(1, Relaxed);
        Ends(Arc::clone(this))
    }

    fn seen(&self) -> u64 {
        self.begun.load(Relaxed)
    }
}

/// Counts while it lives.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
