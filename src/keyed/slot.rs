//! The content of a slot.
//!
//! ```text
//!  127            64 63        12 11      7     6       5    3   2      1    0
//! ┌─────────────────┬────────────┬─────────┬───────────┬──────┬────────┬──────┐
//! │ word, or nonce  │ tag        │ version │ protected │ plan │ second │ state│
//! └─────────────────┴────────────┴─────────┴───────────┴──────┴────────┴──────┘
//! ```
//!
//! A slot is 128 bits. The lower half is its *label*.
//!
//! - The **word** is the state of the key's limit. A claim has a unique number, the nonce, in its
//!   place.
//! - The **tag** is 52 bits of the key's hash. The slot's position gives eight more.
//! - The **version** is that of the quota to which the word belongs, or the number of the key's
//!   override.
//! - **Protected** keys have got at least two grants. Keys with only one, such as those of a flood,
//!   are evicted first.
//! - A **newcomer** took the slot of a key in use, and has got one grant. If keys have spent about
//!   the same, newcomers are evicted first ([`leaving`](super::leaving)).
//! - **Second** says whether the slot is in the key's second pair of buckets
//!   ([`probe_seq`](super::probe_seq)).

use crate::sync::{IS_MODEL, inject_fault};

/// The most plans of a table.
pub(super) const PLANS: u64 = 8;
/// How many versions of a plan a slot can distinguish. Few in a model, so that they recur.
pub(super) const VERSIONS: u64 = if IS_MODEL { 4 } else { 32 };

const STATE: u64 = 0b11;
const LIVE: u64 = SlotKind::Live as u64;
const SECOND: u64 = 0b100;
const PLAN_SHIFT: u32 = 3;
/// A live key is protected. With the state of a free slot: the slot has a newcomer.
const PROTECTED: u64 = 1 << 6;
/// Turns the label of a live key into that of a newcomer, and back.
const NEWCOMER: u64 = LIVE | PROTECTED;
const VERSION_SHIFT: u32 = 7;
/// Marks a claim that evicted a key in use. (A claim has no version.)
const EVICTED: u64 = 1 << VERSION_SHIFT;
pub(super) const TAG_SHIFT: u32 = 12;
const TAG: u64 = !0 << TAG_SHIFT;
const _: () = assert!(PLANS == 8 && (VERSIONS == 32 || IS_MODEL && VERSIONS < 32));

/// The state of a slot, in its first two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// The slot belongs to no key.
    Free = 0,
    /// The slot is claimed for a key that is not in the table yet. In place of the word it holds
    /// the claim's own number.
    Pending = 1,
    /// The slot belongs to a key.
    Live = 2,
    /// The slot belongs to a banned key. No permits can be given back before the key's next grant.
    Banned = 3,
}

/// A slot's content at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotState {
    label: u64,
    pub(super) word: u64,
}

impl SlotState {
    /// The content of a slot that has never been used. It never recurs, and no other content has
    /// its label.
    pub(super) const NEVER_USED: Self = Self { label: 0, word: 0 };
    /// The content of a slot whose claim was released, or whose key was removed.
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

