//! Which of several words a thread uses first.

#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
mod number {
    use core::cell::Cell;

    use crate::sync::{AtomicU64, Ordering};

    /// How many threads have got a number. It wraps after 2^64 threads, and two may then have the
    /// same.
    static THREADS: AtomicU64 = AtomicU64::new(0);

    /// A thread that has none yet.
    const NONE: u64 = u64::MAX;

    std::thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NONE) };
    }

    /// The number of this thread, if it has one already.
    #[inline(always)]
    pub(super) fn known() -> Option<u64> {
        // While a thread ends, its number may be gone.
        let number = NUMBER.try_with(Cell::get).unwrap_or(NONE);
        (number != NONE).then_some(number)
    }

    /// The number of this thread: threads are numbered as they ask first.
    #[inline]
    pub(super) fn of_this_thread() -> u64 {
        known().unwrap_or_else(first)
    }

    #[cold]
    #[inline(never)]
    fn first() -> u64 {
        // ORDERING: Relaxed. Numbers publish nothing, and are only to differ.
        let new = THREADS.fetch_add(1, Ordering::Relaxed);
        // A thread that can't keep it gets another one next time.
        let _ = NUMBER.try_with(|number| number.set(new));
        new
    }
}

/// In a model each thread sets its own index.
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
mod number {
    pub(super) fn known() -> Option<u64> {
        Some(of_this_thread())
    }

    pub(super) fn of_this_thread() -> u64 {
        crate::sync::model::thread_index()
    }
}

/// Spreads threads over indexes below a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadIndex {
    places: usize,
    /// The power of two from `places` on, less one.
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

    /// The place of this thread. Threads that come one after the other have different ones, as far
    /// as there are, but where their number is no power of two some are shared early.
    #[inline]
    pub(crate) fn of_this_thread(self) -> usize {
        self.place(number::of_this_thread())
    }

    /// The place of this thread, if it has a number already.
    #[inline(always)]
    pub(crate) fn known(self) -> Option<usize> {
        Some(self.place(number::known()?))
    }

    #[inline(always)]
    const fn place(self, number: u64) -> usize {
        let place = (number & self.mask) as usize;
        // Below twice the number of places.
        if place < self.places {
            place
        } else {
            place - self.places
        }
    }
}
