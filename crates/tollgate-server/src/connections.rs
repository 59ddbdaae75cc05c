//! Accepts connections, and bounds what each of them can take.

mod requests;

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
use tokio::task::unconstrained;
use tokio::time::Instant;

use self::requests::Requests;
use crate::budget::Budget;
use crate::settings::Limits;

/// What is counted of an address's connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// How many are open.
    pub(crate) open: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    /// Those that were closed at once, because too many were open.
    pub(crate) refused: AtomicU64,
    /// Those that were closed because no request came in time, or because others needed the place.
    pub(crate) idle: AtomicU64,
    /// Those that were closed because the client did not take an answer.
    pub(crate) stalled: AtomicU64,
    /// Those that were not encrypted in time, or wrongly.
    pub(crate) not_encrypted: AtomicU64,
}

/// What all connections are told.
#[derive(Debug, Clone, Copy, Default)]
struct Orders {
    /// How often a connection was refused for want of a place. One that was quiet since the last
    /// time gives its place away.
    pressure: u64,
    /// Whether they end at once.
    cut: bool,
}

/// How often quiet connections are asked for their places.
const PRESSURE: Duration = Duration::from_secs(1);

/// How long a connection that should end may take to end well.
const GRACE: Duration = Duration::from_secs(1);

/// Answers the requests of all connections, until `stop` is set. Then it waits until the requests
/// that have begun are answered, but not longer than [`Limits::drain`]. After that there is none.
pub(crate) async fn serve<F, B, A>(
    listener: TcpListener,
    tls: Tls,
    limits: Limits,
    budget: Arc<Budget>,
    counts: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
    answer: F,
) where
    F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(limits.connections));
    // The receiver ends when all connections have dropped their senders.
    let (open, mut closed) = mpsc::channel::<Infallible>(1);
    let (orders, ordered) = watch::channel(Orders::default());
    let mut pressed = None::<Instant>;
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
            let now = Instant::now();
            if pressed.is_none_or(|pressed| now - pressed >= PRESSURE) {
                pressed = Some(now);
                orders.send_modify(|orders| orders.pressure += 1);
            }
            continue;
        };
        counts.accepted.fetch_add(1, Relaxed);
        let connection = Connection {
            limits: limits.clone(),
            budget: Arc::clone(&budget),
            counts: Counted::new(&counts),
            stop: stop.clone(),
            ordered: ordered.clone(),
            open: open.clone(),
            _place: place,
        };
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move { connection.accept(stream, peer, tls, answer).await });
    }
    drop((listener, open, ordered));
    if tokio::time::timeout(limits.drain, closed.recv())
        .await
        .is_err()
    {
        tracing::warn!("requests that are not answered in time are cut off");
        orders.send_modify(|orders| orders.cut = true);
        let _ = tokio::time::timeout(GRACE, closed.recv()).await;
    }
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
    budget: Arc<Budget>,
    counts: Counted,
    stop: watch::Receiver<bool>,
    ordered: watch::Receiver<Orders>,
    open: mpsc::Sender<Infallible>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn accept<F, B, A>(self, stream: TcpStream, peer: SocketAddr, tls: Tls, answer: F)
    where
        F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        // Answers are small: none waits for another.
        let _ = stream.set_nodelay(true);
        bound_unread(&stream, self.limits.body_time);
        match tls {
            Tls::Off => self.serve(stream, peer.ip(), answer).await,
            #[cfg(feature = "tls")]
            Tls::On(certificate) => {
                let shaken = certificate.acceptor().accept(stream);
                let shaken = tokio::time::timeout(self.limits.body_time, shaken);
                let (mut stop, mut ordered) = (self.stop.clone(), self.ordered.clone());
                let given_up = async {
                    tokio::select! {
                        _ = stop.wait_for(|stop| *stop) => {}
                        // At the second order for places it has had a second or more.
                        () = async { drop((ordered.changed().await, ordered.changed().await)) } => {}
                    }
                };
                let stream = tokio::select! {
                    shaken = shaken => shaken.ok().and_then(Result::ok),
                    () = given_up => None,
                };
                match stream {
                    Some(stream) => self.serve(stream, peer.ip(), answer).await,
                    None => drop(self.counts.0.not_encrypted.fetch_add(1, Relaxed)),
                }
            }
        }
    }

    async fn serve<S, F, B, A>(mut self, stream: S, peer: IpAddr, answer: F)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(IpAddr, Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body + Send + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let requests = Arc::new(Requests::default());
        let (of_service, budget) = (Arc::clone(&requests), Arc::clone(&self.budget));
        let open = self.open.clone();
        let service = service_fn(move |request| {
            let (begun, answer) = (of_service.begin(), answer(peer, request));
            // HTTP/2 answers in tasks of their own.
            let (budget, open) = (Arc::clone(&budget), open.clone());
            async move {
                let answer = answer.await;
                drop(open);
                Ok::<_, Infallible>(begun.answer(answer, &budget))
            }
        });
        let builder = builder(&self.limits);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut silence = Silence::new(&requests);
        let tick = self.limits.body_time.min(self.limits.idle);
        let tick = tick.max(Duration::from_millis(1));
        let mut timer = pin!(tokio::time::sleep(tick));
        let (mut stops, mut is_idle) = (false, false);
        loop {
            tokio::select! {
                biased;
                // The others are also polled after a busy client has used up what tokio lets a task
                // do at once.
                //
                // An error is the client's: it has left, or does not speak HTTP.
                _ = connection.as_mut() => return,
                _ = unconstrained(self.stop.wait_for(|stop| *stop)), if !stops => {
                    connection.as_mut().graceful_shutdown();
                    stops = true;
                    continue;
                }
                ordered = unconstrained(self.ordered.changed()) => {
                    let orders = *self.ordered.borrow_and_update();
                    if ordered.is_err() || orders.cut {
                        return;
                    }
                    if is_idle || !silence.gives_place_away() {
                        continue;
                    }
                }
                () = unconstrained(timer.as_mut()) => {
                    if requests.next_period() {
                        self.counts.0.stalled.fetch_add(1, Relaxed);
                        return;
                    }
                    if is_idle && requests.is_quiet() {
                        return;
                    }
                    timer.as_mut().reset(Instant::now() + tick);
                    if is_idle || !silence.is_too_long(&self.limits) {
                        continue;
                    }
                }
            }
            // A request that the client sends at this moment is still answered.
            is_idle = true;
            self.counts.0.idle.fetch_add(1, Relaxed);
            connection.as_mut().graceful_shutdown();
            timer.as_mut().reset(Instant::now() + tick.min(GRACE));
        }
    }
}

