//! Counters that many threads add to at once.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{Count, Ordering};
use crate::thread_index::ThreadIndex;

/// `N` counters that are split into stripes: each thread adds to its own stripe. Clones share the
/// counters.
#[derive(Debug, Clone)]
pub(crate) struct StripedCounters<const N: usize> {
    thread_index: ThreadIndex,
    counts: Arc<[CachePadded<[Count; N]>]>,
}

impl<const N: usize> StripedCounters<N> {
    pub(crate) fn new() -> Self {
        // A model creates counters in each execution, and must run alike on every machine, so it
        // uses one stripe.
        let is_model = cfg!(any(
            all(tollgate_loom, feature = "loom"),
            all(tollgate_shuttle, feature = "shuttle")
        ));
        let cores = match is_model {
            true => 1,
            false => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        };
        let zeros = |_| CachePadded::new([(); N].map(|()| Count::new(0)));
        Self {
            thread_index: ThreadIndex::new(cores),
            counts: (0..cores).map(zeros).collect(),
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, which: usize, n: u64) {
        let stripe = self.counts.get(self.thread_index.of_this_thread());
        if let Some(count) = stripe.and_then(|counts| counts.get(which)) {
            // ORDERING: Relaxed. It publishes nothing.
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Adds one, and returns a number that is unique among the calls for this counter.
    #[cfg(feature = "keyed")]
    pub(crate) fn number(&self, which: usize) -> u64 {
        let thread_index = self.thread_index.of_this_thread();
        let counts = self
            .counts
            .get(thread_index)
            .and_then(|counts| counts.get(which));
        // ORDERING: Relaxed. It publishes nothing: the numbers need only be distinct.
        let number = counts.map_or(0, |count| count.fetch_add(1, Ordering::Relaxed));
        number
            .wrapping_mul(self.counts.len() as u64)
            .wrapping_add(thread_index as u64)
    }

    /// Returns the sum over all stripes. It reads each stripe once, so a thread that calls this
    /// again never gets a smaller sum.
    pub(crate) fn sum(&self, which: usize) -> u64 {
        let each = self.counts.iter().filter_map(|counts| counts.get(which));
        // ORDERING: Relaxed. It publishes nothing.
        each.map(|count| count.load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}
