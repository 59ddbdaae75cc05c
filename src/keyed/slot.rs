//! What a slot of the table holds.
//!
//! ```text
//!  127            64 63        12 11      7     6       5    3   2      1    0
//! ┌─────────────────┬────────────┬─────────┬───────────┬──────┬────────┬──────┐
//! │ word, or nonce  │ tag        │ version │ protected │ plan │ second │ state│
//! └─────────────────┴────────────┴─────────┴───────────┴──────┴────────┴──────┘
//! ```
//!
//! A key is *protected* from its second grant on: keys that came once, as those of a flood do,
//! leave before it.

use crate::sync::{IS_MODEL, inject_fault};

/// The most plans that a table can have.
pub(super) const PLANS: u64 = 8;
/// How many versions of a plan a slot can tell apart. Few in a model, so that they come again.
pub(super) const VERSIONS: u64 = if IS_MODEL { 4 } else { 32 };

const STATE: u64 = 0b11;
const SECOND: u64 = 0b100;
const PLAN_SHIFT: u32 = 3;
const PROTECTED: u64 = 1 << 6;
const VERSION_SHIFT: u32 = 7;
pub(super) const TAG_SHIFT: u32 = 12;
const TAG: u64 = !0 << TAG_SHIFT;
const _: () = assert!(PLANS == 8 && (VERSIONS == 32 || IS_MODEL && VERSIONS < 32));

/// What is in a slot's first two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// Nobody's.
    Free = 0,
    /// Claimed for a key, which is not in the table yet: where the word would be is the claim's own
    /// number.
    Pending = 1,
    /// A key's.
    Live = 2,
    /// A banned key's: nothing can be given back until it is granted something again.
    Banned = 3,
}

/// A slot's content, as it was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotState {
    label: u64,
    pub(super) word: u64,
}

impl SlotState {
    /// What no slot has had yet: it never comes back. No other content has its label.
    pub(super) const NEVER_USED: Self = Self { label: 0, word: 0 };
    /// A slot that was claimed and given up, or whose key was removed.
    pub(super) const RELEASED: Self = Self {
        label: SECOND,
        word: 0,
    };

    #[inline(always)]
    pub(super) const fn of_bits(bits: u128) -> Self {
        Self {
            label: bits as u64,
            word: (bits >> 64) as u64,
        }
    }

    /// A content with this label, and no word: as a free slot has it.
    #[inline(always)]
    pub(super) const fn of_label(label: u64) -> Self {
        Self { label, word: 0 }
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> u128 {
        (self.word as u128) << 64 | self.label as u128
    }

    /// A live key's, not protected.
    #[inline(always)]
    pub(super) const fn live(tag: u64, second: bool, plan: u8, version: u64, word: u64) -> Self {
        let label = tag
            | (version % VERSIONS) << VERSION_SHIFT
            | (plan as u64 % PLANS) << PLAN_SHIFT
            | (second as u64) << 2
            | SlotKind::Live as u64;
        Self { label, word }
    }

    /// The same label, of the second pair.
    #[inline(always)]
    pub(super) const fn of_second(label: u64) -> u64 {
        label | SECOND
    }

    /// A claim for a key.
    pub(super) const fn pending(tag: u64, second: bool, nonce: u64) -> Self {
        Self {
            label: tag | (second as u64) << 2 | SlotKind::Pending as u64,
            word: nonce,
        }
    }

    #[inline(always)]
    pub(super) const fn with_word(self, word: u64) -> Self {
        Self { word, ..self }
    }

    #[inline(always)]
    pub(super) const fn with_state(self, state: SlotKind) -> Self {
        Self {
            label: self.label & !STATE | state as u64,
            ..self
        }
    }

    /// The same, protected if this says so or it is already.
    #[inline(always)]
    pub(super) const fn protected_if(self, is_protected: bool) -> Self {
        Self {
            label: self.label | (is_protected as u64 * PROTECTED),
            ..self
        }
    }

    /// Whether its key was granted something again after it came.
    pub(super) const fn is_protected(self) -> bool {
        self.label & PROTECTED != 0
    }

    /// The class in which a live slot's key leaves: the lower one first.
    #[inline(always)]
    pub(super) const fn class(self) -> u64 {
        let is_banned = self.label & SlotKind::Banned as u64 == SlotKind::Banned as u64;
        (is_banned as u64) << 1 | self.is_protected() as u64
    }

    /// 0 for a live slot whose key is neither banned nor protected, and [`Self::IS_PROTECTED`] if
    /// it is protected only; other numbers for all else.
    #[inline(always)]
    pub(super) const fn rank(self) -> u64 {
        self.label & (PROTECTED | STATE) ^ SlotKind::Live as u64
    }

    /// See [`rank`](Self::rank).
    pub(super) const IS_PROTECTED: u64 = PROTECTED;

    pub(super) const fn with_version(self, version: u64) -> Self {
        let version = (version % VERSIONS) << VERSION_SHIFT;
        Self {
            label: self.label & !((VERSIONS - 1) << VERSION_SHIFT) | version,
            ..self
        }
    }

    pub(super) const fn with_plan(self, plan: u8) -> Self {
        let plan = (plan as u64 % PLANS) << PLAN_SHIFT;
        Self {
            label: self.label & !((PLANS - 1) << PLAN_SHIFT) | plan,
            ..self
        }
    }

    pub(super) const fn with_second(self, second: bool) -> Self {
        Self {
            label: self.label & !SECOND | (second as u64) << 2,
            ..self
        }
    }

    /// All but the word.
    #[inline(always)]
    pub(super) const fn label(self) -> u64 {
        self.label
    }

    pub(super) const fn state(self) -> SlotKind {
        match self.label & STATE {
            0 => SlotKind::Free,
            1 => SlotKind::Pending,
            2 => SlotKind::Live,
            _ => SlotKind::Banned,
        }
    }

    /// Whether a key is here.
    pub(super) const fn is_live(self) -> bool {
        self.label & SlotKind::Live as u64 != 0
    }

    pub(super) const fn is_pending(self) -> bool {
        self.label & STATE == SlotKind::Pending as u64
    }

    pub(super) const fn is_free(self) -> bool {
        self.label & STATE == SlotKind::Free as u64
    }

    /// Whether it is, or is to be, that of a key with this tag, of which this is the second pair of
    /// buckets or the first. (In the other one it would be another key's, which has the same tag.)
    #[inline(always)]
    pub(super) fn is_of(self, tag: u64, second: bool) -> bool {
        self.may_be_of(tag, second) && !self.is_free()
    }

    /// The same, and free slots if the tag is 0.
    #[inline(always)]
    pub(super) fn may_be_of(self, tag: u64, second: bool) -> bool {
        let its_pair = inject_fault!(IgnoresThePair => self.is_second(), else second);
        self.label & (TAG | SECOND) == tag | (its_pair as u64) << 2
    }

    pub(super) const fn tag(self) -> u64 {
        self.label & TAG
    }

    /// Whether it is in the second of the two pairs of buckets where its key may be.
    pub(super) const fn is_second(self) -> bool {
        self.label & SECOND != 0
    }

    pub(super) const fn plan(self) -> u8 {
        (self.label >> PLAN_SHIFT & (PLANS - 1)) as u8
    }

    /// The version's last bits.
    pub(super) const fn version(self) -> u64 {
        self.label >> VERSION_SHIFT & (VERSIONS - 1)
    }
}
