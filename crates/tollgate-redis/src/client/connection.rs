//! A connection that is made again whenever it is needed.
//!
//! The `ConnectionManager` of the crate `redis` is not used here: it keeps a refused attempt to
//! connect for ever, gives each attempt one second, and notices a lost connection only when a call
//! fails.
//!
//! ```text
//!            an attempt succeeds
//!   none ────────────────────────► open ──┐ calls
//!    ▲ │ ▲                          │  ▲──┘
//!    │ └─┘ a call starts an attempt │
//!    └──────────────────────────────┘
//!     its end is seen, or it is silent
//! ```
//!
//! An attempt is a task of its own, so it goes on when the caller that started it stops waiting. On
//! a connection that was idle for a while, a `PING` is sent first: that is an attempt too, with a
//! connection to try.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    Cmd, ErrorKind, IntoConnectionInfo, Pipeline, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use super::redis_rs::{bad_url, packed, refused, reply};
use super::wire::{CONNECT_FOR, LONGEST, Patience, SILENCE, Wire};
use super::wire::{connect, has_ended, ping, ping_or_connect};
use super::{Client, ClientError, Command, Reply, Waiting};

/// How long a connection may be idle before a call sends `PING` first, by default.
pub(super) const PING_AFTER: Duration = Duration::from_secs(5);

/// A call this soon after another one does not look whether the connection has ended.
const MOMENT: Duration = Duration::from_millis(1);

/// When and how often the system asks an idle connection.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A connection to one server, from [`connect_lazily`](super::connect_lazily). Clones share it.
///
/// It connects when it is first used. The first call after its end connects again, and so does the
/// first call after 2 seconds in which commands were sent and nothing came back. An attempt that is
/// refused is forgotten, and the next call makes another.
///
/// An attempt goes on when the budget of its call is over, up to 5 seconds or to the budget if that
/// is longer. So a connection that takes long to make is used by a later call.
///
/// ```no_run
/// use tollgate_redis::client::{Connection, connect_lazily};
///
/// # async fn connect() -> Result<(), tollgate_redis::client::ClientError> {
/// let connection: Connection = connect_lazily("redis://127.0.0.1/")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    ping_after: Duration,
}

struct Shared {
    client: redis::Client,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Link>,
    /// The latest attempt.
    attempt: Option<Attempt>,
    /// The number of the latest attempt.
    latest: u64,
}

/// A connection that was made.
struct Link {
    wire: Wire,
    /// The number of the attempt that made it, or that found out that it works. Calls that were
    /// sent earlier say nothing about it.
    number: u64,
    /// When a call was sent, or an answer came.
    used: Instant,
    /// When a call was sent, if nothing has come since.
    silent_since: Option<Instant>,
    /// When a `PING` was sent because a caller did not wait, if its answer has not come.
    pinged: Option<Instant>,
}

/// A task that connects, or finds out that the idle connection works.
#[derive(Clone)]
struct Attempt {
    since: Instant,
    /// When it counts as ended, even if its runtime stands still.
    until: Instant,
    outcome: watch::Receiver<Option<Result<(), ClientError>>>,
}

impl Attempt {
    /// Returns whether the task still runs. The end of its runtime ends it too.
    fn goes_on(&self) -> bool {
        let is_late = self.until <= Instant::now();
        !is_late && self.outcome.borrow().is_none() && self.outcome.has_changed().is_ok()
    }

    async fn outcome(&mut self) -> Result<(), ClientError> {
        let ended = timeout_at(self.until, self.outcome.wait_for(Option::is_some)).await;
        let outcome = ended
            .ok()
            .and_then(Result::ok)
            .and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| {
            let why = "the runtime that connects has ended, or stands still";
            Err(ClientError::NotSent(why.to_owned()))
        })
    }
}

/// What a call does first.
enum First<'a> {
    Send(Open<'a>),
    Wait(Attempt),
}

/// A connection for one call. If it is dropped before the call has [`ended`](Self::ended), a `PING`
/// checks whether the connection works: the answer may only be late.
pub(super) struct Open<'a> {
    shared: &'a Arc<Shared>,
    /// The link's number, until the call has ended.
    number: Option<u64>,
    pub(super) connection: MultiplexedConnection,
}

