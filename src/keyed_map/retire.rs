//! How an entry ends: it is retired, or moved. The [protocol](super::entry) says what for.

use super::entry::{
    EntryState, Live, MOVED, MapEntry, PENDING, RETIRED, STILL_PENDING, first_word, swapped,
};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::cell::AtomicWord;
use crate::sync::{Ordering, fence, inject_fault};

impl<A> MapEntry<A> {
    /// Comes across an entry that nobody has decided on. Whether it is for the second time: then
    /// the thread that brought it in has perhaps gone.
    pub(super) fn mark_seen(&self) -> bool {
        // ORDERING: Relaxed, as above.
        let first = self.since.compare_exchange(
            PENDING,
            STILL_PENDING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        first == Err(STILL_PENDING)
    }

    /// What it is in now.
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

    /// Retires this word, if it still stands there. From then on nothing is decided on it. (It may
    /// fail without a reason.)
    #[must_use]
    pub(super) fn retire(&self, live: &Live) -> bool {
        // ORDERING: SeqCst, with the fence of `begin`: what was done before, such as raising the
        // horizon, is seen by a thread that finds this, or finds that the entry is gone.
        // Model: keyed_map::a_late_tick_gets_no_second_burst
        fence(Ordering::SeqCst); // before it is retired
        inject_fault!(RemovesUnretired) || self.ends(live, RETIRED)
    }

    /// Exchanges this word for the mark of an entry that was moved, if it still stands there. From
    /// then on nothing is decided on it. (It may fail without a reason.)
    #[must_use]
    pub(super) fn move_away(&self, live: &Live) -> bool {
        // ORDERING: Release, with the fence of `finish_move`: a thread that finds the mark finds
        // the successor, which was announced before. Model: keyed_map::an_algorithm_is_changed
        fence(Ordering::Release); // before it is moved
        inject_fault!(CarriesUnretired) || self.ends(live, MOVED)
    }

    fn ends(&self, live: &Live, mark: u64) -> bool {
        let stored = swapped(live.word, live.first);
        self.cell.compare_exchange(stored, mark).is_ok()
    }

    /// Retires an entry that nobody has decided on.
    #[must_use]
    pub(super) fn retire_pending(&self) -> bool {
        // ORDERING: SeqCst, as in `retire`.
        fence(Ordering::SeqCst); // as in `retire`
        let retired = self.cell.compare_exchange(0, RETIRED).is_ok();
        if !retired {
            // Another thread has decided: by an exchange, so that a thread that looks again sees
            // it.
            self.mark_seen();
        }
        retired
    }
}
