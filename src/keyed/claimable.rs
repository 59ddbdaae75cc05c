//! Slots that a new key can claim.

use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::clock::Tick;

/// A slot that can be claimed, with its present content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimable {
    pub(super) at: SlotIndex,
    pub(super) held: SlotState,
    /// The event to count, if claiming the slot makes a key leave.
    pub(super) leaves: Option<Event>,
    /// The tick since which that key has been idle, or 0 if it is not idle.
    pub(super) since: Tick,
}

/// The thread that made a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimedBy {
    /// The calling thread, in this round.
    Caller,
    /// Another thread, or the calling thread in an earlier round.
    Another,
}

impl Claimable {
    pub(super) fn of((at, held): (SlotIndex, SlotState), leaves: Option<Event>) -> Self {
        Self {
            at,
            held,
            leaves,
            since: Tick::ZERO,
        }
    }
}