    /// Returns the content with this label and the word 0, such as that of a free slot.
    #[inline(always)]
    pub(super) const fn of_label(label: u64) -> Self {
        Self { label, word: 0 }
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> u128 {
        (self.word as u128) << 64 | self.label as u128
    }

    /// Returns the content of a live slot whose key is not protected.
    #[inline(always)]
    pub(super) const fn live(tag: u64, second: bool, plan: u8, version: u64, word: u64) -> Self {
        let label = tag
            | (version % VERSIONS) << VERSION_SHIFT
            | (plan as u64 % PLANS) << PLAN_SHIFT
            | (second as u64) << 2
            | SlotKind::Live as u64;
        Self { label, word }
    }

    /// Returns the same label for the second pair.
    #[inline(always)]
    pub(super) const fn of_second(label: u64) -> u64 {
        label | SECOND
    }

    /// Returns a claim for a key. `evicts` says whether it takes the slot of a key in use.
    pub(super) const fn pending(tag: u64, second: bool, evicts: bool, nonce: u64) -> Self {
        let evicted = evicts as u64 * EVICTED;
        Self {
            label: tag | evicted | (second as u64) << 2 | SlotKind::Pending as u64,
            word: nonce,
        }
    }

    /// Returns whether a claim took the slot of a key in use.
    pub(super) const fn has_evicted(self) -> bool {
        self.is_pending() && self.label & EVICTED != 0
    }

    #[inline(always)]
    pub(super) const fn with_word(self, word: u64) -> Self {
        Self { word, ..self }
    }

    /// Returns the content of a live slot in another state.
    #[inline(always)]
    pub(super) const fn with_state(self, state: SlotKind) -> Self {
        Self {
            label: self.without_newcomer().label & !STATE | state as u64,
            ..self
        }
    }

    /// Returns the same content of a live slot, and protects the key if `is_protected` is true.
    #[inline(always)]
    pub(super) const fn protected_if(self, is_protected: bool) -> Self {
        Self {
            label: self.label | (is_protected as u64 * (LIVE | PROTECTED)),
            ..self
        }
    }

    /// Returns whether the key is protected.
    pub(super) const fn is_protected(self) -> bool {
        self.label & (LIVE | PROTECTED) == LIVE | PROTECTED
    }

    /// Returns the content of a live slot, whose key becomes a newcomer if `is_newcomer` is true.
    /// Protected and banned keys stay what they are.
    pub(super) const fn newcomer_if(self, is_newcomer: bool) -> Self {
        match is_newcomer && self.label & (PROTECTED | STATE) == LIVE {
            true => Self {
                label: self.label ^ NEWCOMER,
                ..self
            },
            false => self,
        }
    }

    /// Returns whether the key is a newcomer.
    #[inline(always)]
    pub(super) const fn is_newcomer(self) -> bool {
        self.label & (PROTECTED | STATE) == PROTECTED
    }

    /// Returns the same content as if the key were no newcomer.
    #[inline(always)]
    pub(super) const fn without_newcomer(self) -> Self {
        Self {
            label: self.label ^ self.is_newcomer() as u64 * NEWCOMER,
            ..self
        }
    }

    /// Returns the class of a live slot's key. Keys of a lower class leave first.
    #[inline(always)]
    pub(super) const fn class(self) -> u64 {
        let is_banned = self.label & STATE == SlotKind::Banned as u64;
        (is_banned as u64) << 1 | self.is_protected() as u64
    }

    /// Returns whether the key of a live slot has one grant, is not banned and is no newcomer.
    #[inline(always)]
    pub(super) const fn is_plain(self) -> bool {
        self.label & (PROTECTED | STATE) == LIVE
    }

    /// Returns whether the key of a live slot is protected and not banned.
    #[inline(always)]
    pub(super) const fn is_only_protected(self) -> bool {
        self.label & (PROTECTED | STATE) == LIVE | PROTECTED
    }

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

    /// Returns everything except the word.
    #[inline(always)]
    pub(super) const fn label(self) -> u64 {
        self.label
    }

    pub(super) const fn state(self) -> SlotKind {
        match self.without_newcomer().label & STATE {
            0 => SlotKind::Free,
            1 => SlotKind::Pending,
            2 => SlotKind::Live,
            _ => SlotKind::Banned,
        }
    }

    /// Returns whether the slot has a key.
    #[inline(always)]
    pub(super) const fn is_live(self) -> bool {
        self.label & (LIVE | PROTECTED) != 0
    }

    /// Returns a label in which the state of a live slot is that of a live or banned one, also for
    /// a newcomer.
    #[inline(always)]
    pub(super) const fn label_with_live(self) -> u64 {
        self.label | self.label >> (PROTECTED.ilog2() - LIVE.ilog2()) & LIVE
    }

    pub(super) const fn is_pending(self) -> bool {
        self.label & STATE == SlotKind::Pending as u64
    }

    #[inline(always)]
    pub(super) const fn is_free(self) -> bool {
        self.label & (PROTECTED | STATE) == SlotKind::Free as u64
    }

    /// Returns whether the slot belongs to a key with this tag, or is claimed for it. `second` says
    /// whether the slot is in that key's second pair. (In the other pair it would belong to another
    /// key with the same tag.)
    #[inline(always)]
    pub(super) fn is_of(self, tag: u64, second: bool) -> bool {
        self.may_be_of(tag, second) && !self.is_free()
    }

    /// Does what [`is_of`](Self::is_of) does, but also returns `true` for free slots if the tag is
    /// 0.
    #[inline(always)]
    pub(super) fn may_be_of(self, tag: u64, second: bool) -> bool {
        let its_pair = inject_fault!(IgnoresThePair => self.is_second(), else second);
        self.label & (TAG | SECOND) == tag | (its_pair as u64) << 2
    }

    pub(super) const fn tag(self) -> u64 {
        self.label & TAG
    }

    /// Returns whether the slot is in the second pair of buckets of its key.
    pub(super) const fn is_second(self) -> bool {
        self.label & SECOND != 0
    }

    pub(super) const fn plan(self) -> u8 {
        (self.label >> PLAN_SHIFT & (PLANS - 1)) as u8
    }

    /// Returns the last bits of the version.
    pub(super) const fn version(self) -> u64 {
        self.label >> VERSION_SHIFT & (VERSIONS - 1)
    }
}
