//! Chooses the shard or stripe that a thread uses first.

#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
mod number {
    use core::cell::Cell;

    use crate::sync::{AtomicU64, Ordering};

    /// How many threads have been numbered. It wraps after 2^64 threads; two threads may then have
    /// the same number.
    static THREADS: AtomicU64 = AtomicU64::new(0);

    /// The value for a thread that has no number yet.
    const NONE: u64 = u64::MAX;

    std::thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NONE) };
    }

    /// Returns the number of this thread, if it already has one.
    #[inline(always)]
    pub(super) fn known() -> Option<u64> {
        // At the end of a thread, its thread-locals may already be destroyed.
        let number = NUMBER.try_with(Cell::get).unwrap_or(NONE);
        (number != NONE).then_some(number)
    }

    /// Returns the number of this thread. A thread gets the next number when it first asks.
    #[inline]
    pub(super) fn of_this_thread() -> u64 {
        known().unwrap_or_else(first)
    }

    #[cold]
    #[inline(never)]
    fn first() -> u64 {
        // ORDERING: Relaxed. It publishes nothing: the numbers need only be distinct.
        let new = THREADS.fetch_add(1, Ordering::Relaxed);
        // If the number can't be stored, the thread gets another one next time.
        let _ = NUMBER.try_with(|number| number.set(new));
        new
    }
}

/// In a model each thread has the index 0. A model that needs another shard asks for it.
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
mod number {
    pub(super) const fn known() -> Option<u64> {
        Some(0)
    }

    pub(super) const fn of_this_thread() -> u64 {
        0
    }
}

/// A map from threads to indexes below `places`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadIndex {
    places: usize,
    /// The smallest power of two that is at least `places`, minus 1.
    mask: u64,
}

impl ThreadIndex {
    pub(crate) const fn new(places: usize) -> Self {
        let mask = match (places as u64).checked_next_power_of_two() {
            Some(power) => power - 1,
            None => u64::MAX,
        };
        Self { places, mask }
    }

    /// Returns the index of this thread. Threads that start one after another get different indexes
    /// until all are used. If `places` is not a power of two, some indexes get more threads than
    /// others.
    #[inline]
    pub(crate) fn of_this_thread(self) -> usize {
        self.place(number::of_this_thread())
    }

    /// Returns the index of this thread, if it already has a number.
    #[inline(always)]
    pub(crate) fn known(self) -> Option<usize> {
        Some(self.place(number::known()?))
    }

    #[inline(always)]
    const fn place(self, number: u64) -> usize {
        let place = (number & self.mask) as usize;
        // The masked number is less than twice `places`.
        if place < self.places {
            place
        } else {
            place - self.places
        }
    }
}
