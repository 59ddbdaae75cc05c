//! [`Limit`]: what a server counts.

pub(crate) mod bounds;
pub(crate) mod error;
pub(crate) mod fallback_error;
pub(crate) mod kind;
pub(crate) mod rate;
pub(crate) mod text;

use std::fmt;
use std::time::Duration;

use tollgate::Quota;

use crate::limit::bounds::MAX_SPAN;
use crate::limit::error::LimitError;
use crate::limit::kind::{
    Bucket, Kind, Log, MOST_COUNTED, MOST_LOGGED, MOST_SLOTS, Shape, Slots, Window,
};
use crate::limit::rate::Rate;

/// What a server counts for each key: an algorithm with its numbers.
///
/// A [`Quota`] alone is a token bucket. A limit can be parsed from text, and written as text:
///
/// ```text
/// [token-bucket]  QUOTA         or gcra, or leaky-meter: the three decide alike
/// leaky-queue     QUOTA [free NUMBER]
/// fixed-window    QUOTA [utc]   or QUOTA first-hit
/// sliding-window  QUOTA [utc]
/// sliding-log     QUOTA
/// concurrency     NUMBER lease TIME
/// ```
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
/// use tollgate_redis::Limit;
///
/// # fn main() -> Result<(), tollgate_redis::LimitError> {
/// let a_day = Limit::fixed_window(Quota::per_day(10_000))?;
/// let attempts = Limit::first_hit_window(Quota::per_minute(5))?;
/// let uploads = Limit::concurrency(3, Duration::from_secs(60))?;
/// assert_eq!(uploads.permits(), 3);
/// assert_eq!("concurrency 3 lease 60s".parse(), Ok(uploads));
/// assert_eq!(a_day.to_string(), "fixed-window 10000/d utc");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    pub(crate) kind: Kind,
    /// The quota that local shares divide.
    pub(crate) quota: Quota,
}

impl Limit {
    /// Creates a token bucket, a GCRA or a leaky bucket as a meter: the three decide alike.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// assert!(Limit::token_bucket(Quota::per(7, Duration::from_nanos(3))).is_ok());
    /// let error = Limit::token_bucket(Quota::per_day(1).burst(20_000)).unwrap_err();
    /// assert!(error.to_string().starts_with("burst is 20000, but must be from 1 to 18262"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the server can't count the quota exactly for 50 years.
    pub fn token_bucket(quota: Quota) -> Result<Self, LimitError> {
        let rate = Rate::new(quota)?;
        let kind = Kind::Bucket(Bucket { rate, free: None });
        Ok(Self { kind, quota })
    }

    /// Creates a leaky bucket as a queue, which delays requests so that they leave at the quota's
    /// rate. [`Granted::delay`](tollgate::Granted::delay) says how long each must wait. The first
    /// `free` permits ahead of the rate need not wait.
    ///
    /// An [`undo`](crate::RedisKey::undo) of the last grant in line gives all its permits back. If
    /// others wait behind it, it gives none back, because they were told when to leave. So does a
    /// [`settle`](crate::RedisKey::settle) with unused permits.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// assert!(Limit::leaky_queue(Quota::per_second(10).burst(5), 1).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the server can't count the quota exactly for 50 years.
    pub fn leaky_queue(quota: Quota, free: u64) -> Result<Self, LimitError> {
        let rate = Rate::new(quota)?;
        let free = Some(free);
        let kind = Kind::Bucket(Bucket { rate, free });
        Ok(Self { kind, quota })
    }

    /// Creates fixed windows, which begin at multiples of the period since 1970-01-01 00:00 UTC.
    ///
    /// If the period of the limit changes, the new period applies to a key when its current window
    /// is over.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// let error = Limit::fixed_window(Quota::per_day(5).burst(9)).unwrap_err();
    /// assert_eq!(error.field(), "burst");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the server can't count the quota exactly for 50 years, or if its burst is
    /// not `n`.
    pub fn fixed_window(quota: Quota) -> Result<Self, LimitError> {
        window(quota, Shape::Aligned)
    }

    /// Creates fixed windows that begin with their first permit. A window opens when a permit is
    /// taken while none is open, and closes early if all its permits are returned.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// assert!(Limit::first_hit_window(Quota::per_minute(5)).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`fixed_window`](Self::fixed_window).
    pub fn first_hit_window(quota: Quota) -> Result<Self, LimitError> {
        window(quota, Shape::FirstHit)
    }

    /// Creates a sliding window: at most about `n` permits in each period.
    ///
    /// It estimates the permits of the last period from the counts of two windows, as
    /// [`tollgate::SlidingWindow`] does. Windows begin as [fixed windows](Self::fixed_window) do.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// assert!(Limit::sliding_window(Quota::per_minute(1000)).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`fixed_window`](Self::fixed_window).
    pub fn sliding_window(quota: Quota) -> Result<Self, LimitError> {
        window(quota, Shape::Slides)
    }

