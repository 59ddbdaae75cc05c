//! The aligned intervals: a bucket that is refilled at each start of a window.

use crate::algorithm::cases::Alignment;
use crate::algorithm::grid::{self, Windows};
use crate::support::reference::{Fraction, Reference, Span};

#[derive(Debug, Clone)]
pub(crate) struct Refilled {
    n: u64,
    burst: u64,
    windows: Windows,
    /// The number of permits that must have come since tick 0 for the bucket to be full. `None` if
    /// it is full.
    full_at: Option<i128>,
}

impl Refilled {
    pub(crate) fn new(n: u64, burst: u64, period: u64, (origin, offset): Alignment) -> Self {
        let told = grid::refills(n, burst);
        Self {
            n,
            burst,
            windows: Windows::new(period, told, origin, offset),
            full_at: None,
        }
    }

    /// Returns the permits that have come since tick 0.
    fn come(&self, time: u128) -> i128 {
        i128::from(self.n) * (self.windows.index(time) - self.windows.first())
    }

    fn lack(&self, time: u128) -> i128 {
        self.full_at
            .map_or(0, |full_at| (full_at - self.come(time)).max(0))
    }
}

/// An older caller finds the bucket as it was then, minus all permits taken since.
impl Reference for Refilled {
    type Mark = i128;

    fn limit(&self) -> u64 {
        self.burst
    }

    fn period(&self) -> u64 {
        self.windows.period as u64
    }

    fn horizon(&self) -> Option<u64> {
        Some(self.windows.horizon())
    }

    fn weight(&self, time: u128) -> Fraction {
        Fraction {
            num: self.lack(time) as u128,
            den: 1,
        }
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            let come = self.come(self.clock(now));
            let full_at = self.full_at.map_or(come, |full_at| full_at.max(come));
            self.full_at = Some(full_at + i128::from(n));
        }
    }

    fn room(&self, now: u64) -> Span {
        let come = self.come(self.clock(now));
        let full_at = self.full_at.map_or(come, |full_at| full_at.max(come));
        Span::only(u64::try_from(i128::from(u64::MAX - 1) - full_at).expect("within the word"))
    }

    fn mark(&self, _now: u64) -> i128 {
        self.full_at.unwrap_or(0)
    }

    /// Returns only permits that have not come back already. A grant's position is where its last
    /// permit comes back.
    fn undo(&mut self, now: u64, n: u64, mark: i128) -> Option<Span> {
        let ahead = (mark - self.come(self.clock(now))).max(0);
        Some(self.refund(now, n.min(u64::try_from(ahead).expect("a count"))))
    }

    fn refund(&mut self, now: u64, n: u64) -> Span {
        let lack = self.lack(self.clock(now));
        let back = u64::try_from(lack).expect("a count").min(n);
        if let Some(full_at) = &mut self.full_at {
            *full_at -= i128::from(back);
        }
        Span::only(back)
    }

    fn is_idle(&self, now: u64) -> [bool; 2] {
        [self.lack(self.clock(now)) == 0; 2]
    }

    fn reset(&mut self) {
        self.full_at = None;
    }

    fn edge(&self, now: u64) -> u64 {
        self.windows.edge(now)
    }
}
