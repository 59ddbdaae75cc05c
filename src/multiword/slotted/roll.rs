//! How a slotted window goes on to its next slot.
//!
//! One word decides. A ring, which is as long as the next power of two, keeps the count of each
//! finished slot, and is read only when a slot ends (or by who wants to know when it will have been
//! long enough).
//!
//! 1. **Freeze.** Who has a permit to count in a later slot sets a bit in the word. From then on
//!    the word changes in one way only: to a later slot. So the finished slot's count is known for
//!    good: it is what the word has, less the older slots in the ring.
//! 2. **Record.** Anybody who sees a frozen word computes the same count, and puts it into the ring
//!    by `fetch_max`. Once is as good as many times, and a late writer changes nothing: its entry
//!    is there, or a later one.
//! 3. **Move on.** The sum of the slots that the new window still has, and the permits that are
//!    taken, become the new word in one exchange. Whoever is first wins; the others look again.
//!
//! Nobody waits: who stops after any of these leaves a word that everybody else can go on from.
//! Where no slot of the old window is in the new one, nothing need be recorded, and 3 is enough.
//!
//! Without the bit a count could be recorded that was changed before the word moved on. More would
//! be counted than was taken if permits were given back meanwhile, and the next slots' counts,
//! which are differences, would then be less than what was taken in them.

use super::SlottedWindow;
use crate::clock::Tick;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// How wide the note is of how long ago the first permits were taken: for as many slots as there
/// can be.
const NOTED: u32 = 17;

/// A word as it stands at a tick.
#[derive(Clone, Copy)]
pub(super) struct RolledWindow {
    pub(super) word: u64,
    /// The slot that a permit would be counted in.
    pub(super) slot: u64,
    /// The permits in the window that ends with that slot.
    pub(super) total: u64,
    /// Those of the word's own slot, if it has been finished.
    pub(super) finished: u64,
    /// No slot of that window before this one has permits.
    pub(super) first: u64,
}

