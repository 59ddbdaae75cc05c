//! When windows begin.

use core::time::Duration;

/// What the windows' beginnings are counted from, and how much later they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alignment {
    pub(super) epoch: Epoch,
    pub(super) offset: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Epoch {
    /// The clock's tick 0.
    Clock,
    /// 1970-01-01 in UTC, on a clock whose tick 0 is so much after it.
    Unix(Duration),
    /// The same, on a clock that knows it: the system's, unless another one was given.
    Utc(Duration),
}

impl Alignment {
    /// To the clock's tick 0.
    pub(super) const CLOCK: Self = Self {
        epoch: Epoch::Clock,
        offset: Duration::ZERO,
    };

    pub(super) const fn to(self, epoch: Epoch) -> Self {
        Self { epoch, ..self }
    }

    /// A sum that has no text is told as what is left of it beside whole periods.
    pub(super) const fn later(self, offset: Duration, period: u64) -> Self {
        let sum = self.offset.as_nanos() + offset.as_nanos();
        let sum = if sum > u64::MAX as u128 {
            sum % period as u128
        } else {
            sum
        };
        Self {
            offset: Duration::from_nanos(sum as u64),
            ..self
        }
    }

    /// To a clock whose tick 0 is so much after 1970, as far as that has a text.
    pub(super) const fn to_unix(self, origin: Duration, period: u64) -> Self {
        let nanos = origin.as_nanos();
        let origin = if nanos > u64::MAX as u128 {
            Duration::from_nanos((nanos % period as u128) as u64)
        } else {
            origin
        };
        self.to(Epoch::Unix(origin))
    }

    /// How long before tick 0 the window began in which tick 0 is.
    pub(super) const fn lead(self, period: u64) -> u64 {
        let since_epoch = match self.epoch {
            Epoch::Clock => 0,
            Epoch::Unix(origin) | Epoch::Utc(origin) => origin.as_nanos() % period as u128,
        };
        let offset = self.offset.as_nanos() % period as u128;
        ((since_epoch + period as u128 - offset) % period as u128) as u64
    }
}

