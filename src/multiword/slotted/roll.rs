//! The protocol by which a slotted window moves on to its next slot.
//!
//! One word decides. A ring, whose length is the number of slots rounded up to a power of two,
//! keeps the count of each finished slot. It is read only when a slot ends, or to compute how long
//! a caller must wait.
//!
//! 1. **Freeze.** A thread that must count a permit in a later slot sets a bit in the word. From
//!    then on the word can only change to a later slot, so the count of the finished slot is final:
//!    the word's count, less the counts of the older slots in the ring.
//! 2. **Record.** Any thread that sees a frozen word computes the same count, and puts it into the
//!    ring by `fetch_max`. Recording it several times is harmless, and a late writer changes
//!    nothing: the ring already has its entry or a later one.
//! 3. **Move on.** One exchange sets the new word: the sum of the slots that stay in the window,
//!    plus the permits that are taken. The first thread wins; the others look again.
//!
//! No thread waits for another: a thread that stops after any of these steps leaves a word from
//! which all others can go on. If no slot of the old window is in the new one, nothing need be
//! recorded, and step 3 is enough.
//!
//! Without the bit, a thread could record a count that another then changes before the word moves
//! on. If permits were given back meanwhile, the record would be larger than what was taken. The
//! counts of the next slots, which are differences, would then be too small.

use super::SlottedWindow;
use crate::clock::Tick;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// The number of bits in a note for the distance back to the first slot with permits: enough for
/// [`MAX_SLOTS`](super::shape::MAX_SLOTS). See `note_first`.
const NOTED: u32 = 17;

/// A word, evaluated at a tick.
#[derive(Clone, Copy)]
pub(super) struct RolledWindow {
    pub(super) word: u64,
    /// The slot in which a permit would count.
    pub(super) slot: u64,
    /// The permits in the window that ends with that slot.
    pub(super) total: u64,
    /// The permits in the word's own slot, if that is finished.
    pub(super) finished: u64,
    /// All slots of that window before this one are empty.
    pub(super) first: u64,
}

impl<C> SlottedWindow<C> {
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `exchange`: a thread that sees a slot
        // sees the entries of the slots before it. If this were Relaxed, an entry could be missing,
        // and its permits be granted twice. Models: slots::
        self.word.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn exchange(&self, word: u64, next: u64) -> bool {
        // ORDERING: Release on success. It publishes what was recorded before, and pairs with the
        // acquire in `load`. Relaxed on failure: the word is loaded again. Models: slots::
        self.word
            .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the permits of the finished slots in `first..last`, and the first of these slots
    /// that has any (`last` if none has). `None` if the ring has lost one of them: then the word
    /// has moved on.
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

    /// Returns the entry for a slot. The slots of one window have different entries.
    #[inline(always)]
    fn place_of(&self, slot: u64) -> Option<&AtomicU64> {
        self.ring
            .get(slot as usize & self.ring.len().wrapping_sub(1))
    }

    /// Returns the permits of a finished slot: 0 if it never began.
    fn recorded_in(&self, slot: u64) -> Option<u64> {
        // ORDERING: Acquire. It pairs with the release in `advance`: a thread that reads the entry
        // of a later slot then loads a word that has moved on. If this were Relaxed, that load
        // could return the old word again and again. For an entry of this slot or an older one, the
        // acquire in `load` is enough. Models: slots::
        let entry = self.place_of(slot)?.load(Ordering::Acquire);
        match self.shape.slot(entry) {
            recorded if recorded == slot => Some(self.shape.count(entry)),
            older if older < slot => Some(0),
            _ => None,
        }
    }

    /// Evaluates the word at `now`. `None` if it has moved on meanwhile.
    #[inline]
    pub(super) fn view(&self, word: u64, now: Tick) -> Option<RolledWindow> {
        let shape = &self.shape;
        let (own, total) = (shape.slot(word), shape.count(word));
        let is_frozen = shape.is_frozen(word) && !inject_fault!(IgnoresTheFreeze); // FAULT
        let slot = match shape.grid.elapsed_in(own, now) {
            Some(_) if !is_frozen => own,
            // A frozen word means that another thread has seen a later slot.
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

    /// Returns the permits in the word's own slot.
    pub(super) fn count_of(&self, word: u64) -> Option<u64> {
        let own = self.shape.slot(word);
        let (older, _) = self.recorded(self.shape.oldest(own), own)?;
        // The count is never less than `older`, so this does not saturate.
        Some(self.shape.count(word).saturating_sub(older))
    }

    /// Moves the word to the view's slot, with `total` permits in the window. Returns false if the
    /// word has changed.
    pub(super) fn advance(&self, view: &RolledWindow, total: u64) -> bool {
        let shape = &self.shape;
        let (own, next) = (shape.slot(view.word), shape.word(view.slot, total));
        if view.slot == own {
            return self.exchange(view.word, next);
        }
        if shape.oldest(view.slot) > own {
            return self.exchange(view.word, next) && self.note_first(view);
        }
        let frozen = shape.frozen(view.word);
        if view.word != frozen && !self.exchange(view.word, frozen) {
            return false;
        }
        let leaves = view.word == frozen && inject_fault!(LeavesRecordingToOthers); // FAULT
        if leaves {
            return self.exchange(frozen, next);
        }
        if let Some(entry) = self.place_of(own) {
            // ORDERING: Release. It publishes that the word is frozen, and pairs with the acquire
            // in `recorded_in`. The record itself is published by `exchange`. That holds even if
            // another thread recorded it first: then this operation reads that entry, and a thread
            // that sees our exchange reads nothing older. Models: slots::
            let record = shape.word(own, view.finished);
            entry.fetch_max(record, Ordering::Release);
        }
        self.exchange(frozen, next) && self.note_first(view)
    }

    /// Notes which slot of the new window is the first that has permits. Only the thread that moved
    /// the word writes this note, so there is one for each slot. If the note is missing, or an
    /// older one overwrites it, readers search from the oldest slot.
    fn note_first(&self, view: &RolledWindow) -> bool {
        let note = (view.slot << NOTED) | (view.slot - view.first);
        // ORDERING: Relaxed. It publishes nothing: the note contains its own slot. Models: slots::
        self.first.swap(note, Ordering::Relaxed);
        true
    }

    /// Returns the first slot that has permits in the window that ends with this slot, if it was
    /// noted.
    #[inline(always)]
    pub(super) fn first_in(&self, slot: u64) -> Option<u64> {
        // ORDERING: Relaxed. See `note_first`.
        let note = self.first.load(Ordering::Relaxed);
        (note >> NOTED == slot & (u64::MAX >> NOTED))
            .then(|| slot.wrapping_sub(note & !(u64::MAX << NOTED)))
    }

    /// Returns the last slot that must leave the window of this view before it has at most `target`
    /// permits, if no more are taken. `None` if the word has moved on meanwhile, and `Some(None)`
    /// if the window has at most `target` now.
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
        // All that are left are in the view's slot.
        Some(Some(view.slot))
    }
}
