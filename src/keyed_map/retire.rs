//! Ends an entry by retiring or moving it. The [protocol](super::entry) explains why.

use super::entry::{
    EntryState, Live, MOVED, MapEntry, PENDING, RETIRED, STILL_PENDING, first_word, swapped,
};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::cell::AtomicWord;
use crate::sync::{Ordering, fence, inject_fault};

impl<A> MapEntry<A> {
    /// Marks a pending entry as seen. Returns whether it was seen before: then the thread that
    /// inserted it may be gone.
    pub(super) fn mark_seen(&self) -> bool {
        // ORDERING: Relaxed, as in `since`.
        let first = self.since.compare_exchange(
            PENDING,
            STILL_PENDING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        first == Err(STILL_PENDING)
    }

    /// Returns the current state.
    pub(super) fn state(&self) -> EntryState
    where
        A: Algorithm,
    {
        let stored = self.cell.load();
        // ORDERING: Relaxed, as in `since`.
        let since = self.since.load(Ordering::Relaxed);
        match (stored, since) {
            (RETIRED, _) => EntryState::Retired,
            (MOVED, _) => EntryState::Moved,
            (_, STILL_PENDING..) => EntryState::Pending,
            (stored, since) => {
                let since = Tick::from_nanos(since);
                let first = first_word(self.algorithm(), since);
                let word = swapped(stored, first);
                EntryState::Live(Live { word, since, first })
            }
        }
    }

    /// Retires this word if it is unchanged. Nothing is decided on the entry after that. May fail
    /// spuriously.
    #[must_use]
    pub(super) fn retire(&self, live: &Live) -> bool {
        // ORDERING: SeqCst. It publishes everything before it, such as the raised horizon, to a
        // thread that finds this word or finds that the entry is gone. It pairs with the fence of
        // `begin`.
        // Model: keyed_map::a_late_tick_gets_no_second_burst
        fence(Ordering::SeqCst); // before it is retired
        inject_fault!(RemovesUnretired) || self.ends(live, RETIRED)
    }

    /// Marks the entry as moved if this word is unchanged. Nothing is decided on the entry after
    /// that. May fail spuriously.
    #[must_use]
    pub(super) fn move_away(&self, live: &Live) -> bool {
        // ORDERING: Release. It publishes the successor, which was announced before, to a thread
        // that finds the mark. It pairs with the fence of `get_past`.
        // Model: keyed_map::an_algorithm_is_changed
        fence(Ordering::Release); // before it is moved
        inject_fault!(CarriesUnretired) || self.ends(live, MOVED)
    }

    fn ends(&self, live: &Live, mark: u64) -> bool {
        let stored = swapped(live.word, live.first);
        self.cell.compare_exchange(stored, mark).is_ok()
    }

    /// Retires a pending entry.
    #[must_use]
    pub(super) fn retire_pending(&self) -> bool {
        // ORDERING: SeqCst, as in `retire`.
        fence(Ordering::SeqCst); // as in `retire`
        let retired = self.cell.compare_exchange(0, RETIRED).is_ok();
        if !retired {
            // Another thread has decided. This exchange of `since` makes sure that a thread that
            // looks again sees that.
            self.mark_seen();
        }
        retired
    }
}
