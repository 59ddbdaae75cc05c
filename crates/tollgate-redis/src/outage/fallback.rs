//! The fallbacks of one limit: what it decides by itself while the server does not answer.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate::outcome::Settled;
use tollgate::{
    AnyAlgorithm, Denied, FixedWindow, Granted, Keyed, Quota, SlidingWindow, Tick, TokenBucket,
};

use crate::limit::Limit;
use crate::limit::fallback_error::FallbackError;
use crate::limit::kind::{Kind, Shape, Window};
use crate::outage::{Decider, Outage};

/// What a limit decides while the server does not answer.
///
/// There is no default, because each has a price. `Closed` turns everyone away, `Open` lets the
/// flood in that the limit was to hold back, and `Local` needs to know how many processes there
/// are.
///
/// In a cluster, each node has outages of its own, in which only the keys of this node fall back.
///
/// ```
/// use tollgate_redis::Fallback;
///
/// // Four processes share the limit. Each grants a quarter of it to each of its keys.
/// let fallback = Fallback::Local { processes: 4, keys: 10_000 };
/// assert_ne!(fallback, Fallback::Closed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// Deny everything. The answer is that the server is not available, and not that the client
    /// sent too much: see [`Denial::is_unavailable`](crate::Denial::is_unavailable).
    Closed,
    /// Grant everything.
    Open,
    /// Grant some permits, over all keys of the limit in this process, and then deny as `Closed`
    /// does.
    OpenAtMost {
        /// The most permits in one outage, and in one minute for calls that fail without an outage.
        ///
        /// Outages of several nodes at the same time are one. If the server granted nothing in
        /// between, the next outage shares the count: it may answer only calls that take nothing.
        at_most: u64,
        /// With a period, `at_most` holds for each period, over all outages and calls that fail,
        /// and not for each outage and minute. A period begins with the first grant after the one
        /// before. So a server that comes and goes does not renew the bound.
        per: Option<Duration>,
    },
    /// Grant each key a share of the limit, which a limiter in this process enforces. Limits on
    /// concurrency have none.
    ///
    /// A bucket's share has the rate and the burst divided by `processes`. A window's share has the
    /// permits divided by `processes`. A log's share is a sliding window. Bursts and permits are
    /// rounded down, but are at least one.
    Local {
        /// How many processes share the limit: at least 1.
        processes: u32,
        /// How many keys are in use at the same time, in this process. The table for them has a
        /// fixed size: see [`tollgate::Keyed`].
        keys: usize,
    },
}

/// A fallback with its state.
#[derive(Debug)]
pub(crate) enum Deputy {
    Closed,
    /// The most permits that a key can take at once.
    Open(u64),
    AtMost(AtMost),
    Local(Box<Keyed<AnyAlgorithm>>),
}

/// A fallback that grants some permits.
#[derive(Debug)]
pub(crate) struct AtMost {
    /// The most permits of a key.
    most: u64,
    at_most: u64,
    per: Option<Duration>,
    granted: Mutex<GrantedIn>,
}

/// What a fallback counted a grant in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Episode {
    /// It counts nothing.
    #[default]
    None,
    /// The outage with this number.
    Outage(u64),
    /// The period with this number.
    Period(u64),
}

/// The period of calls that fail without an outage, if a fallback has none of its own.
const MINUTE: Duration = Duration::from_secs(60);

