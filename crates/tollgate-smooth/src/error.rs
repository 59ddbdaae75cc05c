use core::error::Error;
use core::fmt;
use core::time::Duration;

/// An invalid parameter of a smooth limiter, found when it is created or when its rate is set. Each
/// variant names a field, its value, and what is allowed.
///
/// ```
/// use tollgate_smooth::SmoothBursty;
///
/// let error = SmoothBursty::new(0.0).unwrap_err();
/// assert_eq!(error.field(), "rate");
/// assert_eq!(
///     error.to_string(),
///     "rate is 0, but must be from 1 in 365 days to 1000000000000 permits a second"
/// );
/// ```
///
/// `Debug` writes the same as `Display`, for a `main` that returns this error.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SmoothError {
    /// The rate is zero, negative, NaN, below one in 365 days, or too large.
    Rate {
        /// The value that was asked for.
        rate: f64,
        /// The smallest rate.
        min: f64,
        /// The largest rate. With more, too many permits could be stored.
        max: f64,
    },
    /// `max_burst` is above 365 days, or stores too many permits at this rate.
    MaxBurst {
        /// The value that was asked for.
        max_burst: Duration,
        /// The longest time allowed at this rate.
        max: Duration,
    },
    /// `warm_up` is above 365 days, or stores too many permits at this rate.
    WarmUp {
        /// The value that was asked for.
        warm_up: Duration,
        /// The longest time allowed at this rate.
        max: Duration,
    },
    /// The cold factor is too large, NaN, or below 1, which would make a cold limiter faster than a
    /// warm one.
    ColdFactor {
        /// The value that was asked for.
        cold_factor: f64,
        /// The largest factor.
        max: f64,
    },
}

impl SmoothError {
    /// Returns the name of the invalid field.
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
