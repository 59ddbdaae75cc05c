//! The client's own quota.

use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::TokioClock;
use tollgate::{Concurrency, ConfigError, Denied, Limiter, Quota, TokenBucket};

use super::memory::line;

/// The client's own quota, and the line before it. The first in line takes a permit when there is
/// one. No permit is taken in advance, so a request that gives up loses none.
#[derive(Debug)]
pub(super) struct OwnQuota {
    limiter: Limiter<TokenBucket, TokioClock>,
    pub(super) turns: Arc<Concurrency>,
}

impl OwnQuota {
    pub(super) fn new(quota: Quota) -> Result<Self, ConfigError> {
        let bucket = TokenBucket::new(quota)?;
        Ok(Self {
            limiter: Limiter::with_clock(bucket, TokioClock),
            turns: Arc::new(line()),
        })
    }

    /// Takes a permit. Only the first in line may.
    pub(super) fn take(&self) -> Result<(), Denied> {
        self.limiter.try_acquire().map(|_| ())
    }

    /// Returns the least time that a request waits with so many others ahead of it.
    pub(super) fn least_wait(&self, ahead: usize) -> Duration {
        let quota = self.limiter.quota();
        let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
        let missing = u128::from(ahead.saturating_sub(quota.burst_size()));
        let wait = missing.saturating_mul(quota.period().as_nanos());
        let wait = wait / u128::from(quota.permits().max(1));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}
