//! How commands reach a server: the trait that a client crate implements.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(feature = "redis-rs")]
mod adapter;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "redis-rs")]
mod connection;
#[cfg(feature = "redis-rs")]
mod redis_rs;
#[cfg(feature = "cluster")]
mod slots;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "redis-rs")]
mod wire;

#[cfg(feature = "redis-rs")]
pub use adapter::Adapter;
#[cfg(feature = "cluster")]
pub use cluster::{Cluster, connect_to_cluster_lazily};
#[cfg(feature = "redis-rs")]
pub use connection::{Connection, connect_lazily};

/// What a server answers to a command.
///
/// ```
/// use tollgate_redis::client::Reply;
///
/// let reply = Reply::List(vec![Reply::Int(1), Reply::Bytes(b"ok".to_vec()), Reply::Nil]);
/// assert_eq!(reply.clone(), reply);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing.
    Nil,
    /// An integer.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Several replies.
    List(Vec<Reply>),
}

/// One command for the server: `EVALSHA` or `EVAL`, with keys and arguments.
///
/// A [`Client`] sends its [`parts`](Self::parts) as they are:
///
/// ```no_run
/// use tollgate_redis::client::Command;
///
/// fn as_resp(command: &Command<'_>) -> Vec<u8> {
///     let parts: Vec<_> = command.parts().collect();
///     let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
///     for part in parts {
///         bytes.extend(format!("${}\r\n", part.len()).bytes());
///         bytes.extend(part);
///         bytes.extend(b"\r\n");
///     }
///     bytes
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Command<'a> {
    name: &'static str,
    script: &'a str,
    count: String,
    keys: &'a [Vec<u8>],
    args: &'a [Vec<u8>],
    waiting: &'a Waiting,
}

/// How long the caller of a command waits, and whether the client has sent nothing yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    budget: Duration,
    /// Locked for a moment, by the task that calls.
    is_unsent: Mutex<bool>,
}

impl Waiting {
    pub(crate) const fn new(budget: Duration) -> Self {
        Self {
            budget,
            is_unsent: Mutex::new(false),
        }
    }

    /// Returns whether the client still connects, so that the command had no effect.
    pub(crate) fn is_unsent(&self) -> bool {
        *self
            .is_unsent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "redis-rs")]
    fn set_unsent(&self, is_unsent: bool) {
        *self
            .is_unsent
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = is_unsent;
    }
}

impl<'a> Command<'a> {
    pub(crate) fn new(
        name: &'static str,
        script: &'a str,
        keys: &'a [Vec<u8>],
        args: &'a [Vec<u8>],
        waiting: &'a Waiting,
    ) -> Self {
        Self {
            name,
            script,
            count: keys.len().to_string(),
            keys,
            args,
            waiting,
        }
    }

    /// Returns the parts of the command in the order in which they are sent. The first is its name.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let head = [self.name, self.script, &self.count].map(str::as_bytes);
        let tail = self.keys.iter().chain(self.args).map(Vec::as_slice);
        head.into_iter().chain(tail)
    }

    /// Returns how long the caller waits for the answer. Then it drops the future, so a client
    /// needs no timeout of its own.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.waiting.budget
    }

    /// Returns the keys. All have the same hash tag, so that one node of a cluster has them.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        self.keys
    }
}

/// A connection that can send commands to a server.
///
/// `Connection` and `Adapter` are clients (feature `redis-rs`), and so is `Cluster` (feature
/// `cluster`). To use another client crate, implement this trait. Connect again after an error of
/// the network and after a refusal: otherwise an outage lasts until the process ends.
///
/// ```
/// use tollgate_redis::client::{Client, ClientError, Command, Reply};
///
/// /// A server that is never there.
/// struct Nowhere;
///
/// impl Client for Nowhere {
///     async fn send(&self, _command: &Command<'_>) -> Result<Reply, ClientError> {
///         Err(ClientError::NotSent("there is no server".into()))
///     }
/// }
/// ```
pub trait Client: Send + Sync {
    /// Sends a command once, and returns the server's answer.
    ///
    /// Don't send it again, whatever happens: a command whose answer is lost may have taken
    /// permits. The caller may drop the future at any time, when its budget is over.
    fn send(
        &self,
        command: &Command<'_>,
    ) -> impl Future<Output = Result<Reply, ClientError>> + Send;

    /// Returns which node has the keys of a command. Nodes fail alone: a node that does not answer
    /// begins an outage of its own keys. The default is one node, 0, that has all keys.
    fn node_of(&self, keys: &[Vec<u8>]) -> u64 {
        let _ = keys;
        0
    }

    /// Returns whether the node still has keys. The outage of a node ends when other nodes have
    /// taken over all its keys.
    fn has_keys(&self, node: u64) -> bool {
        let _ = node;
        true
    }
}

/// The reason why a command has no reply.
///
/// ```
/// use tollgate_redis::client::ClientError;
///
/// let error = ClientError::Unknown("the connection was closed".into());
/// assert!(error.may_have_taken_effect());
/// assert_eq!(
///     error.to_string(),
///     "the server's answer is lost: the connection was closed",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// A URL is not accepted. The text says which one, and why.
    Url(String),
    /// The command was not sent, so it had no effect.
    NotSent(String),
    /// The command may have been sent, and no answer came. It may have taken effect.
    Unknown(String),
    /// The server answered with an error. The script changed nothing.
    Refused {
        /// The first word of the error, such as `NOSCRIPT` or `READONLY`.
        code: String,
        /// The rest of the error.
        message: String,
    },
}

impl ClientError {
    /// Returns whether the command may have taken effect.
    #[must_use]
    pub const fn may_have_taken_effect(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Returns whether the server refused the command with this code.
    pub(crate) fn is_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => f.write_str(why),
            Self::NotSent(why) => write!(f, "the command was not sent: {why}"),
            Self::Unknown(why) => write!(f, "the server's answer is lost: {why}"),
            Self::Refused { code, message } => write!(f, "the server refused: {code} {message}"),
        }
    }
}

impl Error for ClientError {}
