//! What a service is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

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
            limits: Limits::default(),
            hold_for: Duration::from_secs(60),
            most_held: 100_000,
        }
    }
}

/// How connections are limited, so that slow and hostile clients leave room for others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// How many connections are open at once. Others are closed as soon as they come.
    pub connections: usize,
    /// The most bytes that the headers of a request have.
    pub head_bytes: usize,
    /// The most bytes that the body of a request has.
    pub body_bytes: usize,
    /// How long a request's body may take.
    pub body_time: Duration,
    /// How long a connection stays open without a request, or with one that has only begun.
    pub idle: Duration,
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
            drain: Duration::from_secs(10),
        }
    }
}
