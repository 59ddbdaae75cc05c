//! What a node of the model holds: the crate's own words.

use crate::lease::held::Held;
use crate::lease::slots_held::SlotsHeld;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Word {
    Permits(Held),
    Slots(SlotsHeld),
}

impl Default for Word {
    fn default() -> Self {
        Self::Permits(Held::default())
    }
}

impl Word {
    /// Returns a word of which nothing is held.
    pub(super) fn of(is_slots: bool) -> Self {
        match is_slots {
            true => Self::Slots(SlotsHeld::default()),
            false => Self::default(),
        }
    }

    /// Returns the permits that may be spent, or the idle slots.
    pub(super) fn permits(self, now_ns: u64) -> u64 {
        match self {
            Self::Permits(held) => held.permits(now_ns),
            Self::Slots(held) => held.at(now_ns).1,
        }
    }

    /// Returns the slots in use: work that outlives its lease stops.
    pub(super) fn in_use(self, now_ns: u64) -> u64 {
        match self {
            Self::Permits(_) => 0,
            Self::Slots(held) => held.at(now_ns).0,
        }
    }

    /// Returns whether slots are lost for good.
    pub(super) fn is_lost(self, now_ns: u64) -> bool {
        matches!(self, Self::Slots(held) if held.is_lost(now_ns))
    }

    pub(super) fn until_ns(self) -> u64 {
        match self {
            Self::Permits(held) => held.until_ns(),
            Self::Slots(held) => held.until_ns(),
        }
    }

    /// Spends a permit, or puts a slot to use.
    pub(super) fn spend(self, now_ns: u64) -> Option<Self> {
        Some(match self {
            Self::Permits(held) => Self::Permits(held.spend(now_ns, 1)?.held),
            Self::Slots(held) => Self::Slots(held.enter(now_ns, 1)?.held),
        })
    }

    /// Puts a permit back, or makes a slot idle.
    pub(super) fn back(self, now_ns: u64) -> Self {
        match self {
            Self::Permits(held) => Self::Permits(held.returned(now_ns, 1)),
            Self::Slots(held) => Self::Slots(held.leave(now_ns, 1).unwrap_or(held)),
        }
    }

    /// Returns the word, and how many permits the node then keeps and returns.
    pub(super) fn withdraw(self, now_ns: u64, keep: u64) -> (Self, u64, u64) {
        match self {
            Self::Permits(held) => {
                let (held, keeps, returns) = held.withdraw(now_ns, keep);
                (Self::Permits(held), keeps, returns)
            }
            Self::Slots(held) => {
                let (held, keeps, returns) = held.withdraw(now_ns, keep);
                (Self::Slots(held), keeps, returns)
            }
        }
    }

    pub(super) fn answered(self, now_ns: u64, lost: u64, more: u64, until_ns: u64) -> Self {
        match self {
            Self::Permits(held) => Self::Permits(held.answered(now_ns, lost, more, until_ns, 1)),
            Self::Slots(held) => Self::Slots(held.answered(now_ns, lost, more, until_ns, 1)),
        }
    }
}
