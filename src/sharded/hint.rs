//! The tick before which no shard has a permit, so that a denial need not look at all shards.
//!
//! ```text
//!  63  62                                    0
//! ┌───┬───────────────────────────────────────┐
//! │ 0 │ a tick: no shard has a permit before  │   set by a thread that looked at all in vain
//! ├───┼───────────────────────────────────────┤
//! │ 1 │ an epoch: nothing is known            │   set by a thread that lowered a word
//! └───┴───────────────────────────────────────┘
//! ```
//!
//! - **A request for one permit** that comes before the tick is denied without another look.
//! - **A thread that is about to look** notes the epoch first. If it finds that no shard has a
//!   permit before some tick, it exchanges that epoch for the tick. A tick that is over it first
//!   exchanges for a new epoch, also if it then takes permits: so the tick that others read is the
//!   one at which a permit comes.
//! - **A thread that lowers a word**, or puts it into debt, sets a new epoch after that and before
//!   its verb returns.
//!
//! No epoch is used twice. So the exchange succeeds only if no thread has set an epoch since this
//! one was noted. The look has seen what was lowered before, and what is lowered later ends in a
//! new epoch. A denial by a tick that is still there is concurrent with the verb that lowers. All
//! other verbs raise words and take permits away, so the tick stays right.
//!
//! The epoch must be set after the word is lowered. If it were set before, another thread could
//! note it, look, and set a tick before the permits are back, and that tick would stay.
//!
//! The tick was found at one tick and is used at others. So it needs algorithms for which permits
//! never become fewer with time: [`Split::never_falls`](crate::algorithm::Split::never_falls).

use crate::clock::Tick;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// Of words that hold an epoch.
const EPOCH: u64 = 1 << 63;

/// A word that held an epoch when it was noted.
#[derive(Clone, Copy)]
pub(super) struct Noted(u64);

#[derive(Debug)]
pub(super) struct Hint {
    word: AtomicU64,
    /// The newest epoch.
    epochs: AtomicU64,
}

impl Hint {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(EPOCH),
            epochs: AtomicU64::new(0),
        }
    }

    /// The tick before which no shard has a permit, if one is known.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<Tick> {
        // ORDERING: Relaxed. It publishes nothing. A thread that lowered a word, or knows of it by
        // other means, sees that one's epoch or what came after it, by coherence. Models: hint::
        let word = self.word.load(Ordering::Relaxed);
        (word < EPOCH).then(|| Tick::from_nanos(word))
    }

    /// Notes the epoch before a look at this tick, if it may end in a hint.
    pub(super) fn note(&self, now: Tick) -> Option<Noted> {
        // ORDERING: Acquire. It pairs with the release in `raise`: what was lowered before that
        // epoch is seen by the look that follows. Models: hint::
        let word = self.word.load(Ordering::Acquire);
        if word >= EPOCH {
            return Some(Noted(word));
        }
        if now.as_nanos() < word {
            return None;
        }
        if inject_fault!(KeepsTheTickThatIsOver) {
            return Some(Noted(word));
        }
        let next = self.next_epoch();
        // ORDERING: Acquire, both ways, as the load.
        let (order, failure) = (Ordering::Acquire, Ordering::Acquire);
        match self.word.compare_exchange(word, next, order, failure) {
            Ok(_) => Some(Noted(next)),
            Err(seen) => (seen >= EPOCH).then_some(Noted(seen)),
        }
    }

    /// Sets the tick before which no shard has a permit, if no thread has set another epoch.
    pub(super) fn set(&self, noted: Noted, due: Tick) {
        let due = due.as_nanos();
        if due >= EPOCH {
            return;
        }
        if inject_fault!(SetsTheHintBlindly) {
            // ORDERING: Relaxed. A model's fault, in no other build.
            self.word.swap(due, Ordering::Relaxed);
        }
        // ORDERING: Relaxed. Who reads the tick reads nothing else for it. Models: hint::
        let order = Ordering::Relaxed;
        let _ = self.word.compare_exchange(noted.0, due, order, order);
    }

    /// Begins a new epoch, after a word was lowered or put into debt.
    pub(super) fn raise(&self) {
        let next = self.next_epoch();
        // ORDERING: Release. See `note`. Models: hint::
        self.word.swap(next, Ordering::Release);
    }

    /// A new epoch. 2^63 of them take centuries.
    fn next_epoch(&self) -> u64 {
        // ORDERING: Relaxed. Epochs are only to differ.
        EPOCH | self.epochs.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}
