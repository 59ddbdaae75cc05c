//! A place as one thread has it: it passes everything on, and remembers what the thread changed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tollgate::store::{AtomicWord, UNSTARTED};
use tollgate::sync::{AtomicU64, Ordering};

/// Where the word really lives, shared by all threads.
pub type SharedWord = Arc<dyn AtomicWord + Send + Sync>;

/// More failed exchanges than this in one model mean that a loop does not end.
const PATIENCE: u64 = 40;

/// Makes loom see more. It explores the orders of changes, and a verb that only loads may so have
/// no order with the changes of others: some interleavings are never visited. A thread that rings
/// before it loads changes something. The bell is relaxed, and synchronises nothing.
pub(crate) type Bell = Arc<AtomicU64>;

/// One thread's access to a [`SharedWord`].
pub struct TracedWord {
    shared: SharedWord,
    bell: Option<Bell>,
    /// What this thread changed: from which word, to which.
    changes: RefCell<Vec<(u64, u64)>>,
    tries: Cell<u64>,
    lost: Cell<u64>,
}

impl TracedWord {
    /// Access to this word.
    pub fn on(shared: &SharedWord) -> Self {
        Self {
            shared: Arc::clone(shared),
            bell: None,
            changes: RefCell::default(),
            tries: Cell::default(),
            lost: Cell::default(),
        }
    }

    /// The same hand, ringing this bell if there is one.
    #[must_use]
    pub(crate) fn ringing(mut self, bell: &Option<Bell>) -> Self {
        self.bell = bell.clone();
        self
    }

    /// How many times this thread has changed the word.
    pub fn writes(&self) -> usize {
        self.changes.borrow().len()
    }

    /// The changes from the given one on.
    pub(crate) fn changes_since(&self, first: usize) -> Vec<(u64, u64)> {
        self.changes.borrow()[first..].to_vec()
    }

    /// How many exchanges this thread has lost to somebody.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

impl AtomicWord for TracedWord {
    fn load(&self) -> u64 {
        if let Some(bell) = &self.bell {
            bell.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        let outcome = self.shared.compare_exchange(word, next);
        // Loom changes threads before an atomic operation and not after it, so this is noted
        // before anybody else moves.
        match outcome {
            Ok(()) => self.changes.borrow_mut().push((word, next)),
            Err(seen) => {
                // Starting a place that has started is no loss, and neither is a failure
                // without a reason.
                let lost = seen != word && word != UNSTARTED;
                self.lost.set(self.lost.get() + u64::from(lost));
                self.tries.set(self.tries.get() + 1);
            }
        }
        assert!(self.tries.get() <= PATIENCE, "a loop does not end");
        outcome
    }

    fn swap(&self, next: u64) -> u64 {
        let was = self.shared.swap(next);
        self.changes.borrow_mut().push((was, next));
        was
    }
}