/// Lets the system drop what a client does not take, also when the connection is closed. Otherwise
/// it would keep some megabytes of each for minutes.
#[cfg(target_os = "linux")]
fn bound_unread(stream: &TcpStream, time: Duration) {
    let ms = time.saturating_mul(2).as_millis();
    let ms = u32::try_from(ms).unwrap_or(u32::MAX);
    // A system without this option keeps what is unread for longer. The connection works.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, ms);
}

#[cfg(not(target_os = "linux"))]
const fn bound_unread(_: &TcpStream, _: Duration) {}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Not `pipeline_flush`: with it, hyper keeps what a client does not read, without a bound, and
    // does not send the 431 for a head that is too long.
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
        .max_concurrent_streams(128)
        .keep_alive_interval(limits.idle);
    builder
}

/// For how long a connection has had nothing to do.
struct Silence<'r> {
    requests: &'r Requests,
    begun: u64,
    since: Instant,
    /// How many requests had begun when another connection wanted the place, if it was quiet.
    pressed: Option<u64>,
}

impl<'r> Silence<'r> {
    fn new(requests: &'r Requests) -> Self {
        Self {
            requests,
            begun: 0,
            since: Instant::now(),
            pressed: None,
        }
    }

    /// Returns whether it has lasted too long. A first request must come sooner than later ones.
    fn is_too_long(&mut self, limits: &Limits) -> bool {
        let (now, begun) = (Instant::now(), self.requests.begun());
        if begun != self.begun || !self.requests.is_quiet() {
            self.begun = begun;
            self.since = now;
            return false;
        }
        let most = match begun {
            0 => limits.idle.min(limits.body_time),
            _ => limits.idle,
        };
        now - self.since >= most
    }

    /// Returns whether another connection should have the place: nothing has happened since the
    /// last time that one wanted it.
    fn gives_place_away(&mut self) -> bool {
        let begun = self.requests.begun();
        let quiet = self.requests.is_quiet().then_some(begun);
        let gives = quiet.is_some() && self.pressed == quiet;
        self.pressed = quiet;
        gives
    }
}

/// Counts an open connection while it lives.
struct Counted(Arc<Connections>);

impl Counted {
    fn new(counts: &Arc<Connections>) -> Self {
        counts.open.fetch_add(1, Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}
