use core::fmt;

use crate::metrics::{Metric, Metrics, Value};
use crate::striped::StripedCounters;

/// The counts of a [`Counted`](super::Counted) limiter.
///
/// Each call is a request, even one for 0 permits, and even a `take_up_to` that gets none (it is
/// granted). So `granted + denied` is the number of requests. A member of a composition counts the
/// requests that it grants and those that it denies, and also each attempt that it granted and that
/// lost a race. Each number is correct by itself, but while other threads decide, the numbers may
/// be from different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Requests that were granted. A reservation counts when it is made.
    pub granted: u64,
    /// The permits that these requests got.
    pub permits: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Permits that came back, including those of cancelled reservations and of lost races.
    pub returned: u64,
    /// Permits that were charged.
    pub charged: u64,
}

/// The counters of a [`Counted`](super::Counted) limiter. Clones share them.
///
/// Each counter is split into one part for each core, in cache lines of its own.
#[derive(Clone)]
pub struct Counters(StripedCounters<6>);

#[derive(Clone, Copy)]
enum Counter {
    /// Grants of at least one permit.
    Granted,
    /// Grants of 0 permits. They are not in `Granted`, so that `permits` needs no subtraction.
    Empty,
    /// Permits beyond the first of each grant, so that nearly every decision adds to one counter
    /// only.
    Beyond,
    Denied,
    Returned,
    Charged,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self(StripedCounters::new())
    }

    pub(crate) fn stats(&self) -> LimiterStats {
        let sum = |counter| self.0.sum(counter as usize);
        let granted = sum(Counter::Granted);
        LimiterStats {
            granted: granted.wrapping_add(sum(Counter::Empty)),
            permits: granted.wrapping_add(sum(Counter::Beyond)),
            denied: sum(Counter::Denied),
            returned: sum(Counter::Returned),
            charged: sum(Counter::Charged),
        }
    }

    #[inline(always)]
    pub(crate) fn granted(&self, n: u64) {
        if n == 0 {
            return self.granted_none();
        }
        self.0.add(Counter::Granted as usize, 1);
        if n > 1 {
            self.0.add(Counter::Beyond as usize, n - 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn granted_none(&self) {
        self.0.add(Counter::Empty as usize, 1);
    }

    #[inline(always)]
    pub(crate) fn returned(&self, n: u64) {
        self.0.add(Counter::Returned as usize, n);
    }

    #[inline(always)]
    pub(crate) fn charged(&self, n: u64) {
        self.0.add(Counter::Charged as usize, n);
    }

    /// Counts the answer to a request for `n` permits.
    #[inline(always)]
    pub(crate) fn answer(&self, granted: bool, n: u64) {
        match granted {
            true => self.granted(n),
            false => self.0.add(Counter::Denied as usize, 1),
        }
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counters").field(&self.stats()).finish()
    }
}

impl Metrics for LimiterStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Granted => self.granted.into(),
            Metric::Permits => self.permits.into(),
            Metric::Denied => self.denied.into(),
            Metric::Returned => self.returned.into(),
            Metric::Charged => self.charged.into(),
            _ => return None,
        })
    }
}
