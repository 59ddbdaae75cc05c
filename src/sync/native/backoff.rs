//! How long a thread waits after it lost an exchange to another thread.
//!
//! A failed exchange costs both threads a transfer of the cache line. Of two threads, the one that
//! retries at once takes the line from the other, which then fails in turn, so each decision costs
//! a transfer. A thread that waits for about as long as a few transfers take lets the other make
//! many decisions in that time.
//!
//! With more threads there are always others that exchange, so a wait gains nothing, and a longer
//! one only makes the slowest decisions slower. So a thread waits once, and then retries at once.
//!
//! **The wait is bounded.** It is [`HINTS`] spin-loop hints, after the first failed exchange. It
//! does not depend on another thread: afterwards the thread tries again. An exchange still fails
//! only because another one succeeded, so the loops stay lock-free. There is no system call, and
//! with more threads than cores, no thread waits for one that the system has preempted.

/// The number of hints in the wait.
const HINTS: u32 = 12;

/// Waits after the first failed exchange.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// The number of hints in the next wait.
    hints: u32,
}

impl Backoff {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { hints: HINTS }
    }

    /// Returns the current value. If it is not the one that the caller saw, another thread is
    /// changing it: the first time this waits, and then loads again.
    #[inline(always)]
    pub(crate) fn wait_if_changed<T: PartialEq>(&mut self, seen: T, load: impl Fn() -> T) -> T {
        let now = load();
        if now == seen || self.hints == 0 {
            return now;
        }
        self.wait();
        load()
    }

    /// Waits after a failed exchange, if it is the first.
    #[inline(always)]
    pub(crate) fn wait(&mut self) {
        for _ in 0..core::mem::take(&mut self.hints) {
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::{Backoff, HINTS};

    #[test]
    fn a_thread_waits_and_loads_again_once_and_only_if_the_word_changed() {
        let loads = Cell::new(0);
        let load = |word: u64| {
            loads.set(loads.get() + 1);
            word + loads.get()
        };
        let mut backoff = Backoff::new();
        assert_eq!(backoff.wait_if_changed(6, || load(5)), 6);
        assert_eq!((loads.get(), backoff.hints), (1, HINTS));
        assert_eq!(backoff.wait_if_changed(6, || load(5)), 8);
        assert_eq!((loads.get(), backoff.hints), (3, 0));
        assert_eq!(backoff.wait_if_changed(8, || load(5)), 9);
        assert_eq!((loads.get(), backoff.hints), (4, 0));
    }
}