impl Deputy {
    pub(crate) fn new(fallback: Fallback, limit: &Limit) -> Result<Self, FallbackError> {
        Ok(match fallback {
            Fallback::Closed => Self::Closed,
            Fallback::Open => Self::Open(limit.permits()),
            Fallback::OpenAtMost { at_most: 0, .. } => return Err(FallbackError::NoPermits),
            Fallback::OpenAtMost {
                per: Some(Duration::ZERO),
                ..
            } => return Err(FallbackError::ZeroPeriod),
            Fallback::OpenAtMost { at_most, per } => Self::AtMost(AtMost {
                most: limit.permits(),
                at_most,
                per,
                granted: Mutex::default(),
            }),
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
            Self::Open(_) | Self::AtMost(_) => Decider::Open,
            Self::Local(_) => Decider::Local,
        }
    }

    /// Takes permits of a key. Also returns what they are counted in.
    pub(crate) fn take(
        &self,
        key: &[u8],
        n: u64,
        outage: Outage,
    ) -> Result<(Granted, Episode), Denied> {
        let granted =
            |left| Granted::new(n, Tick::from_nanos(0)).with_remaining(left, NonZeroU64::MIN);
        match self {
            Self::Closed => Err(Denied::later(n, outage.retry_after)),
            Self::Open(most) => Ok((granted(most.saturating_sub(n)), Episode::None)),
            Self::AtMost(open) => match open.lock().take(outage, n, open) {
                Some((left, episode)) => Ok((granted(left.min(open.most)), episode)),
                None => Err(Denied::later(n, outage.retry_after)),
            },
            Self::Local(limiter) => match limiter.key(key).try_acquire_n(n) {
                Ok(granted) => Ok((granted, Episode::None)),
                Err(denied) => Err(temporary(denied, outage)),
            },
        }
    }

    /// Returns whether [`take`](Self::take) would take the permits.
    pub(crate) fn check(&self, key: &[u8], n: u64, outage: Outage) -> Result<(), Denied> {
        match self {
            Self::Local(limiter) => {
                let checked = limiter.key(key).check_n(n);
                checked.map_err(|denied| temporary(denied, outage))
            }
            Self::Closed | Self::Open(_) | Self::AtMost(_) => {
                let (granted, episode) = self.take(key, n, outage)?;
                self.undo(key, granted, episode);
                Ok(())
            }
        }
    }

    /// Gives back what [`take`](Self::take) took in this episode.
    pub(crate) fn undo(&self, key: &[u8], granted: Granted, episode: Episode) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Open(_) => granted.n(),
            Self::AtMost(open) => open.lock().give(episode, granted.n()),
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
        let unused = granted.n().saturating_sub(actual);
        let missing = actual.saturating_sub(granted.n());
        match self {
            Self::Closed => {}
            Self::Open(_) => {
                settled.returned = unused;
                settled.charged = missing;
            }
            Self::AtMost(open) => {
                let mut count = open.lock();
                settled.returned = count.give(episode, unused);
                settled.lost = unused.saturating_sub(settled.returned);
                settled.charged = missing;
                count.charge(episode, missing);
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
    .map_err(|error| FallbackError::Local(error.into()))
}

/// A share that is too small for a request denies it only until the server decides again.
fn temporary(denied: Denied, outage: Outage) -> Denied {
    match denied.is_permanent() {
        true => Denied::later(denied.requested(), outage.retry_after),
        false => denied,
    }
}

impl AtMost {
    fn lock(&self) -> MutexGuard<'_, GrantedIn> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Fallback::OpenAtMost`] has granted, in the latest outage and in the latest period.
#[derive(Debug, Default)]
pub(crate) struct GrantedIn {
    outage: Count,
    period: Count,
    /// When the latest period began: with the first grant after the one before.
    since: Duration,
}

/// The permits granted in one outage or period, which has a number.
#[derive(Debug, Default)]
struct Count {
    number: u64,
    granted: u64,
}

impl GrantedIn {
    /// Takes permits if the outage, or the period, grants no more than the bound. Returns how many
    /// are left, and what counts them: the latest outage or period, even if the caller's is over.
    fn take(&mut self, outage: Outage, n: u64, open: &AtMost) -> Option<(u64, Episode)> {
        let (count, is_outage) = match (outage.number, open.per) {
            (Some(number), None) => {
                if number > self.outage.number {
                    self.outage = Count { number, granted: 0 };
                }
                (&mut self.outage, true)
            }
            (_, per) => {
                let per = per.unwrap_or(MINUTE);
                let is_over = outage.now.saturating_sub(self.since) >= per;
                if is_over || self.period.granted == 0 {
                    self.since = self.since.max(outage.now);
                    self.period.number = self.period.number.saturating_add(1);
                    self.period.granted = 0;
                }
                (&mut self.period, false)
            }
        };
        let granted = count.granted.saturating_add(n);
        let left = open.at_most.checked_sub(granted)?;
        count.granted = granted;
        Some(match is_outage {
            true => (left, Episode::Outage(count.number)),
            false => (left, Episode::Period(count.number)),
        })
    }

    /// Returns the count of an episode, and the episode's number.
    fn count(&mut self, episode: Episode) -> Option<(&mut Count, u64)> {
        match episode {
            Episode::None => None,
            Episode::Outage(number) => Some((&mut self.outage, number)),
            Episode::Period(number) => Some((&mut self.period, number)),
        }
    }

    /// Takes permits unconditionally, from the latest outage or period.
    fn charge(&mut self, episode: Episode, n: u64) {
        if let Some((count, _)) = self.count(episode) {
            count.granted = count.granted.saturating_add(n);
        }
    }

    /// Gives permits of an episode back. Permits of an earlier episode are dropped.
    fn give(&mut self, episode: Episode, n: u64) -> u64 {
        match self.count(episode) {
            Some((count, number)) if number == count.number => {
                let back = n.min(count.granted);
                count.granted = count.granted.saturating_sub(back);
                back
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
#[path = "../../tests/fallback/mod.rs"]
mod tests;
