use core::fmt;
use core::time::Duration;

/// A moment: nanoseconds since the start of the clock that read it.
///
/// 64 bits last 584 years. Arithmetic saturates or is checked; nothing wraps.
///
/// Each limiter has a *horizon*: the last tick at which it can still refill, at least 50 years
/// after the clock's start and before [`Tick::MAX`]. The limiter treats every later tick as the
/// horizon. The permits that are available there can be taken; after that, requests are denied as
/// [`Stuck`](crate::Denied::Stuck).
///
/// ```
/// use std::time::Duration;
/// use tollgate::Tick;
///
/// let start = Tick::from_nanos(500);
/// let later = start.saturating_add(Duration::from_micros(1));
/// assert_eq!(later.as_nanos(), 1_500);
/// assert_eq!(later.saturating_since(start), Duration::from_micros(1));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
///
/// At the end of time, past the horizon of any bucket:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Denied, Limiter, Quota, Tick};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::token_bucket(Quota::per_second(5))?;
/// let far = limiter.at(Tick::MAX.saturating_sub(Duration::from_nanos(2)));
/// assert!(far.try_acquire_n(5).is_ok());
/// assert!(matches!(far.try_acquire(), Err(Denied::Stuck { .. })));
/// assert_eq!(limiter.at(Tick::MAX).available(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The clock's start.
    pub const ZERO: Self = Self(0);
    /// The last moment.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the moment this many nanoseconds after the clock's start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the moment `wait` later, or [`Tick::MAX`] if that overflows.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }

    /// Returns the moment `wait` earlier, or [`Tick::ZERO`] if that is before the clock's start.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(wait)))
    }

    /// Returns the moment `wait` later, or `None` if that overflows.
    #[inline]
    pub const fn checked_add(self, wait: Duration) -> Option<Self> {
        let wait = wait.as_nanos();
        if wait > u64::MAX as u128 {
            return None;
        }
        match self.0.checked_add(wait as u64) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Returns a duration in nanoseconds, at most `u64::MAX`.
const fn nanos(wait: Duration) -> u64 {
    let nanos = wait.as_nanos();
    if nanos > u64::MAX as u128 {
        u64::MAX
    } else {
        nanos as u64
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tick({:?})", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Tick::MAX.saturating_add(Duration::MAX), Tick::MAX);
        assert_eq!(Tick::ZERO.saturating_add(Duration::MAX), Tick::MAX);
        assert_eq!(
            Tick::from_nanos(5).saturating_sub(Duration::MAX),
            Tick::ZERO
        );
        assert_eq!(Tick::MAX.checked_add(Duration::from_nanos(1)), None);
        assert_eq!(Tick::ZERO.checked_add(Duration::MAX), None);
        assert_eq!(
            Tick::ZERO.checked_add(Duration::from_nanos(u64::MAX)),
            Some(Tick::MAX)
        );
    }
}
