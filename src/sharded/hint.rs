//! The hint: a tick before which no shard has a permit, so that a denial need not scan all shards.
//!
//! ```text
//!  63  62                                    0
//! ┌───┬───────────────────────────────────────┐
//! │ 0 │ a tick: no shard has a permit before  │   set by a thread that scanned all shards in vain
//! ├───┼───────────────────────────────────────┤
//! │ 1 │ an epoch: nothing is known            │   set by a thread that lowered a word
//! └───┴───────────────────────────────────────┘
//! ```
//!
//! - **A request for one permit** before the tick is denied without a scan.
//! - **A thread that is about to scan** notes the epoch first: it keeps a copy. If the scan finds
//!   that no shard has a permit before some tick, the thread exchanges the noted epoch for that
//!   tick. If the word holds a tick that has passed, the thread exchanges it for a new epoch before
//!   the scan, even if it then takes permits. So a tick in the word is always the tick of the next
//!   permit.
//! - **A thread that lowers a word**, or puts it into debt, sets a new epoch after that and before
//!   its method returns. (Taking permits raises a word. Returning them lowers it.)
//!
//! No epoch is used twice, so the exchange succeeds only if no thread has set an epoch since this
//! one was noted. The scan sees every word that was lowered before the noted epoch. A thread that
//! lowers a word later sets a new epoch. A denial can still read the old tick only while that
//! thread is inside its method. All other operations raise words and so take permits, so the tick
//! stays right.
//!
//! The epoch must be set after the word is lowered. If it were set before, another thread could
//! note it, scan, and set a tick before the permits are returned, and the tick would stay although
//! it is wrong.
//!
//! The tick may be used at another tick than the one at which it was computed. So the algorithm
//! must ensure that an unchanged word never loses permits over time:
//! [`Split::never_falls`](crate::algorithm::Split::never_falls).

use crate::clock::Tick;
use crate::outcome::{Denied, Granted};
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// The bit that marks an epoch.
const EPOCH: u64 = 1 << 63;

/// A copy of the hint's word, which holds an epoch.
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

    /// Decides on a request for `n` permits: denies it if the hint says so, and otherwise makes one
    /// attempt by `take`. `None` means that nothing was taken; use the slow path.
    #[inline(always)]
    pub(super) fn decide(
        &self,
        n: u64,
        now: Tick,
        take: impl FnOnce() -> Option<Granted>,
    ) -> Option<Result<Granted, Denied>> {
        match self.known() {
            None => take().map(Ok),
            Some(due) if n == 1 && now < due => {
                Some(Err(Denied::later(1, due.saturating_since(now))))
            }
            // The tick has passed, or says nothing about `n` permits. The slow path replaces it.
            Some(_) => None,
        }
    }

    /// Returns the tick before which no shard has a permit, if one is known.
    #[inline(always)]
    fn known(&self) -> Option<Tick> {
        // ORDERING: Relaxed. It publishes nothing. A thread that lowered a word, or has
        // synchronized with one that did, reads the epoch that was set afterwards, or a later
        // value, by coherence. Models: hint::
        let word = self.word.load(Ordering::Relaxed);
        (word < EPOCH).then(|| Tick::from_nanos(word))
    }

    /// Notes the epoch before a scan at this tick. Returns `None` if the scan may not set the hint.
    pub(super) fn note(&self, now: Tick) -> Option<Noted> {
        // ORDERING: Acquire. It pairs with the release in `raise`: the scan that follows sees what
        // was lowered before that epoch. Models: hint::
        let word = self.word.load(Ordering::Acquire);
        if word >= EPOCH {
            return Some(Noted(word));
        }
        if now.as_nanos() < word {
            return None;
        }
        let keeps = inject_fault!(KeepsTheTickThatIsOver); // FAULT
        if keeps {
            return Some(Noted(word));
        }
        let next = self.next_epoch();
        // ORDERING: Acquire on success and failure, as for the load above.
        let (order, failure) = (Ordering::Acquire, Ordering::Acquire);
        match self.word.compare_exchange(word, next, order, failure) {
            Ok(_) => Some(Noted(next)),
            Err(seen) => (seen >= EPOCH).then_some(Noted(seen)),
        }
    }

    /// Sets the tick before which no shard has a permit, if the noted epoch is still the current
    /// one.
    pub(super) fn set(&self, noted: Noted, due: Tick) {
        let due = due.as_nanos();
        if due >= EPOCH {
            return;
        }
        // ORDERING: Relaxed. It publishes nothing: a thread that reads the tick uses no other
        // memory because of it. Models: hint::
        let order = Ordering::Relaxed;
        let _ = self.word.compare_exchange(noted.0, due, order, order);
    }

    /// Starts a new epoch. The caller has lowered a word or put it into debt.
    pub(super) fn raise(&self) {
        let next = self.next_epoch();
        // ORDERING: Release. It publishes the lowered word, and pairs with the acquire in `note`.
        // Models: hint::
        self.word.swap(next, Ordering::Release);
    }

    /// Returns a new epoch. Epochs wrap after 2^63, which takes centuries.
    fn next_epoch(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing: epochs need only be distinct.
        EPOCH | self.epochs.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}
