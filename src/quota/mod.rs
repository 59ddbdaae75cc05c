//! Quotas: how many permits per period, with a burst.

mod error;
mod text;

use core::hash::{Hash, Hasher};
use core::time::Duration;

pub use error::QuotaError;
pub use text::ParseQuotaError;
pub(crate) use text::{Reader, Why, write_period};

/// Every limiter works for at least 50 years.
pub(crate) const MIN_HORIZON_NS: u64 = 50 * 36525 * 24 * 36 * 1_000_000_000;

/// The longest time between two permits: 365 days.
pub(crate) const MAX_INTERVAL_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The most permits per nanosecond.
pub(crate) const MAX_PER_NS: u64 = 10;

/// The largest burst.
pub(crate) const MAX_BURST: u64 = 1 << 40;

/// `n` permits every `period`, with a burst.
///
/// The rate is kept as given and never rounded. A quota is checked when an algorithm is made from
/// it.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// const API: Quota = Quota::per_second(100).burst(20);
/// assert_eq!(API.permits(), 100);
/// assert_eq!(API.burst_size(), 20);
///
/// // As text, in both directions:
/// assert_eq!("100/s burst 20".parse(), Ok(API));
/// assert_eq!(API.to_string(), "100/s burst 20");
/// assert_eq!(Quota::per(10, Duration::from_millis(250)).to_string(), "10/250ms");
/// assert_eq!(Quota::per_minute(1).initial(0).to_string(), "1/min initial 0");
/// ```
///
/// # As text
///
/// `RATE PER PERIOD`, then optionally `burst NUMBER` and `initial NUMBER`, each at most once and in
/// either order:
///
/// | part | what is accepted | examples |
/// |---|---|---|
/// | `RATE`, `NUMBER` | digits, with `_` between them, and an optional multiplier | `100`, `1_000`, `10k` |
/// | multiplier | `k`, `M`, `G` (1000 and its powers), `Ki`, `Mi`, `Gi` (1024 and its powers); a `B` after it, or alone, says that bytes are counted and changes nothing | `5MB`, `64 KiB`, `512B` |
/// | `PER` | `/` or `per` | `5/s`, `5 per s` |
/// | `PERIOD` | a unit, or digits and a unit | `min`, `250ms`, `2 minutes` |
/// | unit: nanosecond | `ns`, `nsec`, `nanosecond`, `nanoseconds` | |
/// | microsecond | `us`, `µs`, `usec`, `microsecond`, `microseconds` | |
/// | millisecond | `ms`, `msec`, `millisecond`, `milliseconds` | |
/// | second | `s`, `sec`, `secs`, `second`, `seconds` | |
/// | minute | `m`, `min`, `mins`, `minute`, `minutes` | |
/// | hour | `h`, `hr`, `hrs`, `hour`, `hours` | |
/// | day: 24 hours | `d`, `day`, `days` | |
///
/// White space is allowed between any two of these. Letters are case-sensitive: `M` is a million,
/// and `m` a minute. `Display` and `Debug` write the shortest form, which parses as an equal quota.
///
/// ```
/// use tollgate::Quota;
///
/// for (text, short) in [
///     ("100 per minute", "100/min"),
///     ("1 per 2 minutes", "1/2min"),
///     ("10k/hour burst 50", "10000/h burst 50"),
///     ("5 MiB/s burst 20MB", "5242880/s burst 20000000"),
/// ] {
///     assert_eq!(text.parse::<Quota>().map(|quota| quota.to_string()), Ok(short.into()));
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Quota {
    n: u64,
    period: Duration,
    burst: Option<u64>,
    initial: Option<u64>,
}

impl Quota {
    /// Creates a quota of `n` permits every `period`, with a burst of `n`.
    #[must_use]
    pub const fn per(n: u64, period: Duration) -> Self {
        Self {
            n,
            period,
            burst: None,
            initial: None,
        }
    }

    /// Creates a quota of `n` permits per second, with a burst of `n`.
    #[must_use]
    pub const fn per_second(n: u64) -> Self {
        Self::per(n, Duration::from_secs(1))
    }

    /// Creates a quota of `n` permits per minute, with a burst of `n`.
    #[must_use]
    pub const fn per_minute(n: u64) -> Self {
        Self::per(n, Duration::from_secs(60))
    }

    /// Creates a quota of `n` permits per hour, with a burst of `n`.
    #[must_use]
    pub const fn per_hour(n: u64) -> Self {
        Self::per(n, Duration::from_secs(3600))
    }

    /// Creates a quota of `n` permits every 24 hours, with a burst of `n`.
    #[must_use]
    pub const fn per_day(n: u64) -> Self {
        Self::per(n, Duration::from_secs(86_400))
    }

