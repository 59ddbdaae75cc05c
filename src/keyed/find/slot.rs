//! The content of a slot.
//!
//! ```text
//!  127            64 63        12 11      7     6       5    3   2      1    0
//! ┌─────────────────┬────────────┬─────────┬───────────┬──────┬────────┬──────┐
//! │ word, or nonce  │ tag        │ version │ code      │ plan │ second │ code │
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
//!   the same, newcomers are evicted first (`admit/leaving.rs`).
//! - **Second** says whether the slot is in the key's second pair of buckets
//!   ([`probe_seq`](super::probe_seq)).
//! - The **code** says whether the slot has a key, and which of these it is. Bit 1 is set if a key
//!   that is not banned has the slot, bit 6 if the key is protected or banned:
//!
//! | bit 6 | bits 1 and 0 | the slot is |
//! |---|---|---|
//! | 0 | 00, 01 | free, pending |
//! | 0 | 10, 11 | live, live with a newcomer |
//! | 1 | 10 | live, protected |
//! | 1 | 00, 01 | banned, banned and protected |

use crate::sync::{IS_MODEL, inject_fault};

/// The most plans of a table.
pub(crate) const PLANS: u64 = 8;
/// How many versions of a plan a slot can distinguish. Few in a model, so that they recur.
pub(crate) const VERSIONS: u64 = if IS_MODEL { 4 } else { 32 };

const STATE: u64 = 0b11;
const LIVE_BIT: u64 = 0b10;
const SECOND: u64 = 0b100;
const PLAN_SHIFT: u32 = 3;
const PROTECTED_BIT: u64 = 1 << 6;
/// The bits that say what a slot is.
const CODE: u64 = PROTECTED_BIT | STATE;
const VERSION_SHIFT: u32 = 7;
/// Marks a claim that evicted a key in use. (A claim has no version.)
const EVICTED: u64 = 1 << VERSION_SHIFT;
pub(crate) const TAG_SHIFT: u32 = 12;
const TAG: u64 = !0 << TAG_SHIFT;
const _: () = assert!(PLANS == 8 && (VERSIONS == 32 || IS_MODEL && VERSIONS < 32));

// The codes of a slot. A free slot has the code 0.
const PENDING: u64 = 1;
/// A key that was granted permits at most once, and is no newcomer.
pub(crate) const UNPROTECTED: u64 = LIVE_BIT;
pub(crate) const NEWCOMER: u64 = LIVE_BIT | 1;
/// A protected key.
pub(crate) const PROTECTED: u64 = LIVE_BIT | PROTECTED_BIT;
/// A banned key, which is not protected.
const BANNED: u64 = PROTECTED_BIT;
const BANNED_PROTECTED: u64 = PROTECTED_BIT | 1;

/// A slot's content at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotState {
    label: u64,
    word: u64,
}

/// A label with the word 0, as a free slot has it.
impl From<u64> for SlotState {
    #[inline(always)]
    fn from(label: u64) -> Self {
        Self { label, word: 0 }
    }
}

impl SlotState {
    /// The content of a slot that has never been used. It never recurs, and no other content has
    /// its label.
    pub(crate) const NEVER_USED: Self = Self { label: 0, word: 0 };
    /// The content of a slot whose claim was released, or whose key was removed.
    pub(crate) const RELEASED: Self = Self {
        label: SECOND,
        word: 0,
    };

    #[inline(always)]
    pub(crate) const fn of_bits(bits: u128) -> Self {
        Self {
            label: bits as u64,
            word: (bits >> 64) as u64,
        }
    }

    #[inline(always)]
    pub(crate) const fn bits(self) -> u128 {
        (self.word as u128) << 64 | self.label as u128
    }

    /// Returns the content of a live slot whose key is not protected.
    #[inline(always)]
    pub(crate) const fn live(tag: u64, second: bool, plan: u8, version: u64, word: u64) -> Self {
        let label = tag
            | (version % VERSIONS) << VERSION_SHIFT
            | (plan as u64 % PLANS) << PLAN_SHIFT
            | (second as u64) << 2
            | UNPROTECTED;
        Self { label, word }
    }

    /// Returns the same label for the second pair.
    #[inline(always)]
    pub(crate) const fn of_second(label: u64) -> u64 {
        label | SECOND
    }

    /// Returns a claim for a key. `evicts` says whether it takes the slot of a key in use.
    pub(crate) const fn pending(tag: u64, second: bool, evicts: bool, nonce: u64) -> Self {
        let evicted = evicts as u64 * EVICTED;
        Self {
            label: tag | evicted | (second as u64) << 2 | PENDING,
            word: nonce,
        }
    }

    /// Returns whether a claim took the slot of a key in use.
    pub(crate) const fn has_evicted(self) -> bool {
        self.is_pending() && self.label & EVICTED != 0
    }

    #[inline(always)]
    pub(crate) const fn with_word(self, word: u64) -> Self {
        Self { word, ..self }
    }

    /// Returns the bits that say what the slot is. Live keys of one plan that have the same code
    /// differ in their words alone.
    #[inline(always)]
    pub(crate) const fn code(self) -> u64 {
        self.label & CODE
    }

    #[inline(always)]
    const fn with_code(self, code: u64) -> Self {
        Self {
            label: self.label & !CODE | code,
            ..self
        }
    }

    /// Returns the same content of a live slot, whose key is banned if `is_banned` is true. A key
    /// that is banned is no newcomer any more.
    pub(crate) const fn banned_if(self, is_banned: bool) -> Self {
        self.with_code(match (is_banned, self.is_protected()) {
            (false, false) => UNPROTECTED,
            (false, true) => PROTECTED,
            (true, false) => BANNED,
            (true, true) => BANNED_PROTECTED,
        })
    }

