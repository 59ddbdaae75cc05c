//! The types that are made from a quota, and the checks of each.

use tollgate::error::QuotaError;

use crate::support::edges::MAX_BURST;
use crate::support::*;

pub(super) type Made = Result<AnyAlgorithm, QuotaError>;

/// A type that is made from a quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Bucket,
    Fixed,
    FirstHit,
    Sliding,
    Refills,
    Greedy,
}
use Kind::{Bucket, FirstHit, Fixed, Greedy, Refills, Sliding};

pub(super) const KINDS: [Kind; 6] = [Bucket, Fixed, FirstHit, Sliding, Refills, Greedy];

impl Kind {
    pub(super) fn make(self, quota: Quota) -> Made {
        Ok(match self {
            Bucket => TokenBucket::new(quota)?.into(),
            Fixed => FixedWindow::new(quota)?.into(),
            FirstHit => FixedWindow::new(quota)?.opened_by_first_hit()?.into(),
            Sliding => SlidingWindow::new(quota)?.into(),
            Refills => Intervals::new(quota)?.into(),
            Greedy => Intervals::new(quota)?.greedy()?.into(),
        })
    }

    fn is_window(self) -> bool {
        [Fixed, FirstHit, Sliding].contains(&self)
    }

    /// Returns the kind that refuses this quota: the type from which windows and intervals are made
    /// may refuse it itself.
    fn refuses(self, quota: Quota) -> Self {
        match self {
            FirstHit if Fixed.make(quota).is_err() => Fixed,
            Greedy if Refills.make(quota).is_err() => Refills,
            kind => kind,
        }
    }

    /// Returns the quota with all permits at once if the kind requires that. Otherwise returns it
    /// with a burst of one, so that the burst is never the cause of a refusal.
    pub(super) fn plain(self, n: u64, period: Duration) -> Quota {
        let quota = Quota::per(n, period);
        if self.is_window() {
            quota
        } else {
            quota.burst(1)
        }
    }
}

/// Returns whether the stated limit fits in a window of this length and one more does not, and this
/// limit fits in a window of the stated length and in none shorter. Lengths are multiples of some
/// nanoseconds, up to a longest one.
pub(crate) fn is_the_limit(
    error: QuotaError,
    quota: Quota,
    (nanos, longest): (u64, Duration),
    fits: impl Fn(u64, Duration) -> bool,
) -> bool {
    let QuotaError::LimitTooLarge {
        n,
        max,
        period,
        min_period,
    } = error
    else {
        return false;
    };
    let is_least = match min_period {
        Some(least) => {
            let less = least - Duration::from_nanos(nanos);
            least > period && fits(n, least) && !fits(n, less)
        }
        None => !fits(n, longest),
    };
    let is_most = (1..n).contains(&max) && fits(max, period) && !fits(max + 1, period);
    (n, period) == (quota.permits(), quota.period()) && is_most && is_least
}

/// Creates it in every way, and checks that an accepted quota is allowed and that a refusal is
/// right.
pub(super) fn check(kind: Kind, quota: Quota) -> Made {
    let (made, kind) = (kind.make(quota), kind.refuses(quota));
    if kind == Bucket {
        let made = made.map(|_| ());
        assert_eq!(Gcra::new(quota).map(|_| ()), made);
        assert_eq!(Limiter::token_bucket(quota).map(|_| ()), made);
        assert_eq!(Limiter::gcra(quota).map(|_| ()), made);
        assert_eq!(LeakyBucket::meter(quota).map(|_| ()), made);
        let meter = LeakyBucket::queue(quota).map(|queue| queue.free(u64::MAX));
        assert_eq!(meter, LeakyBucket::meter(quota));
    }
    let (n, period) = (quota.permits(), quota.period());
    let (burst, initial) = (quota.burst_size(), quota.initial_permits());
    // Between one permit in 365 days and ten a nanosecond.
    let (exact, ns) = (u128::from(n), period.as_nanos());
    let is_high = ns > 0 && exact > 10 * ns;
    let is_low = exact > 0 && ns > exact * u128::from(YEAR);
    let longest = Duration::from_nanos(if kind == Bucket {
        u64::MAX
    } else {
        FIFTY_YEARS
    });
    let error = match made {
        Ok(same) => {
            assert_eq!(same.quota(), quota);
            assert!(
                n > 0 && ns > 0 && !is_high && !is_low && period <= longest,
                "{quota}"
            );
            assert!(
                (1..=MAX_BURST).contains(&burst) || kind.is_window(),
                "{quota}"
            );
            assert!(initial <= burst, "{quota}");
            assert!((burst, initial) == (n, n) || !kind.is_window(), "{quota}");
            return made;
        }
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.starts_with(error.field()), "{text}");
    let is_true = match error {
        QuotaError::ZeroPermits => n == 0,
        QuotaError::ZeroPeriod => ns == 0,
        QuotaError::PeriodTooLong { period: p } => p == period && ns > u64::MAX.into(),
        QuotaError::RateTooHigh { n: m, period: p } => (m, p) == (n, period) && is_high,
        QuotaError::RateTooLow { n: m, period: p } => (m, p) == (n, period) && is_low,
        QuotaError::ZeroBurst => burst == 0 && !kind.is_window(),
        QuotaError::InitialAboveBurst {
            initial: i,
            burst: b,
        } => (i, b) == (initial, burst) && initial > burst && !kind.is_window(),
        QuotaError::BurstTooLarge { burst: b, max } => {
            let fits = |burst| kind.make(quota.burst(burst).initial(0)).is_ok();
            b == burst && max < burst && fits(1) && fits(max) && !fits(max + 1)
        }
        QuotaError::BurstInWindow { burst: b, n: m } => (b, m) == (burst, n) && burst != n,
        QuotaError::InitialInWindow { initial: i, n: m } => (i, m) == (initial, n) && i != n,
        QuotaError::WindowTooLong { period: p, max } => p == period && max == longest && p > max,
        QuotaError::LimitTooLarge { .. } => {
            let fits = |n, period| kind.make(kind.plain(n, period)).is_ok();
            is_the_limit(error, quota, (1, longest), fits)
        }
        _ => false,
    };
    assert!(is_true, "{kind:?} of {quota}: {text}");
    made
}