/// Creates a client that connects when it is first used, and again after it has lost its
/// connection: see [`Connection`].
///
/// So a program can start while the server is down.
///
/// ```no_run
/// use tollgate_redis::client::connect_lazily;
///
/// # async fn connect() -> Result<(), tollgate_redis::client::ClientError> {
/// let client = connect_lazily("redis://127.0.0.1/")?;
/// # Ok(())
/// # }
/// ```
///
/// With the feature `tls`, a URL can begin with `rediss://`. The client then trusts the system's
/// certificate authorities, or those in the file that the environment variable `SSL_CERT_FILE`
/// names. To trust your own authority, or to present a client certificate, pass what `redis` makes
/// of them:
///
/// ```no_run
/// # #[cfg(feature = "tls")]
/// # async fn connect(root: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
/// use redis::TlsCertificates;
/// use tollgate_redis::client::connect_lazily;
///
/// let certificates = TlsCertificates { client_tls: None, root_cert: Some(root) };
/// let redis = redis::Client::build_with_tls("rediss://limits.example/", certificates)?;
/// let client = connect_lazily(redis.get_connection_info().clone())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ClientError::Url`] if the URL is invalid. The message does not contain the URL, which may
/// have a password.
pub fn connect_lazily(url: impl IntoConnectionInfo) -> Result<Connection, ClientError> {
    Connection::new(url).map_err(|error| bad_url("url", &error))
}

impl Connection {
    /// Creates a connection, which connects when it is first used.
    pub(super) fn new(url: impl IntoConnectionInfo) -> RedisResult<Self> {
        let info = url.into_connection_info()?;
        // Without this the system holds a small command back until the one before is confirmed.
        let mut tcp = info.tcp_settings().clone().set_nodelay(true);
        if tcp.keepalive().is_none() {
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
            tcp = tcp.set_keepalive(keepalive.with_interval(KEEPALIVE / 3));
        }
        let client = redis::Client::open(info.set_tcp_settings(tcp))?;
        #[cfg(feature = "tls")]
        super::tls::provide_cryptography(client.get_connection_info());
        let state = Mutex::default();
        Ok(Self {
            shared: Arc::new(Shared { client, state }),
            ping_after: PING_AFTER,
        })
    }

    /// Sets how long a connection may be idle before the next call first asks it by `PING`: 5
    /// seconds, unless this says otherwise.
    ///
    /// Routers and load balancers forget idle connections without a word. If the answer does not
    /// come within a third of the call's budget, a new connection is made, and the call goes out on
    /// the one that is ready first. So such a call needs time for two round trips.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::client::connect_lazily;
    ///
    /// # fn main() -> Result<(), tollgate_redis::client::ClientError> {
    /// let client = connect_lazily("redis://127.0.0.1/")?.with_ping_after(Duration::from_secs(60));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_ping_after(self, ping_after: Duration) -> Self {
        Self { ping_after, ..self }
    }

    /// Returns a connection for a call. Connects if there is none, or if it does not work.
    pub(super) async fn open(&self, waiting: &Waiting) -> Result<Open<'_>, ClientError> {
        let begun = Instant::now();
        // The command is unsent until this function returns, also if the caller drops the future.
        waiting.set_unsent(true);
        if self.shared.is_idle(begun) {
            // The runtime reads what has come, and then the connection's task sees it.
            yield_now().await;
            yield_now().await;
        }
        loop {
            let mut attempt = match self.first(begun, waiting.budget) {
                Ok(First::Wait(attempt)) => attempt,
                Ok(First::Send(open)) => {
                    waiting.set_unsent(false);
                    return Ok(open);
                }
                Err(error) => return Err(error),
            };
            match attempt.outcome().await {
                // The cause of an earlier failure may be over.
                Err(error) if attempt.since >= begun => return Err(error),
                _ => {}
            }
        }
    }

    /// Returns a connection for a call that has begun at this time, or what it waits for.
    fn first(&self, begun: Instant, budget: Duration) -> Result<First<'_>, ClientError> {
        let now = Instant::now();
        let mut state = self.shared.state();
        let mut to_try = None;
        if let Some(mut link) = state.link.take() {
            // None if it was used since the call has begun.
            let idle = begun.checked_duration_since(link.used);
            let is_idle = |least| idle.is_some_and(|idle| idle >= least);
            match link.silent_since {
                // These links are dropped.
                _ if link.wire.alive.is_closed() => {}
                Some(since) if now.saturating_duration_since(since) >= SILENCE => {}
                None if is_idle(self.ping_after) => to_try = Some(link.wire),
                None if is_idle(MOMENT) && has_ended(&mut link.wire.connection) => {}
                _ => {
                    link.used = now;
                    link.silent_since.get_or_insert(now);
                    let open = Open {
                        shared: &self.shared,
                        number: Some(link.number),
                        connection: link.wire.connection.clone(),
                    };
                    state.link = Some(link);
                    return Ok(First::Send(open));
                }
            }
        }
        let attempt = self.shared.attempt(&mut state, budget, to_try)?;
        Ok(First::Wait(attempt))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the latest call or answer was a moment before this time.
    fn is_idle(&self, begun: Instant) -> bool {
        let state = self.state();
        let idle = state
            .link
            .as_ref()
            .map(|link| begun.saturating_duration_since(link.used));
        idle.is_some_and(|idle| idle >= MOMENT)
    }

    /// Returns the running attempt, or begins one that first tries an idle connection.
    fn attempt(
        self: &Arc<Self>,
        state: &mut State,
        budget: Duration,
        idle: Option<Wire>,
    ) -> Result<Attempt, ClientError> {
        if let Some(attempt) = state.attempt.as_ref().filter(|attempt| attempt.goes_on()) {
            return Ok(attempt.clone());
        }
        let none = |_| ClientError::NotSent("there is no tokio runtime".to_owned());
        let runtime = Handle::try_current().map_err(none)?;
        state.latest = state.latest.saturating_add(1);
        let number = state.latest;
        let (outcome, receiver) = watch::channel(None);
        let client = self.client.clone();
        let shared = Arc::downgrade(self);
        let patience = Patience::of(budget);
        runtime.spawn(async move {
            let made = match idle {
                Some(idle) => ping_or_connect(&client, idle, patience).await,
                None => connect(&client, patience.connect).await,
            };
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let made = made.map(|wire| {
                let mut state = shared.state();
                // A later attempt has begun if this one was late.
                if state.latest == number {
                    state.link = Some(Link {
                        wire,
                        number,
                        used: Instant::now(),
                        silent_since: None,
                        pinged: None,
                    });
                }
            });
            outcome.send_replace(Some(made));
        });
        let since = Instant::now();
        let attempt = Attempt {
            since,
            until: since + patience.ping + patience.connect,
            outcome: receiver,
        };
        state.attempt = Some(attempt.clone());
        Ok(attempt)
    }

    /// Notes that something has come on a connection.
    fn heard(&self, number: u64) {
        if let Some(link) = self.state().link_of(number) {
            link.used = Instant::now();
            link.silent_since = None;
        }
    }

    /// Notes that a connection has failed, and makes another before the next call.
    fn lost(self: &Arc<Self>, number: u64) {
        let mut state = self.state();
        if state.link_of(number).is_some() {
            state.link = None;
            // Without a runtime, the next call connects.
            let _ = self.attempt(&mut state, CONNECT_FOR, None);
        }
    }

    /// Sends a `PING` in the background, unless one waits for its answer.
    fn ping(self: &Arc<Self>, number: u64) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let now = Instant::now();
        let mut connection = {
            let mut state = self.state();
            let Some(link) = state.link_of(number) else {
                return;
            };
            // The runtime of an earlier `PING` may have ended.
            let is_recent = |sent| now.saturating_duration_since(sent) < SILENCE;
            if link.pinged.is_some_and(is_recent) {
                return;
            }
            link.pinged = Some(now);
            link.wire.connection.clone()
        };
        let shared = Arc::downgrade(self);
        runtime.spawn(async move {
            let answer = timeout(SILENCE, ping(&mut connection)).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            match answer {
                Ok(true) => shared.heard(number),
                Ok(false) => shared.lost(number),
                Err(_) => {}
            }
            if let Some(link) = shared.state().link_of(number) {
                link.pinged = None;
            }
        });
    }
}

