//! Why a service can't start.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tollgate_policy::{FileError, Problems, StateError};

#[cfg(feature = "tls")]
use crate::tls::TlsError;

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
    /// The URL of the server in the policy's file can't be used.
    StoreUrl(Problems),
    /// The server in the policy's file can't be used. The text never contains its URL.
    Store(String),
    /// The file of the state can't be used, and the settings say that it must be.
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        why: StateError,
    },
    /// Another process has the file of the state.
    StateInUse {
        /// The file.
        path: PathBuf,
    },
    /// The certificate or its key can't be used.
    #[cfg(feature = "tls")]
    Tls(TlsError),
    /// The policy's file can't be watched.
    Watch(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::BuiltIn(problems) | Self::StoreUrl(problems) => problems.fmt(f),
            Self::Store(why) => write!(f, "the server of the table `store`: {why}"),
            Self::Listen { address, error } => write!(f, "can't listen at {address}: {error}"),
            Self::State { path, why } => {
                write!(f, "can't use the state in {}: {why}", path.display())
            }
            Self::StateInUse { path } => {
                let path = path.display();
                write!(
                    f,
                    "another process has the state in {path}: each needs a file of its own"
                )
            }
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.fmt(f),
            Self::Watch(error) => write!(f, "the policy's file can't be watched: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Policy(error) => error.source(),
            Self::BuiltIn(_) | Self::StoreUrl(_) | Self::Store(_) | Self::StateInUse { .. } => None,
            #[cfg(feature = "tls")]
            Self::Tls(error) => Some(error),
            Self::State { why, .. } => Some(why),
            Self::Listen { error, .. } | Self::Watch(error) => Some(error),
        }
    }
}

/// The reason why a [reload](crate::Handle::reload) is not complete.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The policy's file can't be read, or has errors. The policy stays as it is.
    Policy(FileError),
    /// The policy was reloaded, but the certificate or its key can't be used. The certificate stays
    /// as it is.
    #[cfg(feature = "tls")]
    Tls(TlsError),
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl Error for ReloadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Policy(error) => error.source(),
            #[cfg(feature = "tls")]
            Self::Tls(error) => Some(error),
        }
    }
}

impl From<FileError> for StartError {
    fn from(error: FileError) -> Self {
        Self::Policy(error)
    }
}
