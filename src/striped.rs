//! Counts that many threads add to at once.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{Count, Ordering};
use crate::thread_index::ThreadIndex;

/// `N` counts, in stripes: each thread adds to its own. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct StripedCounters<const N: usize> {
    thread_index: ThreadIndex,
    counts: Arc<[CachePadded<[Count; N]>]>,
}

impl<const N: usize> StripedCounters<N> {
    pub(crate) fn new() -> Self {
        // Models make one for each execution, and are to be the same on every machine.
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
            // ORDERING: Relaxed. Counts publish nothing.
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Counts one, and returns a number that no other call gets from this count.
    #[cfg(feature = "keyed")]
    pub(crate) fn number(&self, which: usize) -> u64 {
        let thread_index = self.thread_index.of_this_thread();
        let counts = self
            .counts
            .get(thread_index)
            .and_then(|counts| counts.get(which));
        // ORDERING: Relaxed. Numbers publish nothing, and are only to differ.
        let number = counts.map_or(0, |count| count.fetch_add(1, Ordering::Relaxed));
        number
            .wrapping_mul(self.counts.len() as u64)
            .wrapping_add(thread_index as u64)
    }

    /// What was counted by all. Each is read once, and never goes back for a thread that looks
    /// twice.
    pub(crate) fn sum(&self, which: usize) -> u64 {
        let each = self.counts.iter().filter_map(|counts| counts.get(which));
        // ORDERING: Relaxed. Counts publish nothing.
        each.map(|count| count.load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}