    /// Creates a sliding log: at most `n` permits in every period, wherever it begins.
    ///
    /// The server stores an entry for each permit, and decides nothing else while it writes them.
    /// So `n` can be at most 20 000. A [sliding window](Self::sliding_window) or a bucket can have
    /// more.
    ///
    /// If the server's clock goes back, a permit counts at the last one before it, as in
    /// [`tollgate::SlidingLog`]. A [`refund`](crate::RedisKey::refund) gives back the oldest
    /// permits of the period. With a [`charge`](crate::RedisKey::charge), at most 2 `n` permits are
    /// counted.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// let error = Limit::sliding_log(Quota::per_day(20_001)).unwrap_err();
    /// assert!(error.to_string().starts_with("n is 20001, but must be at most 20000"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if there are too many permits, or as for
    /// [`fixed_window`](Self::fixed_window).
    pub fn sliding_log(quota: Quota) -> Result<Self, LimitError> {
        let n = quota.permits();
        if n > MOST_LOGGED {
            let max = MOST_LOGGED;
            return Err(LimitError::TooManyLogged { n, max });
        }
        let (limit, period) = counted(quota)?;
        let kind = Kind::Log(Log { limit, period });
        Ok(Self { kind, quota })
    }

    /// Creates a limit on concurrency: at most `limit` slots are held at a time.
    ///
    /// [`try_enter`](crate::RedisKey::try_enter) takes a slot with a [guard](crate::RedisGuard),
    /// which renews it while it lives and gives it back when it is dropped. A slot that is not
    /// renewed is free again when its lease ends, so a client that crashes holds it for no longer.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate_redis::client::Connection;
    /// use tollgate_redis::{Fallback, Keys, Limit, RedisLimiter, RedisServer};
    ///
    /// # async fn upload() {}
    /// # type Error = Box<dyn std::error::Error>;
    /// # async fn show(server: Arc<RedisServer<Connection>>) -> Result<(), Error> {
    /// let limit = Limit::concurrency(3, Duration::from_secs(60))?;
    /// let keys = Keys::new("api")?;
    /// let uploads = RedisLimiter::new(server, &keys, "uploads", limit, Fallback::Closed)?;
    ///
    /// let guard = uploads.key("alice").try_enter().await?;
    /// tokio::select! {
    ///     () = upload() => drop(guard),
    ///     () = guard.lost() => return Err("another client may hold the slot".into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Without a guard, [`try_acquire`](crate::RedisKey::try_acquire) takes a slot,
    /// [`renew`](crate::RedisKey::renew) begins its lease again, and
    /// [`undo`](crate::RedisKey::undo) gives it back.
    ///
    /// A request without a free slot is denied with [`Denied::Busy`](tollgate::Denied::Busy),
    /// because it is not known when a slot becomes free. A [`refund`](crate::RedisKey::refund)
    /// frees no slot: it does not say whose. What [`settle`](crate::RedisKey::settle) keeps or adds
    /// is held until its lease ends.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::Limit;
    ///
    /// let error = Limit::concurrency(3, Duration::ZERO).unwrap_err();
    /// assert_eq!(error.field(), "lease");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the limit is not from 1 to 2000, or if the lease is not from 1 ms to 50
    /// years.
    pub fn concurrency(limit: u64, lease: Duration) -> Result<Self, LimitError> {
        if limit == 0 || limit > MOST_SLOTS {
            let max = MOST_SLOTS;
            return Err(LimitError::Slots { limit, max });
        }
        if lease < Duration::from_millis(1) || lease > MAX_SPAN {
            return Err(LimitError::Lease { lease });
        }
        let quota = Quota::per(limit, lease);
        let lease = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX);
        let kind = Kind::Slots(Slots { limit, lease });
        Ok(Self { kind, quota })
    }

    /// Returns the most permits that can be taken at once: the burst, `n` or the slots.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// # fn main() -> Result<(), tollgate_redis::LimitError> {
    /// assert_eq!(Limit::token_bucket(Quota::per_second(5).burst(9))?.permits(), 9);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.kind.most()
    }

    /// Returns the quota of a rate, or `None` of a limit on concurrency.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// # fn main() -> Result<(), tollgate_redis::LimitError> {
    /// let quota = Quota::per_minute(5);
    /// assert_eq!(Limit::sliding_window(quota)?.quota(), Some(quota));
    /// assert_eq!(Limit::concurrency(3, Duration::from_secs(60))?.quota(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn quota(&self) -> Option<Quota> {
        match self.kind {
            Kind::Slots(_) => None,
            _ => Some(self.quota),
        }
    }
}

fn window(quota: Quota, shape: Shape) -> Result<Limit, LimitError> {
    let (limit, period) = counted(quota)?;
    let kind = Kind::Window(Window {
        limit,
        period,
        shape,
    });
    Ok(Limit { kind, quota })
}

/// Returns the permits and the microseconds of a quota without a burst of its own.
fn counted(quota: Quota) -> Result<(u64, u64), LimitError> {
    let (n, period, burst) = (quota.permits(), quota.period(), quota.burst_size());
    if n == 0 {
        return Err(LimitError::ZeroPermits);
    }
    if period.is_zero() {
        return Err(LimitError::ZeroPeriod);
    }
    if period > MAX_SPAN {
        return Err(LimitError::PeriodTooLong { period });
    }
    if period.subsec_nanos() % 1000 > 0 {
        return Err(LimitError::PeriodNotWhole { period });
    }
    if n > MOST_COUNTED {
        let max = MOST_COUNTED;
        return Err(LimitError::TooManyPermits { n, max });
    }
    if burst != n {
        return Err(LimitError::BurstOfWindow { burst, n });
    }
    let initial = quota.initial_permits();
    if initial != burst {
        return Err(LimitError::Initial { initial, burst });
    }
    let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
    Ok((n, period))
}

impl TryFrom<Quota> for Limit {
    type Error = LimitError;

    /// Creates a token bucket.
    fn try_from(quota: Quota) -> Result<Self, LimitError> {
        Self::token_bucket(quota)
    }
}

impl From<std::convert::Infallible> for LimitError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}
