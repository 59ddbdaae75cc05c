//! What the server counts for one key, written from the protocol's definition. Time is in ticks.

use std::collections::BTreeMap;

use super::model::Mistake;
use crate::lease::holder::{Answer, Ask};

/// A limit, small enough for all its states to be visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// A permit is refilled each tick.
    Bucket {
        burst: u64,
    },
    /// Windows begin at multiples of the period.
    Window {
        limit: u64,
        period: u64,
    },
    Slots {
        limit: u64,
    },
}

impl Kind {
    pub(super) fn most(self) -> u64 {
        match self {
            Self::Bucket { burst } => burst,
            Self::Window { limit, .. } | Self::Slots { limit } => limit,
        }
    }

    /// Returns whether a window begins at a tick.
    pub(super) fn begins(self, now: u64) -> bool {
        matches!(self, Self::Window { period, .. } if now.is_multiple_of(period))
    }

    /// Returns what is left of what was used when the clock reaches a tick.
    pub(super) fn decayed(self, used: u64, now: u64) -> u64 {
        match self {
            Self::Bucket { .. } => used.saturating_sub(1),
            Self::Window { period, .. } if now.is_multiple_of(period) => 0,
            Self::Window { .. } => used,
            // Only what is out is used.
            Self::Slots { .. } => 0,
        }
    }
}

/// What a node has of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Lease {
    out: u64,
    ends: u64,
    /// The latest message, and what it was granted.
    latest: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Server {
    used: u64,
    leases: BTreeMap<u64, Lease>,
}

impl Server {
    fn out(&self) -> u64 {
        self.leases.values().map(|lease| lease.out).sum()
    }

    fn never_less_than_out(&mut self, mistake: Option<Mistake>) {
        if mistake != Some(Mistake::OutIsRefilled) {
            self.used = self.used.max(self.out());
        }
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Moves the clock on to a tick.
    pub(super) fn tick(&mut self, kind: Kind, now: u64, mistake: Option<Mistake>) {
        self.used = kind.decayed(self.used, now);
        self.never_less_than_out(mistake);
        self.leases.retain(|_, lease| lease.ends > now);
        if matches!(kind, Kind::Slots { .. }) {
            self.used = 0;
            self.never_less_than_out(mistake);
        }
    }

    /// Takes permits without a lease.
    pub(super) fn take(&mut self, kind: Kind, n: u64) -> bool {
        let fits = self.used + n <= kind.most();
        if fits {
            self.used += n;
        }
        fits
    }

    /// Answers a message, or ignores it.
    pub(super) fn asked(
        &mut self,
        kind: Kind,
        node: u64,
        ask: Ask,
        ends: u64,
        mistake: Option<Mistake>,
    ) -> Option<Answer> {
        let lease = self.leases.get(&node).copied();
        let latest = lease.map(|lease| lease.latest);
        let is_late = |latest: &Answer| {
            mistake != Some(Mistake::NumbersAreIgnored) && ask.number <= latest.number
        };
        if let Some(latest) = latest.filter(is_late) {
            return (ask.number == latest.number).then_some(latest);
        }
        let out = lease.map_or(0, |lease| lease.out);
        let (keeps, returns) = match mistake {
            Some(Mistake::EndedLeaseIsReturned) => (ask.keeps.min(out), ask.returns.min(self.used)),
            _ => {
                let keeps = ask.keeps.min(out);
                (keeps, ask.returns.min(out - keeps))
            }
        };
        self.used = self.used.saturating_sub(returns);
        let granted = ask.wants.min(kind.most().saturating_sub(self.used));
        self.used += granted;
        let latest = Answer {
            number: ask.number,
            keeps,
            granted,
        };
        let out = keeps + granted;
        self.leases.remove(&node);
        if out > 0 {
            self.leases.insert(node, Lease { out, ends, latest });
        }
        if matches!(kind, Kind::Slots { .. }) {
            self.used = self.out();
        }
        Some(latest)
    }
}