    /// Returns the same content of a live slot, and protects the key if `is_protected` is true.
    #[inline(always)]
    pub(crate) const fn protected_if(self, is_protected: bool) -> Self {
        match (is_protected, self.is_banned()) {
            (false, _) => self,
            (true, false) => self.with_code(PROTECTED),
            (true, true) => self.with_code(BANNED_PROTECTED),
        }
    }

    /// Returns whether the key is protected.
    pub(crate) const fn is_protected(self) -> bool {
        matches!(self.code(), PROTECTED | BANNED_PROTECTED)
    }

    /// Returns whether the slot belongs to a banned key. No permits can be given back to it before
    /// its next grant.
    #[inline(always)]
    pub(crate) const fn is_banned(self) -> bool {
        self.label & (LIVE_BIT | PROTECTED_BIT) == PROTECTED_BIT
    }

    /// Returns the same content of a live slot, whose key becomes a newcomer if `is_newcomer` is
    /// true. Protected and banned keys stay what they are.
    pub(crate) const fn newcomer_if(self, is_newcomer: bool) -> Self {
        match is_newcomer && self.code() == UNPROTECTED {
            true => self.with_code(NEWCOMER),
            false => self,
        }
    }

    /// Returns whether the key is a newcomer.
    #[inline(always)]
    pub(crate) const fn is_newcomer(self) -> bool {
        self.code() == NEWCOMER
    }

    /// Returns the same content of a live slot whose key is not banned. If `takes` is true, the key
    /// gets a grant, which protects it.
    #[inline(always)]
    pub(crate) const fn granted_if(self, takes: bool) -> Self {
        Self {
            label: self.label & !(takes as u64) | (takes as u64 * PROTECTED_BIT),
            ..self
        }
    }

    /// Returns whether this slot has the label of `expected`, or of the same key as a newcomer.
    #[inline(always)]
    pub(crate) const fn is_unprotected(self, expected: Self) -> bool {
        self.label ^ expected.label <= NEWCOMER ^ UNPROTECTED
    }

    /// Returns whether this slot has the label of `expected`, or of the same key as a newcomer or
    /// protected.
    #[inline(always)]
    pub(crate) const fn is_unbanned(self, expected: Self) -> bool {
        (self.label ^ expected.label) & !(PROTECTED_BIT | 1) == 0
    }

    /// Returns the class of a live slot's key. Keys of a lower class leave first.
    #[inline(always)]
    pub(crate) const fn class(self) -> u64 {
        (self.is_banned() as u64) << 1 | self.is_protected() as u64
    }

    pub(crate) const fn with_version(self, version: u64) -> Self {
        let version = (version % VERSIONS) << VERSION_SHIFT;
        Self {
            label: self.label & !((VERSIONS - 1) << VERSION_SHIFT) | version,
            ..self
        }
    }

    pub(crate) const fn with_plan(self, plan: u8) -> Self {
        let plan = (plan as u64 % PLANS) << PLAN_SHIFT;
        Self {
            label: self.label & !((PLANS - 1) << PLAN_SHIFT) | plan,
            ..self
        }
    }

    pub(crate) const fn with_second(self, second: bool) -> Self {
        Self {
            label: self.label & !SECOND | (second as u64) << 2,
            ..self
        }
    }

    /// Returns the word. That of a claim is its own number, and that of a free slot is 0.
    #[inline(always)]
    pub(crate) const fn word(self) -> u64 {
        self.word
    }

    /// Returns everything except the word.
    #[inline(always)]
    pub(crate) const fn label(self) -> u64 {
        self.label
    }

    /// Returns whether the slot has a key.
    #[inline(always)]
    pub(crate) const fn is_live(self) -> bool {
        self.label & (LIVE_BIT | PROTECTED_BIT) != 0
    }

    /// Returns whether the slot has a key that is not banned, or all these labels have: `self` may
    /// have the bits that several labels share.
    #[inline(always)]
    pub(crate) const fn is_live_and_not_banned(self) -> bool {
        self.label & LIVE_BIT != 0
    }

    pub(crate) const fn is_pending(self) -> bool {
        self.code() == PENDING
    }

    #[inline(always)]
    pub(crate) const fn is_free(self) -> bool {
        self.code() == 0
    }

    /// Returns whether the slot belongs to a key with this tag, or is claimed for it. `second` says
    /// whether the slot is in that key's second pair. (In the other pair it would belong to another
    /// key with the same tag.)
    #[inline(always)]
    pub(crate) fn is_of(self, tag: u64, second: bool) -> bool {
        self.may_be_of(tag, second) && !self.is_free()
    }

    /// Does what [`is_of`](Self::is_of) does, but also returns `true` for free slots if the tag is
    /// 0.
    #[inline(always)]
    pub(crate) fn may_be_of(self, tag: u64, second: bool) -> bool {
        let its_pair = inject_fault!(IgnoresThePair => self.is_second(), else second); // FAULT
        self.label & (TAG | SECOND) == tag | (its_pair as u64) << 2
    }

    pub(crate) const fn tag(self) -> u64 {
        self.label & TAG
    }

    /// Returns whether the slot is in the second pair of buckets of its key.
    pub(crate) const fn is_second(self) -> bool {
        self.label & SECOND != 0
    }

    pub(crate) const fn plan(self) -> u8 {
        (self.label >> PLAN_SHIFT & (PLANS - 1)) as u8
    }

    /// Returns the last bits of the version.
    pub(crate) const fn version(self) -> u64 {
        self.label >> VERSION_SHIFT & (VERSIONS - 1)
    }
}
