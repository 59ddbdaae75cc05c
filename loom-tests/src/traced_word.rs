//! One thread's access to a shared word. It forwards every operation, and records what the thread
//! changed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tollgate::store::{AtomicWord, UNSTARTED};

/// The shared word itself.
pub type SharedWord = Arc<dyn AtomicWord + Send + Sync>;

/// More failed exchanges than this in one model mean that a loop does not end.
const MAX_FAILED_EXCHANGES: u64 = 40;

/// One thread's access to a [`SharedWord`].
#[derive(Clone)]
pub struct TracedWord {
    shared: SharedWord,
    /// The changes of this thread: the word before and after.
    changes: RefCell<Vec<(u64, u64)>>,
    tries: Cell<u64>,
    lost: Cell<u64>,
}

impl TracedWord {
    /// Makes an access to this word.
    pub fn on(shared: &SharedWord) -> Self {
        Self {
            shared: Arc::clone(shared),
            changes: RefCell::default(),
            tries: Cell::default(),
            lost: Cell::default(),
        }
    }

    /// Returns how many times this thread has changed the word.
    pub fn writes(&self) -> usize {
        self.changes.borrow().len()
    }

    /// Returns the changes from number `first` on.
    pub(crate) fn changes_since(&self, first: usize) -> Vec<(u64, u64)> {
        self.changes.borrow()[first..].to_vec()
    }

    /// Returns how many exchanges this thread has lost to others.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

impl AtomicWord for TracedWord {
    fn load(&self) -> u64 {
        self.shared.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        let outcome = self.shared.compare_exchange(word, next);
        // Loom switches threads before an atomic operation and not after it, so this is recorded
        // before another thread runs.
        match outcome {
            Ok(()) => self.changes.borrow_mut().push((word, next)),
            Err(seen) => {
                // An exchange is not lost if it failed to start a started limiter, or failed
                // spuriously.
                let lost = seen != word && word != UNSTARTED;
                self.lost.set(self.lost.get() + u64::from(lost));
                self.tries.set(self.tries.get() + 1);
            }
        }
        assert!(
            self.tries.get() <= MAX_FAILED_EXCHANGES,
            "a loop does not end"
        );
        outcome
    }

    fn swap(&self, next: u64) -> u64 {
        let was = self.shared.swap(next);
        self.changes.borrow_mut().push((was, next));
        was
    }
}
