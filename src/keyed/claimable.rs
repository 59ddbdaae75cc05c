//! What a key that comes into the table can claim.

use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::clock::Tick;

/// A slot that can be claimed, and what becomes of what is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimable {
    pub(super) at: SlotIndex,
    pub(super) held: SlotState,
    /// A key leaves, and how.
    pub(super) leaves: Option<Event>,
    /// If it is idle: a tick since which it has been.
    pub(super) since: Tick,
}

/// Which thread made a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimedBy {
    /// The thread that asks, just now.
    Caller,
    /// Another thread, or this one before.
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
