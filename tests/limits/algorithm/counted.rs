//! Aligned windows, with the permits taken in each window all remembered. A fixed window counts the
//! current one. A sliding window adds the share of the previous one that is still within a period.

use std::collections::BTreeMap;

use tollgate::algorithm::Rounding;

use crate::algorithm::cases::Alignment;
use crate::algorithm::grid::{self, Windows};
use crate::support::reference::{Fraction, Reference, Span};

#[derive(Debug, Clone)]
pub(crate) struct Counted {
    limit: u64,
    most: u64,
    /// The rounding of the previous window's share, if it counts.
    sliding: Option<Rounding>,
    windows: Windows,
    /// Permits by window. The last one is the word's window.
    taken: BTreeMap<i128, u64>,
}

impl Counted {
    pub(crate) fn new(
        n: u64,
        period: u64,
        sliding: Option<Rounding>,
        (origin, offset): Alignment,
    ) -> Self {
        let (bits, told) = grid::counts(period, 1 + u32::from(sliding.is_some()));
        Self {
            limit: n,
            most: (1 << bits) - 1,
            sliding,
            windows: Windows::new(period, told, origin, offset),
            taken: BTreeMap::new(),
        }
    }

    pub(crate) fn largest_debt(&self) -> u64 {
        self.most - self.limit
    }

    /// Returns the window in which a caller is counted: its own, or a later one that another caller
    /// opened.
    fn window(&self, time: u128) -> i128 {
        let own = self.windows.index(time);
        self.taken
            .last_key_value()
            .map_or(own, |(last, _)| own.max(*last))
    }

    fn in_window(&self, window: i128) -> u64 {
        self.taken.get(&window).copied().unwrap_or(0)
    }

    /// Returns the share of the previous window that counts, and the count of the current one.
    fn counted(&self, time: u128) -> (Fraction, u64) {
        let window = self.window(time);
        let before = match self.sliding {
            Some(_) => self.in_window(window - 1),
            None => 0,
        };
        // No part of a window that is ahead has elapsed.
        let elapsed = (time as i128 - self.windows.start(window)).max(0);
        let share = Fraction {
            num: u128::from(before) * (self.windows.period - elapsed) as u128,
            den: self.windows.period as u128,
        };
        (share, self.in_window(window))
    }
}

impl Reference for Counted {
    type Mark = i128;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.windows.period as u64
    }

    fn horizon(&self) -> Option<u64> {
        Some(self.windows.horizon())
    }

    fn weight(&self, time: u128) -> Fraction {
        let (share, current) = self.counted(time);
        Fraction {
            num: share.num + u128::from(current) * share.den,
            ..share
        }
    }

    /// Requests are for whole permits, so a fraction blocks a whole one.
    fn held(&self, time: u128) -> u128 {
        let (share, current) = self.counted(time);
        let share = match self.sliding {
            Some(Rounding::Down) => share.floor(),
            _ => share.ceil(),
        };
        share + u128::from(current)
    }

    fn counted_at(&self, now: u64) -> u64 {
        let start = self.windows.start(self.window(self.clock(now)));
        now.max(u64::try_from(start).unwrap_or(0))
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            let window = self.window(self.clock(now));
            *self.taken.entry(window).or_default() += n;
        }
    }

    fn room(&self, now: u64) -> Span {
        Span::only(self.most - self.counted(self.clock(now)).1)
    }

    fn mark(&self, now: u64) -> i128 {
        self.window(self.clock(now))
    }

    fn undo(&mut self, now: u64, n: u64, mark: i128) -> Option<Span> {
        let is_over = self.window(self.clock(now)) != mark;
        Some(self.refund(now, if is_over { 0 } else { n }))
    }

    fn refund(&mut self, now: u64, n: u64) -> Span {
        let window = self.window(self.clock(now));
        let back = n.min(self.in_window(window));
        self.taken.entry(window).and_modify(|count| *count -= back);
        Span::only(back)
    }

    fn is_idle(&self, now: u64) -> [bool; 2] {
        let now = self.clock(now);
        [self.weight(now).num == 0 && self.window(now) == self.windows.index(now); 2]
    }

    fn reset(&mut self) {
        self.taken.clear();
    }

    fn edge(&self, now: u64) -> u64 {
        self.windows.edge(now)
    }
}
