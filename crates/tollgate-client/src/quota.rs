//! The client's own quota.

use std::sync::Arc;
use std::time::Duration;

use tollgate::error::QuotaError;
use tollgate::traits::ReserveLimiter;
use tollgate::{Concurrency, Granted, Limiter, Quota, Tick, TokenBucket};

use super::clock::SinceMade;
use super::line::{Enter, Guard, Stop, line};

/// The client's own quota, and the line before it. Only the first request in line reserves a
/// permit, and waits until the permit is due. So a request that gives up has the last reservation,
/// and its permit comes back.
#[derive(Debug)]
pub(super) struct OwnQuota {
    limiter: Arc<Bucket>,
    turns: Arc<Concurrency>,
}

type Bucket = Limiter<TokenBucket, SinceMade>;

/// A timer may wake this late. If it does, the requests that wait catch up.
const LATE: Duration = Duration::from_millis(5);

/// A place in line, and the permit of the first one. Dropping it gives both back.
#[derive(Debug)]
pub(super) struct Permit {
    reserved: Option<(Arc<Bucket>, Granted)>,
    _turn: Guard,
}

impl OwnQuota {
    pub(super) fn new(quota: Quota, clock: SinceMade) -> Result<Self, QuotaError> {
        let bucket = TokenBucket::new(quota)?;
        Ok(Self {
            limiter: Arc::new(Limiter::with_clock(bucket, clock)),
            turns: line(),
        })
    }

    /// Returns a place in line, if no other request stands there.
    pub(super) fn try_enter(&self) -> Option<Permit> {
        self.turns.try_enter_owned(1).ok().map(Permit::new)
    }

    /// Stands in line.
    pub(super) fn enter(&self) -> Enter {
        self.turns.enter_owned(1)
    }

    /// Takes a permit for the first in line, which has waited since `began`. If the permit is due
    /// later, reserves it and returns when.
    pub(super) fn take(&self, permit: &mut Permit, began: Tick, now: Tick) -> Result<(), Stop> {
        let (limiter, granted) = match permit.reserved.take() {
            Some(reserved) => reserved,
            None => {
                // If the request before woke late, this one is due an interval after that request
                // was due.
                let since = began.max(now.saturating_sub(LATE));
                let granted = self.limiter.reserve_until_at(1, Tick::MAX, since);
                let granted = granted.map_err(Stop::Denied)?;
                (Arc::clone(&self.limiter), granted)
            }
        };
        let due = granted.due();
        if due > now {
            permit.reserved = Some((limiter, granted));
            return Err(Stop::Permit(due));
        }
        Ok(())
    }

    /// Returns the least time that a request waits with `ahead` others before it.
    pub(super) fn least_wait(&self, ahead: usize) -> Duration {
        let quota = self.limiter.quota();
        let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
        let missing = u128::from(ahead.saturating_sub(quota.burst_size()));
        let wait = missing.saturating_mul(quota.period().as_nanos());
        let wait = wait / u128::from(quota.permits().max(1));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

impl Permit {
    pub(super) const fn new(turn: Guard) -> Self {
        Self {
            reserved: None,
            _turn: turn,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((limiter, granted)) = self.reserved.take() {
            let n = granted.n();
            _ = limiter.cancel_at(granted, n, limiter.now());
        }
    }
}
