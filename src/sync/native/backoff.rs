//! How long a thread waits after it lost an exchange to another thread.
//!
//! A failed exchange costs both threads a transfer of the cache line. A thread that retries at once
//! takes the line from the other thread, which then fails in turn, so each decision costs a
//! transfer. Instead, the thread that failed waits for about as long as a few transfers take, and
//! the other thread makes many decisions in that time.
//!
//! **The wait is bounded.** It is at most [`MOST`] spin-loop hints for each failed exchange. It
//! does not depend on another thread: afterwards the thread tries again. An exchange still fails
//! only because another one succeeded, so the loops stay lock-free. There is no system call, and
//! with more threads than cores, no thread waits for one that the system has preempted.

/// The number of hints in the first wait.
const FIRST: u32 = 12;

/// The number of hints in the longest wait.
const MOST: u32 = 192;

/// Waits after each failed exchange, each time twice as long as before.
#[derive(Debug)]
pub(crate) struct Backoff {
    hints: u32,
}

impl Backoff {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { hints: FIRST }
    }

    /// Returns the current value. If it is not the one that the caller saw, another thread is
    /// changing it: waits first, and then loads again.
    #[inline(always)]
    pub(crate) fn wait_if_changed<T: PartialEq>(&mut self, seen: T, load: impl Fn() -> T) -> T {
        let now = load();
        if now == seen {
            return now;
        }
        self.wait();
        load()
    }

    /// Waits after a failed exchange.
    #[inline(always)]
    pub(crate) fn wait(&mut self) {
        for _ in 0..self.hints {
            core::hint::spin_loop();
        }
        self.hints = (2 * self.hints).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::{Backoff, FIRST, MOST};

    #[test]
    fn waits_grow_up_to_a_bound() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.hints, FIRST);
        backoff.wait();
        assert_eq!(backoff.hints, 2 * FIRST);
        for _ in 0..40 {
            backoff.wait();
        }
        assert_eq!(backoff.hints, MOST);
    }

    #[test]
    fn backoff_waits_and_loads_again_only_if_the_word_changed() {
        let loads = Cell::new(0);
        let load = |word: u64| {
            loads.set(loads.get() + 1);
            word + loads.get()
        };
        let mut backoff = Backoff::new();
        assert_eq!(backoff.wait_if_changed(6, || load(5)), 6);
        assert_eq!((loads.get(), backoff.hints), (1, FIRST));
        assert_eq!(backoff.wait_if_changed(6, || load(5)), 8);
        assert_eq!((loads.get(), backoff.hints), (3, 2 * FIRST));
    }
}
