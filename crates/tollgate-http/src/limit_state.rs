//! The state of one limit.

use std::time::Duration;

use tollgate::outcome::GrantInfo;
use tollgate::{Denied, Quota};

/// The state of one limit after its decision about a request, for the fields of an answer.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota};
/// use tollgate_http::LimitState;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let quota = Quota::per_minute(60).burst(10);
/// let limiter = Limiter::token_bucket(quota)?;
/// let granted = limiter.try_acquire()?;
/// let state = LimitState::of_rate("api", quota).granted(granted.info());
/// assert_eq!((state.quota(), state.remaining()), (10, 9));
/// assert_eq!(state.window(), Some(Duration::from_secs(10))); // 10 permits come back in 10 s
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct LimitState<'a> {
    name: &'a str,
    quota: u64,
    /// The rate, unless it is a concurrency.
    rate: Option<Quota>,
    unit: Unit,
    remaining: u64,
    reset: Option<Duration>,
    cost: u64,
    partition: Option<&'a [u8]>,
    denies: bool,
}

/// What a limit counts: the parameter `qu` of `RateLimit-Policy`.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_http::{LimitState, Unit};
///
/// let uploads = LimitState::of_rate("uploads", Quota::per_second(1_000_000));
/// assert_eq!(uploads.counts(), Unit::Requests);
/// assert_eq!(uploads.unit(Unit::ContentBytes).counts(), Unit::ContentBytes);
/// assert_eq!(LimitState::of_concurrency("served", 8).counts(), Unit::ConcurrentRequests);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, or permits of another kind.
    #[default]
    Requests,
    /// Bytes of contents.
    ContentBytes,
    /// Requests that are served at once.
    ConcurrentRequests,
}

impl<'a> LimitState<'a> {
    /// Creates the state of a rate that has all of its permits.
    pub const fn of_rate(name: &'a str, quota: Quota) -> Self {
        Self {
            name,
            quota: quota.burst_size(),
            rate: Some(quota),
            unit: Unit::Requests,
            remaining: quota.burst_size(),
            reset: Some(Duration::ZERO),
            cost: 1,
            partition: None,
            denies: false,
        }
    }

    /// Creates the state of a concurrency with no request inside.
    pub const fn of_concurrency(name: &'a str, limit: u64) -> Self {
        Self {
            name,
            quota: limit,
            rate: None,
            unit: Unit::ConcurrentRequests,
            remaining: limit,
            reset: None,
            cost: 1,
            partition: None,
            denies: false,
        }
    }

    /// Sets what the limit said when it granted the request.
    pub fn granted(self, info: GrantInfo) -> Self {
        Self {
            remaining: info.remaining(),
            reset: self.rate.is_some().then(|| info.reset_after()),
            cost: info.n(),
            denies: false,
            ..self
        }
    }

    /// Sets what the limit said when it denied the request, and how many permits are left.
    pub const fn denied(self, denied: &Denied, remaining: u64) -> Self {
        Self {
            remaining,
            reset: denied.retry_after(),
            cost: denied.requested(),
            denies: true,
            ..self
        }
    }

    /// Sets the request's cost and how many permits are left, for a limit that took nothing, for
    /// example because another limit denied the request.
    pub const fn untouched(self, cost: u64, remaining: u64) -> Self {
        Self {
            remaining,
            reset: None,
            cost,
            denies: false,
            ..self
        }
    }

    /// Sets what the limit counts.
    pub const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Sets the key of the partition, the parameter `pk`: it tells apart the clients of a limit.
    /// Clients see it, so it must not be a secret.
    pub const fn partition(self, key: &'a [u8]) -> Self {
        Self {
            partition: Some(key),
            ..self
        }
    }

    /// Returns the name of the limit.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the most permits that the limit grants at once.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the rate, or `None` for a concurrency.
    #[must_use]
    pub const fn rate(&self) -> Option<Quota> {
        self.rate
    }

    /// Returns what the limit counts.
    #[must_use]
    pub const fn counts(&self) -> Unit {
        self.unit
    }

    /// Returns how many permits are left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns how long until the limit has all of its permits again, if it granted the request. If
    /// it denied it, returns how long until it would grant it. `None` if that is not known.
    #[must_use]
    pub const fn reset(&self) -> Option<Duration> {
        self.reset
    }

    /// Returns how many permits the request asked for.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the key of the partition.
    #[must_use]
    pub const fn partition_key(&self) -> Option<&'a [u8]> {
        self.partition
    }

    /// Returns whether the limit denied the request.
    #[must_use]
    pub const fn denies(&self) -> bool {
        self.denies
    }

    /// Returns how long it takes until as many permits as the [`quota`](Self::quota) have come
    /// back, rounded up to a nanosecond. `None` for a concurrency.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_http::LimitState;
    ///
    /// let window = |quota| LimitState::of_rate("api", quota).window();
    /// assert_eq!(window(Quota::per_minute(60)), Some(Duration::from_secs(60)));
    /// assert_eq!(window(Quota::per_minute(60).burst(90)), Some(Duration::from_secs(90)));
    /// assert_eq!(window(Quota::per_second(3).burst(1)), Some(Duration::from_nanos(333_333_334)));
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        let rate = self.rate?;
        Some(time_of(self.quota, rate.permits(), rate.period()))
    }
}

/// Returns how long `burst` permits take at `n` every `period`, rounded up to a nanosecond.
fn time_of(burst: u64, n: u64, period: Duration) -> Duration {
    if n == 0 {
        return Duration::MAX;
    }
    if burst == n {
        return period;
    }
    // Most quotas fit one word, where a division takes a few cycles.
    let short = u64::try_from(period.as_nanos()).ok();
    if let Some(product) = short.and_then(|period| burst.checked_mul(period)) {
        return Duration::from_nanos(product.div_ceil(n));
    }
    let (burst, n, period) = (u128::from(burst), u128::from(n), period.as_nanos());
    // burst * period / n in parts, since the product may have more than 128 bits. Only the first
    // part can be too large: the others are below a period.
    let whole = (burst / n).saturating_mul(period);
    let rest = (burst % n) * (period / n) + ((burst % n) * (period % n)).div_ceil(n);
    from_nanos(whole.saturating_add(rest))
}

/// Returns a duration of this many nanoseconds, or the longest one.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => Duration::MAX,
    }
}
