use core::error::Error;
use core::fmt;
use core::time::Duration;

/// Why a smooth limiter could not be made, or its rate not be set. Each variant names a field, what
/// it was, and what is allowed.
///
/// ```
/// use tollgate::smooth::SmoothBursty;
///
/// let error = SmoothBursty::new(0.0).unwrap_err();
/// assert_eq!(error.field(), "rate");
/// assert_eq!(
///     error.to_string(),
///     "rate is 0, but must be from 1 in 365 days to 1000000000000 permits a second"
/// );
/// ```
///
/// `Debug` says the same as `Display`, for a `main` that returns it.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SmoothError {
    /// A rate of nothing, of less than a permit in 365 days, of more than there can be, or no
    /// number.
    Rate {
        /// The value that was asked for.
        rate: f64,
        /// The least.
        min: f64,
        /// The most, for the store that it has.
        max: f64,
    },
    /// More to store than 365 days make, or more permits than can be counted at this rate.
    MaxBurst {
        /// The value that was asked for.
        max_burst: Duration,
        /// The most, at this rate.
        max: Duration,
    },
    /// More than 365 days to warm up, or more permits in them than can be counted at this rate.
    WarmUp {
        /// The value that was asked for.
        warm_up: Duration,
        /// The most, at this rate.
        max: Duration,
    },
    /// A cold limiter that would be faster than a warm one, or slower than there can be, or no
    /// number.
    ColdFactor {
        /// The value that was asked for.
        cold_factor: f64,
        /// The most.
        max: f64,
    },
}

impl SmoothError {
    /// The field that is wrong.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Rate { .. } => "rate",
            Self::MaxBurst { .. } => "max_burst",
            Self::WarmUp { .. } => "warm_up",
            Self::ColdFactor { .. } => "cold_factor",
        }
    }
}

impl fmt::Display for SmoothError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::Rate { rate, max, .. } => write!(
                f,
                "{field} is {rate}, but must be from 1 in 365 days to {max} permits a second"
            ),
            Self::MaxBurst { max_burst, max } => write!(
                f,
                "{field} is {max_burst:?}, but must be at most {max:?} at this rate"
            ),
            Self::WarmUp { warm_up, max } => write!(
                f,
                "{field} is {warm_up:?}, but must be at most {max:?} at this rate"
            ),
            Self::ColdFactor { cold_factor, max } => {
                write!(f, "{field} is {cold_factor}, but must be from 1 to {max}")
            }
        }
    }
}

impl fmt::Debug for SmoothError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for SmoothError {}
