//! The fixed window: what was taken in each window, all of it remembered.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::windows::budget;
use crate::windows::grid::Windows;
use crate::support::model::{Answers, Fraction, Model};

#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    limit: u64,
    most: u64,
    windows: Windows,
    /// Permits by window. The last of them is where the word is.
    taken: BTreeMap<i128, u64>,
}

impl Fixed {
    pub(crate) fn new(n: u64, period: u64, origin: Duration, offset: Duration) -> Self {
        let (bits, told) = budget::counts(period, 1);
        Self {
            limit: n,
            most: (1 << bits) - 1,
            windows: Windows::new(period, told, origin, offset),
            taken: BTreeMap::new(),
        }
    }

    /// The most permits a window of this length can have.
    pub(crate) fn largest(period: u64) -> u64 {
        (1 << budget::counts(period, 1).0) - 1
    }

    pub(crate) fn largest_debt(&self) -> u64 {
        self.most - self.limit
    }

    /// The window in which somebody is counted: his own, or a later one that somebody else opened.
    fn window(&self, time: u128) -> i128 {
        let own = self.windows.index(time);
        self.taken
            .last_key_value()
            .map_or(own, |(last, _)| own.max(*last))
    }

    /// The window of a tick at which something was counted.
    pub(crate) fn window_of(&self, tick: u64) -> i128 {
        self.windows.index(tick.into())
    }

    fn count(&self, now: u64) -> u64 {
        let window = self.window(self.clock(now));
        self.taken.get(&window).copied().unwrap_or(0)
    }
}

impl Model for Fixed {
    type Mark = i128;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.windows.period as u64
    }

    fn horizon(&self) -> u64 {
        self.windows.horizon()
    }

    fn weight(&self, time: u128) -> Fraction {
        Fraction::whole(self.taken.get(&self.window(time)).copied().unwrap_or(0))
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

    fn room(&self, now: u64) -> u64 {
        self.most - self.count(now)
    }

    fn mark(&self, now: u64) -> i128 {
        self.window(self.clock(now))
    }

    fn undo(&mut self, now: u64, n: u64, mark: i128) -> Option<u64> {
        let is_over = self.window(self.clock(now)) != mark;
        Some(if is_over { 0 } else { self.refund(now, n) })
    }

    fn refund(&mut self, now: u64, n: u64) -> u64 {
        let window = self.window(self.clock(now));
        let Some(count) = self.taken.get_mut(&window) else {
            return 0;
        };
        let back = n.min(*count);
        *count -= back;
        back
    }

    fn is_idle(&self, now: u64) -> bool {
        let own = self.windows.index(self.clock(now));
        self.count(now) == 0 && self.window(self.clock(now)) == own
    }

    fn reset(&mut self) {
        self.taken.clear();
    }

    fn edge(&self, now: u64) -> u64 {
        self.windows.edge(now)
    }
}
