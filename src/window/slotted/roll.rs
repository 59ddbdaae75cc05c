//! How a slotted window goes on to its next slot.
//!
//! One word decides. A ring, which is as long as the next power of two, keeps the count of each finished
//! slot, and is read only when a slot ends (or by who wants to know when it will have been long enough).
//!
//! 1. **Freeze.** Who has a permit to count in a later slot sets a bit in the word. From then on the word
//!    changes in one way only: to a later slot. So the finished slot's count is known for good: it is what the
//!    word has, less the older slots in the ring.
//! 2. **Record.** Anybody who sees a frozen word computes the same count, and puts it into the ring by
//!    `fetch_max`. Once is as good as many times, and a late writer changes nothing: its entry is there, or a
//!    later one.
//! 3. **Move on.** The sum of the slots that the new window still has, and the permits that are taken, become
//!    the new word in one exchange. Whoever is first wins; the others look again.
//!
//! Nobody waits: who stops after any of these leaves a word that everybody else can go on from. Where no slot
//! of the old window is in the new one, nothing need be recorded, and 3 is enough.
//!
//! Without the bit a count could be recorded that was changed before the word moved on. More would be counted
//! than was taken if permits were given back meanwhile, and the next slots' counts, which are differences,
//! would then be less than what was taken in them.

use super::SlottedWindow;
use crate::clock::Tick;
use crate::primitive::{AtomicU64, Ordering, mistake};

/// A word as it stands at a tick.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) word: u64,
    /// The slot that a permit would be counted in.
    pub(super) slot: u64,
    /// The permits in the window that ends with that slot.
    pub(super) total: u64,
    /// Those of the word's own slot, if it has been finished.
    finished: u64,
}

impl<C> SlottedWindow<C> {
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `exchange`: who sees a slot sees the entries of
        // the slots before it. Relaxed, an entry could be missing, and its permits be had again.
        // Model: loom-tests/tests/slots.rs
        self.word.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn exchange(&self, word: u64, next: u64) -> bool {
        // ORDERING: Release on success, for what was recorded before: see `load`. On failure Relaxed: the
        // word is loaded again. Model: loom-tests/tests/slots.rs
        self.word
            .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The permits of finished slots, from the first to before the last. `None` if one of them is in the
    /// ring no more: then the word has moved on.
    fn recorded(&self, first: u64, last: u64) -> Option<u64> {
        let mut sum = 0_u64;
        for slot in first..last {
            sum += self.recorded_in(slot)?;
        }
        Some(sum)
    }

    /// Where a slot is recorded. Slots of one window have different places.
    #[inline(always)]
    fn place_of(&self, slot: u64) -> Option<&AtomicU64> {
        self.ring
            .get(slot as usize & self.ring.len().wrapping_sub(1))
    }

    /// The permits of a finished slot; none if it was never begun.
    fn recorded_in(&self, slot: u64) -> Option<u64> {
        // ORDERING: Relaxed. The word tells that it was recorded: see `load`. A later slot's entry says that
        // the word has moved on, and the word is loaded again before anything comes of it.
        let entry = self.place_of(slot)?.load(Ordering::Relaxed);
        match self.shape.slot(entry) {
            recorded if recorded == slot => Some(self.shape.count(entry)),
            older if older < slot => Some(0),
            _ => None,
        }
    }

    /// How the word stands at `now`. `None` if it has moved on meanwhile.
    #[inline]
    pub(super) fn view(&self, word: u64, now: Tick) -> Option<View> {
        let shape = &self.shape;
        let (own, total) = (shape.slot(word), shape.count(word));
        let is_frozen = shape.is_frozen(word);
        let slot = match shape.grid.elapsed_in(own, now) {
            Some(_) if !is_frozen => own,
            // Somebody has seen a slot after a frozen one.
            _ => shape.grid.place(now).index.max(own + u64::from(is_frozen)),
        };
        let view = |total, finished| {
            Some(View {
                word,
                slot,
                total,
                finished,
            })
        };
        if slot == own {
            return view(total, 0);
        }
        let oldest = shape.oldest(slot);
        if oldest > own {
            return view(0, 0);
        }
        let finished = self.count_of(word)?;
        view(self.recorded(oldest, own)? + finished, finished)
    }

    /// The permits in the word's own slot.
    pub(super) fn count_of(&self, word: u64) -> Option<u64> {
        let own = self.shape.slot(word);
        let older = self.recorded(self.shape.oldest(own), own)?;
        // It never is less.
        Some(self.shape.count(word).saturating_sub(older))
    }

    /// Makes the view's slot the word's, with so many permits in the window. Fails if the word is another
    /// one by now.
    pub(super) fn advance(&self, view: &View, total: u64) -> bool {
        let shape = &self.shape;
        let (own, next) = (shape.slot(view.word), shape.word(view.slot, total));
        if view.slot == own || shape.oldest(view.slot) > own {
            return self.exchange(view.word, next);
        }
        let frozen = mistake!(SkipsTheFreeze => view.word, else shape.frozen(view.word));
        if view.word != frozen && !self.exchange(view.word, frozen) {
            return false;
        }
        if mistake!(LeavesRecordingToOthers) && view.word == frozen {
            return self.exchange(frozen, next);
        }
        if let Some(entry) = self.place_of(own) {
            // ORDERING: Relaxed. `exchange` publishes it, also if somebody else was first here: then that
            // one's entry was read here, and who sees our exchange reads nothing older.
            // Model: loom-tests/tests/slots.rs
            let record = shape.word(own, view.finished);
            let _ = mistake!(RecordsByStore => entry.swap(record, Ordering::Relaxed),
                else entry.fetch_max(record, Ordering::Relaxed));
        }
        self.exchange(frozen, next)
    }

    /// When `n` permits fit the window of this view, if nobody takes more. `None` if the word has moved on
    /// meanwhile; else `None` if the clock will not get there.
    pub(super) fn fits_at(&self, view: &View, n: u64) -> Option<Option<Tick>> {
        let shape = &self.shape;
        let own = shape.slot(view.word);
        let mut total = view.total;
        for slot in shape.oldest(view.slot)..=own.min(view.slot) {
            if total.saturating_add(n) <= shape.limit {
                break;
            }
            let count = match slot {
                _ if slot != own => self.recorded_in(slot)?,
                // All others have left by then.
                _ if view.slot == own => total,
                _ => view.finished,
            };
            total = total.saturating_sub(count);
            if total.saturating_add(n) <= shape.limit {
                let start = shape.grid.reachable_start_of(slot + shape.slots);
                return Some(start.map(Tick::from_nanos));
            }
        }
        Some(Some(Tick::ZERO))
    }
}
