use std::error::Error;
use std::fmt;
use std::time::Duration;

use tollgate::Denied;

/// Why a request has no answer.
///
/// ```
/// use std::time::Duration;
/// use tollgate_client::ClientLimitError;
///
/// let wait = Duration::from_secs(90);
/// let error = ClientLimitError::<std::io::Error>::WaitTooLong { wait, max_wait: wait / 3 };
/// assert_eq!(error.to_string(), "the request would have to wait 90s, and max_wait is 30s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientLimitError<E> {
    /// The error of the inner service, after the last attempt.
    Inner(E),
    /// The request would have to wait too long before it may be sent. It has not been sent, or an
    /// earlier attempt was refused or failed.
    WaitTooLong {
        /// How long it has waited and would have to wait, as far as is known.
        wait: Duration,
        /// The longest wait that is allowed.
        max_wait: Duration,
    },
    /// Your own quota denies the request, and waiting does not help. It has not been sent, or an
    /// earlier attempt was refused or failed.
    Quota(Denied),
}

impl<E> fmt::Display for ClientLimitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inner(_) => write!(f, "the request failed"),
            Self::WaitTooLong { wait, max_wait } => write!(
                f,
                "the request would have to wait {wait:?}, and max_wait is {max_wait:?}"
            ),
            Self::Quota(_) => write!(f, "the client's own quota denies the request"),
        }
    }
}

impl<E: Error + 'static> Error for ClientLimitError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Inner(error) => Some(error),
            Self::WaitTooLong { .. } => None,
            Self::Quota(denied) => Some(denied),
        }
    }
}
