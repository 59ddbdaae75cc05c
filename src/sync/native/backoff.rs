//! How long a thread waits after it lost an exchange to another thread.
//!
//! An exchange that fails has cost both threads the cache line. A thread that tries again at once
//! takes the line from the other one, which then fails in turn: each decision costs a transfer of
//! the line. So the thread that failed waits for as long as a few such transfers take, and the
//! other one makes many decisions meanwhile.
//!
//! **It is bounded.** A wait is a number of processor hints, at most [`MOST`] for each exchange
//! that failed. It depends on no other thread: after it the thread tries again. An exchange still
//! fails only because another one succeeded, so the loops stay lock-free. There is no system call.
//! Where there are more threads than cores, no thread waits for one that the system has stopped.

/// How many hints the first wait has.
const FIRST: u32 = 12;

/// How many hints the longest wait has.
const MOST: u32 = 192;

/// Waits after each exchange that failed, each time twice as long as before.
#[derive(Debug)]
pub(crate) struct Backoff {
    hints: u32,
}

impl Backoff {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { hints: FIRST }
    }

    /// What stands there now. If it is not what the caller saw before, another thread is at work
    /// there: then it waits first, and looks again.
    #[inline(always)]
    pub(crate) fn wait_if_changed<T: PartialEq>(&mut self, seen: T, load: impl Fn() -> T) -> T {
        let now = load();
        if now == seen {
            return now;
        }
        self.wait();
        load()
    }

    /// Waits after an exchange that failed.
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
    fn only_a_changed_word_is_waited_for_and_looked_at_again() {
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
