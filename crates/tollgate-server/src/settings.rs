//! What a service is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tollgate_policy::Secret;

/// How a [`Server`](crate::Server) runs.
///
/// ```
/// use tollgate_server::Settings;
///
/// let mut settings = Settings::default();
/// assert_eq!(settings.listen.to_string(), "127.0.0.1:4290");
/// settings.policy = Some("limits.toml".into());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The file with the policy, in TOML, JSON or YAML. Without one, the
    /// [built-in policy](crate::BUILT_IN) decides.
    pub policy: Option<PathBuf>,
    /// Whether the policy is read again when its file changes.
    pub watch: bool,
    /// The address at which proxies and programs ask.
    pub listen: SocketAddr,
    /// The address at which operators ask, or `None` for no such address. Keep it from clients.
    pub admin: Option<SocketAddr>,
    /// The token of those who change something or ask about a client, at the address of operators.
    /// Without one, nobody can.
    pub admin_token: Option<Secret>,
    /// With which certificate both addresses encrypt. Without one, they do not.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsSettings>,
    /// Where the state is kept for the next process. Without it, limits begin anew.
    pub state: Option<StateSettings>,
    /// How connections are limited.
    pub limits: Limits,
    /// How long a decision is held for its caller: see
    /// [the guide](https://docs.rs/tollgate-server).
    pub hold_for: Duration,
    /// How many decisions are held at once.
    pub most_held: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: None,
            watch: true,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4290)),
            admin: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 4291))),
            admin_token: None,
            #[cfg(feature = "tls")]
            tls: None,
            state: None,
            limits: Limits::default(),
            hold_for: Duration::from_secs(60),
            most_held: 100_000,
        }
    }
}

/// With which certificate connections are encrypted.
#[cfg(feature = "tls")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// A file with the certificate and those that lead to a known authority, in PEM.
    pub certificate: PathBuf,
    /// A file with the private key, in PEM.
    pub key: PathBuf,
}

/// How the state is kept for the next process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StateSettings {
    /// The file. It has the secret seed of the keys' hashes, and only its owner can read it.
    pub path: PathBuf,
    /// How often it is written. A process that is killed loses what was counted since.
    pub every: Duration,
    /// Whether the service must not start if the file can't be used. Otherwise the file is put
    /// aside, and limits begin anew.
    pub strict: bool,
}

impl StateSettings {
    /// Keeps the state in a file that is written every 5 seconds.
    ///
    /// ```
    /// use tollgate_server::{Settings, StateSettings};
    ///
    /// let mut settings = Settings::default();
    /// settings.state = Some(StateSettings::new("limits.state"));
    /// ```
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            every: Duration::from_secs(5),
            strict: false,
        }
    }
}

/// How connections are limited, so that slow and hostile clients leave room for others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// How many connections are open at once. Others are closed as soon as they come, and those
    /// that have been quiet for a second make room for the next ones. If the process may open fewer
    /// files, there are fewer.
    pub connections: usize,
    /// The most bytes that the headers of a request have.
    pub head_bytes: usize,
    /// The most bytes that the body of a request has.
    pub body_bytes: usize,
    /// How long a request's body may take, and how long an answer may wait for a client that does
    /// not read: it is closed after one to two times as long.
    pub body_time: Duration,
    /// How long a connection stays open between requests. The first request has to come within
    /// [`body_time`](Self::body_time).
    pub idle: Duration,
    /// How many bytes the bodies of all requests that are being read take, and all answers that
    /// clients have not taken. Others are refused.
    pub pending_bytes: usize,
    /// How long requests may take to end when the service stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_bytes: 32 * 1024,
            body_bytes: 1024 * 1024,
            body_time: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            pending_bytes: 64 * 1024 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Returns the limits of the address of operators, of whom there are few.
    pub(crate) fn of_operators(&self) -> Self {
        let mut limits = self.clone();
        limits.connections = limits.connections.min(256);
        limits.drain = limits.drain.min(Duration::from_secs(1));
        limits
    }
}
