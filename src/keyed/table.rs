//! The table: lines of slots in memory that was allocated once, and how slots are read and changed.
//!
//! Each change of a slot is an exchange of its whole content, label and word. So who decides on a
//! word finds out if it has become another key's, or of another version. `docs/ORDERINGS.md` has
//! the protocol in full.

use core::num::NonZeroU64;

use super::slot::Content;
use super::spot::Spot;
use crate::primitive::{AtomicU128, Line, Lines, Ordering, Quick, SLOTS, mistake, prefetch};

/// A slot, by line and place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: usize,
    pub(super) place: usize,
    /// Whether it is of the key's second pair.
    pub(super) second: bool,
}

#[derive(Debug)]
pub(super) struct Table {
    lines: Lines,
    count: NonZeroU64,
    quick: Option<Quick>,
}

impl Table {
    /// So many pairs of lines, all empty; `None` if there is no memory for them.
    pub(super) fn new(pairs: NonZeroU64) -> Option<Self> {
        let count = pairs.checked_mul(NonZeroU64::MIN.saturating_add(1))?;
        let lines = Lines::zeroed(usize::try_from(count.get()).ok()?)?;
        Some(Self {
            lines,
            count,
            quick: Quick::there(),
        })
    }

    /// An empty one of the same size.
    pub(super) fn like(other: &Self) -> Option<Self> {
        Self::new(NonZeroU64::new(other.count.get() / 2)?)
    }

    #[inline(always)]
    pub(super) const fn lines(&self) -> NonZeroU64 {
        self.count
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.lines.len() * SLOTS
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// What those need who decide at the first turn.
    #[inline(always)]
    pub(super) const fn quick(&self) -> Option<Quick> {
        self.quick
    }

    #[inline(always)]
    pub(super) fn spot(&self, hash: u64) -> Spot {
        Spot::of(hash, self.count)
    }

    #[inline(always)]
    pub(super) fn line(&self, line: usize) -> Option<&Line> {
        self.lines.get(line)
    }

    /// Asks for a line before it is needed.
    #[inline(always)]
    pub(super) fn fetch(&self, line: usize) {
        prefetch(self.lines.as_ptr().wrapping_add(line));
    }

    #[inline(always)]
    fn slot(&self, at: At) -> Option<&AtomicU128> {
        self.line(at.line)?.slots.get(at.place)
    }

    #[inline(always)]
    pub(super) fn load(&self, at: At) -> Content {
        match self.slot(at) {
            Some(slot) => self.load_slot(slot),
            None => Content::GIVEN_UP,
        }
    }

    /// All slots of a line, one after the other.
    #[inline(always)]
    pub(super) fn load_line(&self, line: usize) -> [Content; SLOTS] {
        match self.line(line) {
            Some(line) => line.slots.each_ref().map(|slot| self.load_slot(slot)),
            None => [Content::GIVEN_UP; SLOTS],
        }
    }

    #[inline(always)]
    fn load_slot(&self, slot: &AtomicU128) -> Content {
        // ORDERING: Acquire. It pairs with `exchange`: what was published with this content, such
        // as its version's parameters and the horizon under which another key left, is there for
        // who sees it. Model: keyed_turnover::who_is_late_gets_no_second_burst
        let order = Ordering::Acquire;
        Content::of_bits(match self.quick {
            Some(quick) => quick.load(slot, order),
            None => slot.load(order),
        })
    }

    /// The live slot of a key that has exactly this label, but for the bit of the second pair, in a
    /// home line.
    #[inline(always)]
    pub(super) fn find(&self, quick: Quick, spot: &Spot, label: u64) -> Option<Place<'_>> {
        self.find_in(quick, spot.first(), spot.preferred(false), label)
            .or_else(|| {
                let label = Content::of_second(label);
                self.find_in(quick, spot.second(), spot.preferred(true), label)
            })
    }

    #[inline(always)]
    fn find_in(
        &self,
        quick: Quick,
        line: usize,
        preferred: usize,
        label: u64,
    ) -> Option<Place<'_>> {
        let slots = &self.line(line)?.slots;
        let mut turn = 0;
        while turn < SLOTS {
            let slot = slots.get((turn ^ preferred) % SLOTS)?;
            // ORDERING: Acquire. As `load`.
            // Model: keyed::two_decide_on_a_key
            let held = Content::of_bits(quick.load(slot, Ordering::Acquire));
            if held.label() == label {
                return Some(Place { slot, held, quick });
            }
            turn += 1;
        }
        None
    }

    /// Every slot, as it is when its turn comes.
    pub(super) fn all(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        (0..self.len()).flat_map(move |line| self.slots_of(line))
    }

    /// The slots of a line.
    pub(super) fn slots_of(&self, line: usize) -> impl Iterator<Item = (At, Content)> + '_ {
        (0..SLOTS).map(move |place| {
            let at = At {
                line,
                place,
                second: false,
            };
            (at, self.load(at))
        })
    }

    /// Claims a slot for a key, or gives one up: what is written there makes or ends a claim.
    pub(super) fn exchange(&self, at: At, held: Content, next: Content) -> Result<(), Content> {
        let Some(slot) = self.slot(at) else {
            return Err(Content::GIVEN_UP);
        };
        // ORDERING: AcqRel. It publishes what was known when it was decided: that the horizon had
        // been raised, which version is in force; and who claims goes on from what others had
        // published by what was here before. Acquire on failure, as `load`. Model:
        // keyed_quota::a_change_reaches_every_key
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let exchanged = slot.compare_exchange(held.bits(), next.bits(), success, failure);
        exchanged.map(|_| ()).map_err(Content::of_bits)
    }
}

/// A live slot that was found, and what it held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'t> {
    slot: &'t AtomicU128,
    pub(super) held: Content,
    quick: Quick,
}

impl Place<'_> {
    /// Puts the next word where the key's word is, if all is as it was there; else what is there
    /// now.
    #[inline(always)]
    pub(super) fn decide(self, next: u64) -> Result<(), Content> {
        // ORDERING: Relaxed. It publishes nothing, and leaves what was published by what was here
        // before as it is, for whoever loads what is written here. On failure Acquire, as `load`.
        // Model: keyed::two_decide_on_a_key
        let (success, failure) = (Ordering::Relaxed, Ordering::Acquire);
        let (old, new) = (self.held.bits(), self.held.with_word(next).bits());
        let exchanged = self
            .quick
            .compare_exchange(self.slot, old, new, success, failure);
        match exchanged.map_err(Content::of_bits) {
            Ok(_) => Ok(()),
            Err(seen) if mistake!(ForgetsTheOwner) && seen.word == self.held.word => {
                Self { held: seen, ..self }.decide(next)
            }
            Err(seen) => Err(seen),
        }
    }
}