impl<C> SlottedWindow<C> {
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `exchange`: who sees a slot sees the
        // entries of the slots before it. Relaxed, an entry could be missing, and its permits be
        // had again. Models: slots::
        self.word.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn exchange(&self, word: u64, next: u64) -> bool {
        // ORDERING: Release on success, for what was recorded before: see `load`. On failure
        // Relaxed: the word is loaded again. Models: slots::
        self.word
            .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The permits of finished slots, from the first to before the last, and which has some first:
    /// the last if none of them. `None` if one of them is in the ring no more: then the word has
    /// moved on.
    fn recorded(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let (mut sum, mut begins) = (0_u64, last);
        for slot in (first..last).rev() {
            match self.recorded_in(slot)? {
                0 => {}
                count => (sum, begins) = (sum + count, slot),
            }
        }
        Some((sum, begins))
    }

    /// Where a slot is recorded. Slots of one window have different places.
    #[inline(always)]
    fn place_of(&self, slot: u64) -> Option<&AtomicU64> {
        self.ring
            .get(slot as usize & self.ring.len().wrapping_sub(1))
    }

    /// The permits of a finished slot; none if it was never begun.
    fn recorded_in(&self, slot: u64) -> Option<u64> {
        // ORDERING: Acquire. Of this slot or an older one the word has told: see `load`. A later
        // slot's entry says that the word has moved on, and pairs with the release in `advance`:
        // the word that is loaded after it is one that has. Relaxed, it could be the same again and
        // again. Models: slots::
        let entry = self.place_of(slot)?.load(Ordering::Acquire);
        match self.shape.slot(entry) {
            recorded if recorded == slot => Some(self.shape.count(entry)),
            older if older < slot => Some(0),
            _ => None,
        }
    }

    /// How the word stands at `now`. `None` if it has moved on meanwhile.
    #[inline]
    pub(super) fn view(&self, word: u64, now: Tick) -> Option<RolledWindow> {
        let shape = &self.shape;
        let (own, total) = (shape.slot(word), shape.count(word));
        let is_frozen = shape.is_frozen(word) && !inject_fault!(IgnoresTheFreeze);
        let slot = match shape.grid.elapsed_in(own, now) {
            Some(_) if !is_frozen => own,
            // Somebody has seen a slot after a frozen one.
            _ => shape.grid.place(now).index.max(own + u64::from(is_frozen)),
        };
        let view = |total, finished, first| {
            Some(RolledWindow {
                word,
                slot,
                total,
                finished,
                first,
            })
        };
        let oldest = shape.oldest(slot);
        if slot == own {
            return view(total, 0, self.first_in(own).unwrap_or(oldest));
        }
        if oldest > own {
            return view(0, 0, slot);
        }
        let finished = self.count_of(word)?;
        match self.recorded(oldest, own)? {
            (0, _) if finished == 0 => view(0, 0, slot),
            (older, first) => view(older + finished, finished, first),
        }
    }

    /// The permits in the word's own slot.
    pub(super) fn count_of(&self, word: u64) -> Option<u64> {
        let own = self.shape.slot(word);
        let (older, _) = self.recorded(self.shape.oldest(own), own)?;
        // It never is less.
        Some(self.shape.count(word).saturating_sub(older))
    }

    /// Makes the view's slot the word's, with so many permits in the window. Fails if the word is
    /// another one by now.
    pub(super) fn advance(&self, view: &RolledWindow, total: u64) -> bool {
        let shape = &self.shape;
        let (own, next) = (shape.slot(view.word), shape.word(view.slot, total));
        if view.slot == own {
            return self.exchange(view.word, next);
        }
        if shape.oldest(view.slot) > own {
            return self.exchange(view.word, next) && self.note_first(view);
        }
        let frozen = inject_fault!(SkipsTheFreeze => view.word, else shape.frozen(view.word));
        if view.word != frozen && !self.exchange(view.word, frozen) {
            return false;
        }
        if inject_fault!(LeavesRecordingToOthers) && view.word == frozen {
            return self.exchange(frozen, next);
        }
        if let Some(entry) = self.place_of(own) {
            // ORDERING: Release. It tells that the word is frozen: see `recorded_in`. What is
            // recorded `exchange` publishes, also if somebody else was first here: then that one's
            // entry was read here, and who sees our exchange reads nothing older. Models: slots::
            let record = shape.word(own, view.finished);
            let _ = inject_fault!(RecordsByStore => entry.swap(record, Ordering::Release),
                else entry.fetch_max(record, Ordering::Release));
        }
        self.exchange(frozen, next) && self.note_first(view)
    }

    /// Notes which slot has the first permits of the window that the word has moved to: only who
    /// moved it does, so that there is one note for each slot. Until it is there, and if an older
    /// one comes after it, who wants to know looks from the oldest slot on.
    fn note_first(&self, view: &RolledWindow) -> bool {
        let note = (view.slot << NOTED) | (view.slot - view.first);
        // ORDERING: Relaxed. It says itself of which slot it is. Models: slots::
        self.first.swap(note, Ordering::Relaxed);
        true
    }

    /// What was noted of the window that ends with this slot.
    #[inline(always)]
    pub(super) fn first_in(&self, slot: u64) -> Option<u64> {
        // ORDERING: Relaxed. See `note_first`.
        let note = self.first.load(Ordering::Relaxed);
        (note >> NOTED == slot & (u64::MAX >> NOTED))
            .then(|| slot.wrapping_sub(note & !(u64::MAX << NOTED)))
    }

    /// With which slot's end there are no more than `target` permits in the window of this view, if
    /// nobody takes more. `None` if the word has moved on meanwhile; else `None` if there are no
    /// more now.
    pub(super) fn falls_with(&self, view: &RolledWindow, target: u64) -> Option<Option<u64>> {
        let own = self.shape.slot(view.word);
        if view.total <= target {
            return Some(None);
        }
        let mut total = view.total;
        for slot in view.first..own {
            total = total.saturating_sub(self.recorded_in(slot)?);
            if total <= target {
                return Some(Some(slot));
            }
        }
        if total.saturating_sub(view.finished) <= target {
            return Some(Some(own));
        }
        // In the view's slot are all that are left.
        Some(Some(view.slot))
    }
}
