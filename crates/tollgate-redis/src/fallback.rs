//! The fallbacks of one limit: what it decides by itself while the server does not answer.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::outcome::Settled;
use tollgate::{
    AnyAlgorithm, Denied, FixedWindow, Granted, Keyed, Quota, SlidingWindow, Tick, TokenBucket,
};

use crate::kind::{Kind, Shape, Window};
use crate::limit::Limit;
use crate::outage::{Decider, Episode, Fallback, FallbackError, OpenBound, Outage};

/// A fallback with its state.
#[derive(Debug)]
pub(crate) enum Deputy {
    Closed,
    Open {
        at_most: u64,
        bound: Mutex<OpenBound>,
    },
    Local(Box<Keyed<AnyAlgorithm>>),
}

impl Deputy {
    pub(crate) fn new(fallback: Fallback, limit: &Limit) -> Result<Self, FallbackError> {
        Ok(match fallback {
            Fallback::Closed => Self::Closed,
            Fallback::Open { at_most } => Self::Open {
                at_most,
                bound: Mutex::default(),
            },
            Fallback::Local { processes: 0, .. } => return Err(FallbackError::NoProcesses),
            Fallback::Local { processes, keys } => {
                let share = share(limit, processes)?;
                let keyed = Keyed::new(share, keys).map_err(FallbackError::Local)?;
                Self::Local(Box::new(keyed))
            }
        })
    }

    pub(crate) const fn decider(&self) -> Decider {
        match self {
            Self::Closed => Decider::Closed,
            Self::Open { .. } => Decider::Open,
            Self::Local(_) => Decider::Local,
        }
    }

    /// Takes permits of a key.
    pub(crate) fn take(&self, key: &[u8], n: u64, outage: Outage) -> Result<Granted, Denied> {
        match self {
            Self::Closed => Err(Denied::later(n, outage.retry_after)),
            Self::Open { at_most, bound } => {
                let left = lock(bound).take(outage, n, *at_most)?;
                Ok(Granted::new(n, Tick::from_nanos(0)).with_room(left, NonZeroU64::MIN))
            }
            Self::Local(limiter) => {
                let taken = limiter.key(key).try_acquire_n(n);
                taken.map_err(|denied| temporary(denied, outage))
            }
        }
    }

    /// Returns whether [`take`](Self::take) would take the permits.
    pub(crate) fn check(&self, key: &[u8], n: u64, outage: Outage) -> Result<(), Denied> {
        match self {
            Self::Closed => Err(Denied::later(n, outage.retry_after)),
            Self::Open { at_most, bound } => {
                let mut bound = lock(bound);
                bound.take(outage, n, *at_most)?;
                bound.give(outage.episode, n);
                Ok(())
            }
            Self::Local(limiter) => {
                let checked = limiter.key(key).check_n(n);
                checked.map_err(|denied| temporary(denied, outage))
            }
        }
    }

    /// Gives back what [`take`](Self::take) took in this episode.
    pub(crate) fn undo(&self, key: &[u8], granted: Granted, episode: Episode) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Open { bound, .. } => lock(bound).give(episode, granted.n()),
            Self::Local(limiter) => limiter.key(key).undo(granted),
        }
    }

    /// Settles what [`take`](Self::take) took in this episode.
    pub(crate) fn settle(
        &self,
        key: &[u8],
        granted: Granted,
        actual: u64,
        episode: Episode,
    ) -> Settled {
        let mut settled = Settled::default();
        match self {
            Self::Closed => {}
            Self::Open { bound, .. } => {
                let mut bound = lock(bound);
                let unused = granted.n().saturating_sub(actual);
                settled.returned = bound.give(episode, unused);
                settled.lost = unused.saturating_sub(settled.returned);
                settled.charged = actual.saturating_sub(granted.n());
                bound.charge(episode, settled.charged);
            }
            Self::Local(limiter) => settled = limiter.key(key).settle(granted, actual),
        }
        settled
    }
}

/// Returns the share of one of several processes. It decides as the limit does, except that the
/// share of a log is a sliding window.
fn share(limit: &Limit, processes: u32) -> Result<AnyAlgorithm, FallbackError> {
    let quota = limit.quota;
    let of = |permits: u64| (permits / u64::from(processes)).max(1);
    let window = Quota::per(of(quota.permits()), quota.period());
    match &limit.kind {
        Kind::Bucket(_) => {
            let period = quota.period().saturating_mul(processes);
            let bucket = Quota::per(quota.permits(), period).burst(of(quota.burst_size()));
            TokenBucket::new(bucket).map(Into::into)
        }
        Kind::Window(Window {
            shape: Shape::Slides,
            ..
        })
        | Kind::Log(_) => SlidingWindow::new(window).map(Into::into),
        Kind::Window(Window {
            shape: Shape::FirstHit,
            ..
        }) => FixedWindow::new(window)
            .and_then(FixedWindow::opened_by_first_hit)
            .map(Into::into),
        Kind::Window(_) => FixedWindow::new(window).map(Into::into),
        Kind::Slots(_) => return Err(FallbackError::Concurrency),
    }
    .map_err(FallbackError::Local)
}

/// A share that is too small for a request denies it only until the server decides again.
fn temporary(denied: Denied, outage: Outage) -> Denied {
    match denied.is_permanent() {
        true => Denied::later(denied.requested(), outage.retry_after),
        false => denied,
    }
}

fn lock(bound: &Mutex<OpenBound>) -> MutexGuard<'_, OpenBound> {
    bound.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "../tests/fallback/mod.rs"]
mod tests;
