//! A connection that is replaced if nothing comes from it any more.
//!
//! `ConnectionManager` connects again when the system says that a connection is lost. If a host or
//! a router disappears, the system says so only after many minutes, or never if something between
//! still confirms what is sent.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, IntoConnectionInfo, Pipeline, RedisFuture, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

/// How long a call may wait without an answer to any call, before the next one uses a new
/// connection.
const SILENCE: Duration = Duration::from_secs(2);

/// A connection to one server, from [`connect_lazily`](super::connect_lazily). Clones share it.
///
/// It connects when it is first used. When a command finds the connection lost, it fails, and the
/// client connects again in the background. It also connects again after 2 seconds in which
/// commands were sent and nothing came back.
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
pub struct Connection(Arc<Shared>);

struct Shared {
    client: redis::Client,
    /// Never held across an await.
    current: Mutex<Current>,
}

struct Current {
    manager: ConnectionManager,
    number: u64,
    /// When a call was sent on this connection, if nothing has come from it since.
    silent_since: Option<Instant>,
    /// Whether a `PING` waits for its answer.
    is_pinged: bool,
}

impl Connection {
    /// Creates a connection, which connects when it is first used.
    pub(super) fn new(url: impl IntoConnectionInfo) -> RedisResult<Self> {
        let info = url.into_connection_info()?;
        // Otherwise the system keeps a small command until the one before it is confirmed.
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let client = redis::Client::open(info.set_tcp_settings(tcp))?;
        #[cfg(feature = "tls")]
        super::tls::provide_cryptography(client.get_connection_info());
        let current = Mutex::new(Current {
            manager: manager(&client)?,
            number: 0,
            silent_since: None,
            is_pinged: false,
        });
        Ok(Self(Arc::new(Shared { client, current })))
    }

    /// Returns the connection for a call, and its number. A silent one is replaced.
    fn begin(&self) -> (ConnectionManager, u64) {
        let now = Instant::now();
        let mut current = self.0.current();
        let is_silent = current
            .silent_since
            .is_some_and(|since| now.duration_since(since) >= SILENCE);
        if let Some(Ok(new)) = is_silent.then(|| manager(&self.0.client)) {
            current.manager = new;
            current.number = current.number.saturating_add(1);
            current.silent_since = None;
            current.is_pinged = false;
            // Calls alone may end before they have connected, each time.
            self.0.ping(&mut current);
        }
        current.silent_since.get_or_insert(now);
        (current.manager.clone(), current.number)
    }
}

/// A call without an answer. If its caller drops it, a `PING` hears whether the connection works:
/// the answer may only be late.
struct Unanswered<'a>(&'a Connection, u64);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Self(Connection(shared), number) = self;
        let mut current = shared.current();
        if current.number == *number {
            shared.ping(&mut current);
        }
    }
}

impl Shared {
    /// Sends a `PING` in the background, unless one waits for its answer.
    fn ping(self: &Arc<Self>, current: &mut Current) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if mem::replace(&mut current.is_pinged, true) {
            return;
        }
        let (mut manager, number) = (current.manager.clone(), current.number);
        let shared = Arc::downgrade(self);
        runtime.spawn(async move {
            let ping = redis::cmd("PING");
            let answer = timeout(SILENCE, manager.send_packed_command(&ping)).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if answer.is_ok() {
                shared.heard(number);
            }
            let mut current = shared.current();
            if current.number == number {
                current.is_pinged = false;
            }
        });
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call on this connection has ended with an answer, or with an error that the
    /// manager knows too.
    fn heard(&self, number: u64) {
        let mut current = self.current();
        if current.number == number {
            current.silent_since = None;
        }
    }
}

fn manager(client: &redis::Client) -> RedisResult<ConnectionManager> {
    // One attempt for each failed decision: the breaker already spaces them. Its budget ends a
    // call, so no other timeout does.
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_response_timeout(None);
    client.get_connection_manager_lazy(config)
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (mut manager, number) = self.begin();
            let unanswered = Unanswered(self, number);
            let answer = manager.send_packed_command(command).await;
            mem::forget(unanswered);
            self.0.heard(number);
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let (mut manager, number) = self.begin();
            let unanswered = Unanswered(self, number);
            let answer = manager.send_packed_commands(commands, offset, count);
            let answer = answer.await;
            mem::forget(unanswered);
            self.0.heard(number);
            answer
        })
    }

    fn get_db(&self) -> i64 {
        self.0.client.get_connection_info().redis_settings().db()
    }
}

impl fmt::Debug for Connection {
    /// Does not show the address, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.0.current();
        f.debug_struct("Connection")
            .field("number", &current.number)
            .field("silent_since", &current.silent_since)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/connection/mod.rs"]
mod tests;
