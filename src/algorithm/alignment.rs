//! The alignment of windows: where they begin on the clock.

use core::time::Duration;

/// The origin from which windows are counted, and an offset that is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alignment {
    pub(super) epoch: Epoch,
    pub(super) offset: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Epoch {
    /// The clock's tick 0.
    Clock,
    /// 1970-01-01 in UTC. The clock's tick 0 is this long after that moment.
    Unix(Duration),
    /// The same moment, on a clock that knows the time of day: the system clock by default.
    Utc(Duration),
}

impl Alignment {
    /// Windows begin at the clock's tick 0.
    pub(super) const CLOCK: Self = Self {
        epoch: Epoch::Clock,
        offset: Duration::ZERO,
    };

    pub(super) const fn to(self, epoch: Epoch) -> Self {
        Self { epoch, ..self }
    }

    /// Adds `offset`. A sum too large for the text form is reduced modulo the period.
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

    /// Aligns to Unix time on a clock whose tick 0 is `origin` after 1970. An `origin` that is too
    /// large for the text form is reduced modulo the period.
    pub(super) const fn to_unix(self, origin: Duration, period: u64) -> Self {
        let nanos = origin.as_nanos();
        let origin = if nanos > u64::MAX as u128 {
            Duration::from_nanos((nanos % period as u128) as u64)
        } else {
            origin
        };
        self.to(Epoch::Unix(origin))
    }

    /// Returns how long before tick 0 the window that contains tick 0 began.
    pub(super) const fn lead(self, period: u64) -> u64 {
        let since_epoch = match self.epoch {
            Epoch::Clock => 0,
            Epoch::Unix(origin) | Epoch::Utc(origin) => origin.as_nanos() % period as u128,
        };
        let offset = self.offset.as_nanos() % period as u128;
        ((since_epoch + period as u128 - offset) % period as u128) as u64
    }
}

/// Adds the methods that set where windows begin. The algorithm must have a field `alignment` and a
/// `const fn aligned(self, Alignment) -> Self`.
macro_rules! alignable {
    ($algorithm:ident) => {
        impl $algorithm {
            pub(super) const fn alignment(&self) -> Alignment {
                self.alignment
            }

            /// Returns how long before tick 0 the window that contains tick 0 began.
            ///
            /// ```
            /// use std::time::Duration;
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Quota};")]
            ///
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            #[doc = concat!("let windows = ", stringify!($algorithm), "::new(Quota::per_second(2))?;")]
            /// let windows = windows.offset(Duration::from_millis(300));
            /// assert_eq!(windows.lead(), Duration::from_millis(700));
            /// # Ok(())
            /// # }
            /// ```
            #[must_use]
            pub const fn lead(&self) -> core::time::Duration {
                // The period fits: it was checked when the algorithm was made.
                let period = self.quota.period().as_nanos() as u64;
                core::time::Duration::from_nanos(self.alignment.lead(period))
            }

            /// Delays the beginning of every window by `offset`. Repeated offsets add up.
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
            /// limiter.at(now).try_acquire_n(2)?;
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

            /// Aligns windows to the multiples of the period since 1970-01-01, 00:00 UTC, on a
            /// clock whose tick 0 is `origin` after that moment. An [`offset`](Self::offset) still
            /// applies.
            ///
            /// ```
            /// use std::time::Duration;
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Quota};")]
            ///
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
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

            /// Aligns windows to the multiples of the period in UTC, on the
            /// [`SystemClock`](crate::clock::SystemClock): a daily window begins at midnight UTC.
            /// For midnight in another time zone, add an [`offset`](Self::offset). For other clocks
            /// use [`aligned_to_utc_on`](Self::aligned_to_utc_on).
            ///
            /// The wall clock is read once per process. Later changes to it have no effect, because
            /// limits run on a monotonic clock.
            ///
            /// ```
            #[doc = concat!("use tollgate::{", stringify!($algorithm), ", Limiter, Quota};")]
            ///
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
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

            /// Aligns windows to the multiples of the period in UTC, on this clock, which must be
            /// the limiter's clock: a daily window begins at midnight UTC. For midnight in another
            /// time zone, add an [`offset`](Self::offset).
            ///
            /// In text form this is `utc`. Text knows no clock, so parsing it assumes the
            /// [`SystemClock`](crate::clock::SystemClock). For another clock, call
            /// [`AnyAlgorithm::with_utc_of`](crate::AnyAlgorithm::with_utc_of) afterwards.
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

            /// Moves windows that are aligned to UTC to a clock with this origin. Others stay as
            /// they are.
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

/// Adds the methods that are needed to split or lend a window's limit.
macro_rules! limited {
    ($window:ident) => {
        impl $window {
            pub(super) const fn limit(&self) -> u64 {
                self.quota.permits()
            }

            /// Returns the smallest limit that a window of this length may have: one permit in 365
            /// days.
            pub(super) fn least(&self) -> u64 {
                let period = self.quota.period().as_nanos();
                let least = period.div_ceil(crate::quota::MAX_INTERVAL_NS.into());
                u64::try_from(least).unwrap_or(1).clamp(1, self.limit())
            }

            /// Returns the same window with another limit.
            pub(super) fn of_limit(&self, n: u64) -> Result<Self, QuotaError> {
                self.with_quota(Quota::per(n, self.quota.period()))
            }
        }
    };
}
pub(super) use limited;
