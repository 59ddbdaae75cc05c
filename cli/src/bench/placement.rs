//! Assigns threads to processors.

use std::sync::atomic::{AtomicU64, Ordering};

use core_affinity::CoreId;
use serde::Serialize;

use super::topology::{Topology, ranges};

/// A processor for each thread. Threads share processors if there are not enough.
pub(crate) struct Placement {
    order: Vec<usize>,
    /// How many threads the system did not pin.
    failed: AtomicU64,
}

/// The processors that a number of threads ran on.
#[derive(Debug, Serialize)]
pub(crate) struct Placed {
    threads: usize,
    processors: Vec<usize>,
}

impl Placement {
    pub(crate) fn on(topology: &Topology) -> Self {
        Self {
            order: topology.order(),
            failed: AtomicU64::new(0),
        }
    }

    /// Pins the calling thread, which has this number.
    pub(crate) fn pin(&self, thread: usize) {
        let processor = self.order.get(thread % self.order.len().max(1));
        let pinned = processor.is_some_and(|&id| core_affinity::set_for_current(CoreId { id }));
        if !pinned {
            // ORDERING: Relaxed. It publishes nothing, and is read after the threads have ended.
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether every thread was pinned.
    pub(crate) fn is_pinned(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.failed.load(Ordering::Relaxed) == 0
    }

    /// Returns the processors that `threads` threads ran on, or `None` if threads were not pinned.
    pub(crate) fn placed(&self, threads: usize) -> Option<Placed> {
        let mut processors: Vec<_> = self.order.iter().take(threads).copied().collect();
        processors.sort_unstable();
        self.is_pinned().then_some(Placed {
            threads,
            processors,
        })
    }

    /// Returns a note if threads could not be pinned.
    pub(crate) fn note(&self) -> Option<&'static str> {
        const NOTE: &str = "threads could not be pinned to processors: they ran unpinned";
        (!self.is_pinned()).then_some(NOTE)
    }
}

impl Placed {
    /// Describes the threads and their processors in one line.
    pub(crate) fn line(&self) -> String {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (n, on) = (self.threads, self.processors.len());
        let list = ranges(&self.processors);
        format!("{n} thread{} on processor{} {list}", plural(n), plural(on))
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicU64, Placement};

    fn placement(failed: u64) -> Placement {
        Placement {
            order: vec![4, 6, 5, 7],
            failed: AtomicU64::new(failed),
        }
    }

    #[test]
    fn threads_are_placed_in_order() {
        let line = |threads| placement(0).placed(threads).map(|placed| placed.line());
        assert_eq!(line(1).as_deref(), Some("1 thread on processor 4"));
        assert_eq!(line(3).as_deref(), Some("3 threads on processors 4-6"));
        assert_eq!(line(9).as_deref(), Some("9 threads on processors 4-7"));
        assert_eq!(placement(0).note(), None);
    }

    #[test]
    fn threads_that_were_not_pinned_have_no_place() {
        let placement = placement(1);
        assert!(placement.placed(1).is_none());
        let note = placement.note().expect("a note");
        assert!(note.contains("could not be pinned"), "{note}");
    }
}
