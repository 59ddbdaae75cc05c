//! The sliding window: what was taken in each window, all of it remembered; of the one before the
//! current one counts the share that is still within a period.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Rounding;

use crate::windows::budget;
use crate::windows::grid::Windows;
use crate::support::model::{Answers, Fraction, Model};

#[derive(Debug, Clone)]
pub(crate) struct Sliding {
    limit: u64,
    most: u64,
    rounding: Rounding,
    windows: Windows,
    /// Permits by window. The last of them is where the word is.
    taken: BTreeMap<i128, u64>,
}

/// What counts at a moment.
struct Counted {
    before: u64,
    current: u64,
    /// What is left of the window.
    left: u128,
}

impl Sliding {
    pub(crate) fn new(
        n: u64,
        period: u64,
        rounding: Rounding,
        (origin, offset): (Duration, Duration),
    ) -> Self {
        let (bits, told) = budget::counts(period, 2);
        Self {
            limit: n,
            most: (1 << bits) - 1,
            rounding,
            windows: Windows::new(period, told, origin, offset),
            taken: BTreeMap::new(),
        }
    }

    /// The most permits a window of this length can have.
    pub(crate) fn largest(period: u64) -> u64 {
        (1 << budget::counts(period, 2).0) - 1
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

    fn in_window(&self, window: i128) -> u64 {
        self.taken.get(&window).copied().unwrap_or(0)
    }

    fn counted(&self, time: u128) -> Counted {
        let window = self.window(time);
        // Nothing is over of a window that is ahead.
        let elapsed = (time as i128 - self.windows.start(window)).max(0);
        Counted {
            before: self.in_window(window - 1),
            current: self.in_window(window),
            left: (self.windows.period - elapsed) as u128,
        }
    }
}

impl Model for Sliding {
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
        let counted = self.counted(time);
        let den = self.windows.period as u128;
        Fraction {
            num: u128::from(counted.before) * counted.left + u128::from(counted.current) * den,
            den,
        }
    }

    fn held(&self, time: u128) -> u128 {
        let counted = self.counted(time);
        let share = Fraction {
            num: u128::from(counted.before) * counted.left,
            den: self.windows.period as u128,
        };
        let share = match self.rounding {
            // A caller asks for whole permits, so a part of one is as good as one.
            Rounding::Exact => share.ceil(),
            Rounding::Down => share.floor(),
        };
        share + u128::from(counted.current)
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
        self.most - self.counted(self.clock(now)).current
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
        let now = self.clock(now);
        self.weight(now).num == 0 && self.window(now) == self.windows.index(now)
    }

    fn reset(&mut self) {
        self.taken.clear();
    }

    fn edge(&self, now: u64) -> u64 {
        self.windows.edge(now)
    }
}
