//! The table: lines of slots in memory that was allocated once, and how slots are read and changed.
//!
//! Each change of a slot is an exchange of its whole content, label and word. So who decides on a word finds out if
//! it has become another key's, or of another version. `docs/ORDERINGS.md` has the protocol in full.

use core::num::NonZeroU64;
use std::boxed::Box;

use super::slot::{Content, State};
use super::spot::Spot;
use crate::primitive::{AtomicU128, Line, Ordering, SLOTS, lines, mistake};

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
    lines: Box<[Line]>,
    pairs: NonZeroU64,
}

impl Table {
    /// So many pairs of lines, all empty; `None` if there is no memory for them.
    pub(super) fn new(pairs: NonZeroU64) -> Option<Self> {
        let count = usize::try_from(pairs.get()).ok()?.checked_mul(2)?;
        let lines = lines(count)?;
        Some(Self { lines, pairs })
    }

    #[inline(always)]
    pub(super) const fn pairs(&self) -> NonZeroU64 {
        self.pairs
    }

    /// How many slots there are.
    pub(super) const fn slots(&self) -> usize {
        self.lines.len() * SLOTS
    }

    /// How many lines there are.
    pub(super) const fn len(&self) -> usize {
        self.lines.len()
    }

    #[inline(always)]
    pub(super) fn spot(&self, hash: u64) -> Spot {
        Spot::of(hash, self.pairs)
    }

    #[inline(always)]
    pub(super) fn line(&self, line: usize) -> Option<&Line> {
        self.lines.get(line)
    }

    #[inline(always)]
    fn slot(&self, at: At) -> Option<&AtomicU128> {
        self.line(at.line)?.slots.get(at.place)
    }

    #[inline(always)]
    pub(super) fn load(&self, at: At) -> Content {
        match self.slot(at) {
            Some(slot) => load(slot),
            None => Content::GIVEN_UP,
        }
    }

    /// Where a live slot has exactly one of these labels, of the first pair or of the second, in a home line.
    #[inline(always)]
    pub(super) fn find(
        &self,
        spot: &Spot,
        label: u64,
        second: u64,
    ) -> Option<(&AtomicU128, Content)> {
        self.find_in(spot.first, spot.preferred(false), label)
            .or_else(|| self.find_in(spot.second, spot.preferred(true), second))
    }

    #[inline(always)]
    fn find_in(&self, line: usize, preferred: usize, label: u64) -> Option<(&AtomicU128, Content)> {
        let slots = &self.line(line)?.slots;
        let mut turn = 0;
        while turn < SLOTS {
            let slot = slots.get((turn ^ preferred) % SLOTS)?;
            let held = load(slot);
            if held.label() == label {
                return Some((slot, held));
            }
            turn += 1;
        }
        None
    }

    /// Visits the slots where a key may be, in its own order, until `visit` breaks off. The neighbours only if
    /// there is no slot in the home lines that was never used: whoever put the key into a neighbour found none
    /// there, and they don't come back.
    pub(super) fn visit<T>(
        &self,
        spot: &Spot,
        mut visit: impl FnMut(At, Content) -> Option<T>,
    ) -> Option<T> {
        let mut never_used = false;
        for (turn, line) in spot.lines().into_iter().enumerate() {
            if turn == 2 && never_used {
                break;
            }
            let Some((line, second)) = line else {
                continue;
            };
            for place in 0..SLOTS {
                let at = At {
                    line,
                    place,
                    second,
                };
                let held = self.load(at);
                never_used |= held == Content::NEVER_USED;
                never_used |= mistake!(SkipsByFree) && held.is_free();
                if let Some(found) = visit(at, held) {
                    return Some(found);
                }
            }
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
        // ORDERING: AcqRel. It publishes what was known when it was decided: that the horizon had been raised, which
        // version is in force; and who claims goes on from what others had published by what was here before.
        // Acquire on failure, as `load`.
        // Model: loom-tests/tests/keyed_quota.rs::a_change_reaches_every_key
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let exchanged = slot.compare_exchange(held.bits(), next.bits(), success, failure);
        exchanged.map(|_| ()).map_err(Content::of_bits)
    }

    /// Writes what holds before anybody else looks.
    pub(super) fn place(&mut self, at: At, next: Content) {
        let _ = self.exchange(at, Content::NEVER_USED, next);
    }
}

#[inline(always)]
pub(super) fn load(slot: &AtomicU128) -> Content {
    // ORDERING: Acquire. It pairs with `exchange`: what was published with this content, such as its version's
    // parameters and the horizon under which another key left, is there for who sees it.
    // Model: loom-tests/tests/keyed_quota.rs::a_change_reaches_every_key
    Content::of_bits(slot.load(Ordering::Acquire))
}

/// Puts the next word where a key's word is, if all is as it was there; else what is there now.
#[inline(always)]
pub(super) fn decide(slot: &AtomicU128, held: Content, next: Content) -> Result<(), Content> {
    // ORDERING: Relaxed. It publishes nothing, and leaves what was published by what was here before as it is, for
    // whoever loads what is written here. On failure Acquire, as `load`.
    // Model: loom-tests/tests/keyed.rs::two_decide_on_a_key
    let (success, failure) = (Ordering::Relaxed, Ordering::Acquire);
    let exchanged = slot.compare_exchange_weak(held.bits(), next.bits(), success, failure);
    match exchanged.map_err(Content::of_bits) {
        Ok(_) => Ok(()),
        Err(seen) if mistake!(ForgetsTheOwner) && seen.word == held.word && seen != held => {
            decide(slot, seen, seen.with_word(next.word))
        }
        Err(seen) => Err(seen),
    }
}

impl State {
    /// Of a slot whose word a deed has changed.
    #[inline(always)]
    pub(super) const fn after(self, grants: bool) -> Self {
        match self {
            Self::Banned if !grants => Self::Banned,
            _ => Self::Live,
        }
    }
}