impl State {
    /// Returns the connection, if it is still the one with this number.
    fn link_of(&mut self, number: u64) -> Option<&mut Link> {
        self.link.as_mut().filter(|link| link.number == number)
    }
}

impl Open<'_> {
    /// Notes how the call has ended, and returns what it says about its command.
    pub(super) fn ended<T>(mut self, result: RedisResult<T>) -> Result<T, ClientError> {
        self.note(&result);
        result.map_err(refused)
    }

    fn note<T>(&mut self, result: &RedisResult<T>) {
        if let Some(number) = self.number.take() {
            match result {
                Err(error) if !is_answer(error) => self.shared.lost(number),
                _ => self.shared.heard(number),
            }
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.ping(number);
        }
    }
}

/// Returns whether an error is an answer of the server.
fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

impl Client for Connection {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        let mut open = self.open(command.waiting).await?;
        let value = open.connection.send_packed_command(&packed(command)).await;
        reply(open.ended(value.and_then(Value::extract_error))?)
    }
}

/// Other commands can use the connection too. Each is sent at most once.
impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut open = self.open(&Waiting::new(LONGEST)).await.map_err(not_sent)?;
            let result = open.connection.send_packed_command(command).await;
            open.note(&result);
            result
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let mut open = self.open(&Waiting::new(LONGEST)).await.map_err(not_sent)?;
            let sent = open
                .connection
                .send_packed_commands(commands, offset, count);
            let result = sent.await;
            open.note(&result);
            result
        })
    }

    fn get_db(&self) -> i64 {
        let info = self.shared.client.get_connection_info();
        info.redis_settings().db()
    }
}

fn not_sent(error: ClientError) -> RedisError {
    (ErrorKind::Io, "no connection", error.to_string()).into()
}

impl fmt::Debug for Connection {
    /// Does not show the address, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        let link = state.link.as_ref();
        f.debug_struct("Connection")
            .field("is_open", &link.is_some())
            .field("silent_since", &link.and_then(|link| link.silent_since))
            .field("ping_after", &self.ping_after)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/connection/mod.rs"]
mod tests;
