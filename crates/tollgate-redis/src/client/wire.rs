//! What `redis` connects: how it is made, and how it is asked whether it works.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisError};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ClientError;
use super::redis_rs::one_line;

/// How long a call may wait without an answer to any call, before the next one uses a new
/// connection.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// How long an attempt to connect may take, if no budget is longer.
pub(super) const CONNECT_FOR: Duration = Duration::from_secs(5);

/// How long it may take, whatever the budget is.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A connection of `redis`, and whether the runtime of its task still runs.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) connection: MultiplexedConnection,
    /// Closed when the runtime has ended.
    pub(super) alive: Arc<oneshot::Sender<()>>,
}

/// How long an attempt may take.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// How long an answer to a `PING` is awaited before a new connection is made too.
    pub(super) ping: Duration,
    pub(super) connect: Duration,
}

impl Patience {
    pub(super) fn of(budget: Duration) -> Self {
        Self {
            ping: (budget / 3).min(SILENCE),
            connect: budget.clamp(CONNECT_FOR, LONGEST),
        }
    }
}

/// Connects within `longest`. Calls have no other timeout than their budgets.
pub(super) async fn connect(
    client: &redis::Client,
    longest: Duration,
) -> Result<Wire, ClientError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let made = client.get_multiplexed_async_connection_with_config(&config);
    let Ok(made) = timeout(longest, made).await else {
        let why = format!("there is no connection after {longest:?}");
        return Err(ClientError::NotSent(why));
    };
    let connection = made.map_err(|error| ClientError::NotSent(why(&error)))?;
    let (alive, dropped) = oneshot::channel();
    tokio::spawn(async move {
        let _ = dropped.await;
    });
    let alive = Arc::new(alive);
    Ok(Wire { connection, alive })
}

/// Returns an idle connection if it answers, and else a new one.
pub(super) async fn ping_or_connect(
    client: &redis::Client,
    idle: Wire,
    patience: Patience,
) -> Result<Wire, ClientError> {
    let mut connection = idle.connection.clone();
    let mut answers = pin!(ping(&mut connection));
    let mut made = pin!(connect(client, patience.connect));
    match timeout(patience.ping, &mut answers).await {
        Ok(true) => return Ok(idle),
        Ok(false) => return made.await,
        Err(_) => {}
    }
    // The answer may only be late, so the first of the two serves.
    let mut fails = false;
    poll_fn(|context| {
        if !fails {
            match answers.as_mut().poll(context) {
                Poll::Ready(true) => return Poll::Ready(Ok(idle.clone())),
                Poll::Ready(false) => fails = true,
                Poll::Pending => {}
            }
        }
        made.as_mut().poll(context)
    })
    .await
}

/// Returns why an attempt has failed. The client crate does not keep what a server answers to
/// `AUTH`.
fn why(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::AuthenticationFailed => "the server refused AUTH: the user or the password is \
             wrong, or the server is not ready"
            .to_owned(),
        _ => one_line(&error.to_string()),
    }
}

/// Returns whether a connection answers.
pub(super) async fn ping(connection: &mut MultiplexedConnection) -> bool {
    let answer = connection.send_packed_command(&redis::cmd("PING")).await;
    answer.is_ok()
}

/// Returns whether a connection is known to have ended. The client crate says so only when
/// something is sent, so this sends a `PING` and does not wait for its answer.
pub(super) fn has_ended(connection: &mut MultiplexedConnection) -> bool {
    let mut command = redis::cmd("PING");
    command.set_no_response(true);
    let sent = pin!(connection.send_packed_command(&command));
    let polled = sent.poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Err(_)))
}
