//! Why a fallback is not accepted.

use std::error::Error;
use std::fmt;
use tollgate::error::LimiterError;

/// The reason why a fallback was not accepted.
///
/// ```
/// use tollgate_redis::FallbackError;
///
/// let error = FallbackError::NoProcesses;
/// assert_eq!(error.field(), "processes");
/// assert_eq!(error.to_string(), "processes is 0, but must be at least 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackError {
    /// An open fallback grants at most 0 permits, as
    /// [`Fallback::Closed`](crate::Fallback::Closed) does.
    NoPermits,
    /// The period of an open fallback is 0.
    ZeroPeriod,
    /// The number of processes is 0.
    NoProcesses,
    /// The limit is one on concurrency, which has no local share.
    /// [`Fallback::OpenAtMost`](crate::Fallback::OpenAtMost) bounds how many slots are granted in
    /// an outage.
    Concurrency,
    /// The local limiter does not accept its share of the quota, or the number of keys.
    Local(LimiterError),
}

impl FallbackError {
    /// Returns the name of the field that is wrong.
    ///
    /// ```
    /// use tollgate_redis::FallbackError;
    ///
    /// assert_eq!(FallbackError::NoPermits.field(), "at_most");
    /// ```
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::NoPermits => "at_most",
            Self::ZeroPeriod => "per",
            Self::NoProcesses => "processes",
            Self::Local(LimiterError::ZeroCapacity | LimiterError::CapacityTooLarge { .. }) => {
                "keys"
            }
            Self::Concurrency | Self::Local(_) => "fallback",
        }
    }
}

impl fmt::Display for FallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::NoPermits => write!(f, "{field} is 0, but must be at least 1: or use Closed"),
            Self::ZeroPeriod => write!(f, "{field} is 0, but must be longer"),
            Self::NoProcesses | Self::Local(LimiterError::ZeroCapacity) => {
                write!(f, "{field} is 0, but must be at least 1")
            }
            Self::Concurrency => write!(
                f,
                "{field} is Local, but must be Closed, Open or OpenAtMost for a limit on \
                 concurrency"
            ),
            Self::Local(LimiterError::CapacityTooLarge { capacity, max, .. }) => write!(
                f,
                "{field} is {capacity}, but must be from 1 to {max}, and there must be memory for \
                 them"
            ),
            Self::Local(error) => write!(f, "the local share: {error}"),
        }
    }
}

impl Error for FallbackError {}