/// The methods that say when windows begin, for an algorithm with an `alignment` and a const
/// `fn aligned(self, Alignment) -> Self`.
macro_rules! alignable {
    ($algorithm:ident) => {
        impl $algorithm {
            pub(super) const fn alignment(&self) -> Alignment {
                self.alignment
            }

            /// How long before tick 0 the window began in which tick 0 is.
            #[cfg(feature = "audit")]
            pub(crate) const fn lead(&self) -> u64 {
                // The period was checked when the algorithm was made: it fits.
                self.alignment.lead(self.quota.period().as_nanos() as u64)
            }

            /// All windows begin so much later than they else would.
            ///
            /// ```
            /// use std::time::Duration;
            /// use tollgate::clock::NoClock;
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Limiter, Quota, Tick};")]
            ///
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            #[doc = concat!("let windows = ", stringify!($algorithm), "::new(Quota::per_second(2))?;")]
            /// let windows = windows.offset(Duration::from_millis(300));
            /// let limiter = Limiter::unstarted(windows, NoClock);
            /// let now = Tick::from_nanos(200_000_000);
            /// limiter.try_acquire_n_at(2, now)?;
            /// // The window ends at 300 ms.
            /// assert!(limiter.at(now).time_until(1) >= Some(Duration::from_millis(100)));
            /// # Ok(())
            /// # }
            /// ```
            #[must_use]
            pub const fn offset(self, offset: core::time::Duration) -> Self {
                let period = self.quota.period().as_nanos() as u64;
                self.aligned(self.alignment.later(offset, period))
            }

            /// Windows begin at the multiples of the period since 1970-01-01, 00:00 UTC, on a clock
            /// whose tick 0 is `origin` after that moment; an [`offset`](Self::offset) is added.
            ///
            /// ```
            /// use std::time::Duration;
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Quota};")]
            ///
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// // The clock was started at a quarter to midnight.
            /// let origin = Duration::from_secs(20_000 * 86_400 - 900);
            #[doc = concat!("let daily = ", stringify!($algorithm), "::new(Quota::per_day(1000))?.aligned_to_unix(origin);")]
            /// # let _ = daily;
            /// # Ok(())
            /// # }
            /// ```
            #[must_use]
            pub const fn aligned_to_unix(self, origin: core::time::Duration) -> Self {
                let period = self.quota.period().as_nanos() as u64;
                self.aligned(self.alignment.to_unix(origin, period))
            }

            /// Windows begin at the multiples of the period in UTC, on the
            /// [`SystemClock`](crate::clock::SystemClock): a quota per day starts anew at midnight.
            /// Add an [`offset`](Self::offset) for midnight elsewhere. For other clocks use
            /// [`aligned_to_utc_on`](Self::aligned_to_utc_on).
            ///
            /// The system's clocks are compared once in a process. What the time of day is set to
            /// afterwards is not followed: limits keep to the clock that can't be set.
            ///
            /// ```
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Limiter, Quota};")]
            ///
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            #[doc = concat!("let daily = ", stringify!($algorithm), "::new(Quota::per_day(1000))?.aligned_to_utc();")]
            /// let limiter = Limiter::new(daily);
            /// assert!(limiter.try_acquire().is_ok());
            /// # Ok(())
            /// # }
            /// ```
            #[cfg(feature = "std")]
            #[must_use]
            pub fn aligned_to_utc(self) -> Self {
                self.aligned_to_utc_on(&crate::clock::SystemClock)
            }

            /// Windows begin at the multiples of the period in UTC, on this clock, which must be
            /// that of the limiter: a quota per day starts anew at midnight. Add an
            /// [`offset`](Self::offset) for midnight elsewhere.
            ///
            /// As text it is `utc`, which is read for the
            /// [`SystemClock`](crate::clock::SystemClock); then use
            /// [`AnyAlgorithm::with_utc_of`](crate::AnyAlgorithm::with_utc_of).
            ///
            /// ```
            /// use std::time::Duration;
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Limiter, ManualClock, Quota};")]
            ///
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let hour = Duration::from_secs(3600);
            /// let clock = ManualClock::with_unix_origin(20_000 * 24 * hour + 22 * hour);
            #[doc = concat!("let daily = ", stringify!($algorithm), "::new(Quota::per_day(9))?.aligned_to_utc_on(&clock);")]
            /// let limiter = Limiter::with_clock(daily, clock);
            /// limiter.try_acquire_n(9)?;
            /// // Midnight is in two hours.
            /// assert!(limiter.time_until(1) >= Some(2 * hour));
            /// # Ok(())
            /// # }
            /// ```
            #[must_use]
            pub fn aligned_to_utc_on(self, clock: &impl crate::clock::UtcClock) -> Self {
                self.aligned_to_epoch(clock.unix_origin())
            }

            fn aligned_to_epoch(self, origin: core::time::Duration) -> Self {
                self.aligned(self.alignment.to(crate::algorithm::alignment::Epoch::Utc(origin)))
            }

            /// The same on a clock with another origin, if it is aligned to UTC.
            pub(super) fn with_utc_origin(self, origin: core::time::Duration) -> Self {
                match self.alignment.epoch {
                    crate::algorithm::alignment::Epoch::Utc(_) => self.aligned_to_epoch(origin),
                    _ => self,
                }
            }
        }
    };
}
pub(super) use alignable;

/// What windows of one limit need for a part of it: to be split, or to lend.
macro_rules! limited {
    ($window:ident) => {
        impl $window {
            pub(super) const fn limit(&self) -> u64 {
                self.quota.permits()
            }

            /// The least limit of a window of this length: a permit in 365 days.
            pub(super) fn least(&self) -> u64 {
                let period = self.quota.period().as_nanos();
                let least = period.div_ceil(crate::quota::MAX_INTERVAL_NS.into());
                u64::try_from(least).unwrap_or(1).clamp(1, self.limit())
            }

            /// The same with another limit.
            pub(super) fn of_limit(&self, n: u64) -> Result<Self, ConfigError> {
                self.with_quota(Quota::per(n, self.quota.period()))
            }
        }
    };
}
pub(super) use limited;