    /// Sets the burst: the most permits that can be taken at once.
    #[must_use]
    pub const fn burst(self, n: u64) -> Self {
        Self {
            burst: Some(n),
            ..self
        }
    }

    /// Sets how many permits are available at first, instead of a full burst.
    #[must_use]
    pub const fn initial(self, n: u64) -> Self {
        Self {
            initial: Some(n),
            ..self
        }
    }

    /// Returns the number of permits per period.
    pub const fn permits(&self) -> u64 {
        self.n
    }

    /// Returns the period.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Returns the burst: the most permits that can be taken at once.
    pub const fn burst_size(&self) -> u64 {
        match self.burst {
            Some(burst) => burst,
            None => self.n,
        }
    }

    /// Returns a bound for costs that are settled later by a number from outside: all permits at
    /// once, or as many as come in an hour if those are more. Then a number that is far too large
    /// stops a key for an hour, or for as long as its limit takes to fill, and not for good.
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_second(100).largest_settlement(), 360_000);
    /// assert_eq!(Quota::per_day(24).burst(50).largest_settlement(), 50);
    /// ```
    pub const fn largest_settlement(&self) -> u64 {
        const HOUR: u128 = Duration::from_secs(3600).as_nanos();
        let period = self.period.as_nanos();
        let in_an_hour = match period {
            0 => u64::MAX as u128,
            _ => self.n as u128 * HOUR / period,
        };
        let burst = self.burst_size();
        match in_an_hour > burst as u128 {
            true if in_an_hour > u64::MAX as u128 => u64::MAX,
            true => in_an_hour as u64,
            false => burst,
        }
    }

    /// Returns how many permits are available at first.
    pub const fn initial_permits(&self) -> u64 {
        match self.initial {
            Some(initial) => initial,
            None => self.burst_size(),
        }
    }

    /// Returns whether neither burst nor initial permits are set.
    pub(crate) const fn is_plain(&self) -> bool {
        self.burst.is_none() && self.initial.is_none()
    }

    /// Checks that the burst and the initial permits are both `n`, as a window requires.
    pub(crate) const fn check_is_window(&self) -> Result<(), QuotaError> {
        let (n, burst, initial) = (self.n, self.burst_size(), self.initial_permits());
        if burst != n {
            Err(QuotaError::BurstInWindow { burst, n })
        } else if initial != n {
            Err(QuotaError::InitialInWindow { initial, n })
        } else {
            Ok(())
        }
    }

    /// Returns the period in nanoseconds, if the period and the rate are within bounds.
    pub(crate) const fn valid_period_ns(&self) -> Result<u64, QuotaError> {
        let (n, period) = (self.n, self.period.as_nanos());
        if n == 0 {
            return Err(QuotaError::ZeroPermits);
        }
        if period == 0 {
            return Err(QuotaError::ZeroPeriod);
        }
        if period > u64::MAX as u128 {
            return Err(QuotaError::PeriodTooLong {
                period: self.period,
            });
        }
        if n as u128 > period * MAX_PER_NS as u128 {
            return Err(QuotaError::RateTooHigh {
                n,
                period: self.period,
            });
        }
        if period > n as u128 * MAX_INTERVAL_NS as u128 {
            return Err(QuotaError::RateTooLow {
                n,
                period: self.period,
            });
        }
        Ok(period as u64)
    }
}

/// Two quotas are equal if they mean the same, whether or not defaults are spelled out.
impl PartialEq for Quota {
    fn eq(&self, other: &Self) -> bool {
        self.n == other.n
            && self.period == other.period
            && self.burst_size() == other.burst_size()
            && self.initial_permits() == other.initial_permits()
    }
}

impl Eq for Quota {}

impl Hash for Quota {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.n, self.period).hash(state);
        (self.burst_size(), self.initial_permits()).hash(state);
    }
}

/// Implements serde's traits through the type's text.
#[cfg(feature = "serde")]
macro_rules! serde_as_text {
    ($type:ty, $expected:literal) => {
        const _: () = {
            use core::fmt;

            use serde::de::{Deserialize, Deserializer, Error, Visitor};
            use serde::ser::{Serialize, Serializer};

            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    struct Text;

                    impl Visitor<'_> for Text {
                        type Value = $type;

                        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                            f.write_str($expected)
                        }

                        fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                            text.parse().map_err(E::custom)
                        }
                    }

                    deserializer.deserialize_str(Text)
                }
            }
        };
    };
}
#[cfg(feature = "serde")]
pub(crate) use serde_as_text;

#[cfg(feature = "serde")]
serde_as_text!(Quota, "a quota such as \"100/s burst 20\"");
