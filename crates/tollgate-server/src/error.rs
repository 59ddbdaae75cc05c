//! Why a service can't start.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use tollgate_policy::{FileError, Problems};

/// The reason why a [`Server`](crate::Server) can't start.
///
/// ```
/// use tollgate_server::{Server, Settings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut settings = Settings::default();
/// settings.policy = Some("no/such/file.toml".into());
/// let error = Server::bind(settings).await.unwrap_err();
/// assert!(error.to_string().starts_with("can't read no/such/file.toml"));
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The policy's file can't be read, or has errors.
    Policy(FileError),
    /// The built-in policy has errors.
    BuiltIn(Problems),
    /// An address can't be listened at.
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The policy's file can't be watched.
    Watch(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::BuiltIn(problems) => problems.fmt(f),
            Self::Listen { address, error } => write!(f, "can't listen at {address}: {error}"),
            Self::Watch(error) => write!(f, "the policy's file can't be watched: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Policy(error) => error.source(),
            Self::BuiltIn(_) => None,
            Self::Listen { error, .. } | Self::Watch(error) => Some(error),
        }
    }
}

impl From<FileError> for StartError {
    fn from(error: FileError) -> Self {
        Self::Policy(error)
    }
}
