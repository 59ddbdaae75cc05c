//! What is simulated.

use std::time::Duration;

use tollgate::Quota;

use super::super::model::Mistake;

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bucket,
    Window,
}

/// How often requests come for each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// All keys are asked for as often.
    Same(u64),
    /// The second is asked for half as often as the first, the third a third as often, and so on.
    Zipf(u64),
}

impl Keys {
    pub(super) const fn count(self) -> u64 {
        match self {
            Self::Same(count) | Self::Zipf(count) => count,
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Faults {
    /// Of a hundred messages, and of a hundred answers, this many are lost.
    pub(super) lost: u64,
    /// Of a hundred, this many come again, twice, at most two lives later.
    pub(super) again: u64,
    /// In a second, a node stops with this probability in percent.
    pub(super) stops: u64,
    /// For how long it stops, in percent of a life: at least and at most.
    pub(super) stop: [u64; 2],
    /// The clock of a node is slow by this many thousandths. Leases allow for 20.
    pub(super) slow: u64,
    /// Of a hundred grants, this many are undone, at most [`UNDONE_AFTER`] later.
    pub(super) undone: u64,
}

/// What is undone is undone within this time.
pub(super) const UNDONE_AFTER: u64 = 300 * MS;

#[derive(Clone, Copy)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) quota: Quota,
    pub(super) kind: Kind,
    pub(super) nodes: usize,
    pub(super) keys: Keys,
    pub(super) seconds: u64,
    /// Requests a second of a node, for all its keys.
    pub(super) demand: fn(node: usize, second: u64) -> u64,
    /// How many permits a request is for.
    pub(super) each: u64,
    /// Whether a node is up.
    pub(super) is_up: fn(node: usize, second: u64) -> bool,
    pub(super) round_trip: u64,
    pub(super) life: Duration,
    /// Which part of the limit the allowances of all nodes are, in percent.
    pub(super) allowance: Option<u32>,
    pub(super) seed: u64,
    pub(super) faults: Faults,
    pub(super) mistake: Option<Mistake>,
}
