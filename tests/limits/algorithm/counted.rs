//! Aligned windows, with the permits taken in each window all remembered. A fixed window counts the
//! current one. A sliding window adds the share of the previous one that is still within a period.
//! A window of slots is several of them, and a log is as many as its period has nanoseconds.

use std::collections::BTreeMap;

use tollgate::algorithm::Rounding;

use crate::algorithm::cases::Alignment;
use crate::algorithm::grid::{self, Windows};
use crate::support::reference::{Fraction, Reference, Span};
use crate::support::*;

/// What is counted beside the current window.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    /// A share of the previous window, with its rounding.
    Share(Rounding),
    /// The windows before it. There are this many in all.
    Slots(u64),
    /// The same, of windows of one nanosecond.
    Log(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Counted {
    limit: u64,
    most: u64,
    beside: Beside,
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
            beside: sliding.map_or(Beside::Nothing, Beside::Share),
            windows: Windows::new(period, told, origin, offset),
            taken: BTreeMap::new(),
        }
    }

    /// Creates a window of slots of this length, of which `told` can be distinguished. A slot
    /// counts up to `most`.
    pub(crate) fn of_slots(n: u64, slot: u64, slots: u64, (most, told): (u64, u128)) -> Self {
        Self {
            limit: n,
            most,
            beside: Beside::Slots(slots),
            windows: Windows::new(slot, told, Duration::ZERO, Duration::ZERO),
            taken: BTreeMap::new(),
        }
    }

    /// Creates a log, in which this many ticks can be distinguished.
    pub(crate) fn of_log(n: u64, period: u64, told: u128) -> Self {
        Self {
            beside: Beside::Log(period),
            ..Self::of_slots(n, 1, period, (u64::MAX, told))
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

    /// Returns the slots that count at this time, the last of them the current one.
    fn slots(&self, time: u128, slots: u64) -> impl Iterator<Item = (&i128, &u64)> {
        let window = self.window(time);
        self.taken.range(window + 1 - i128::from(slots)..=window)
    }

    /// Returns the share of the previous window that counts, and the count of the current one, or
    /// of all slots.
    fn counted(&self, time: u128) -> (Fraction, u64) {
        let window = self.window(time);
        let (before, current) = match self.beside {
            Beside::Nothing => (0, self.in_window(window)),
            Beside::Share(_) => (self.in_window(window - 1), self.in_window(window)),
            Beside::Slots(slots) | Beside::Log(slots) => {
                (0, self.slots(time, slots).map(|(_, n)| n).sum())
            }
        };
        // No part of a window that is ahead has elapsed.
        let elapsed = (time as i128 - self.windows.start(window)).max(0);
        let share = Fraction {
            num: u128::from(before) * (self.windows.period - elapsed) as u128,
            den: self.windows.period as u128,
        };
        (share, current)
    }
}

impl Reference for Counted {
    type Mark = i128;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        match self.beside {
            Beside::Slots(slots) | Beside::Log(slots) => self.windows.period as u64 * slots,
            _ => self.windows.period as u64,
        }
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
        let share = match self.beside {
            Beside::Share(Rounding::Down) => share.floor(),
            _ => share.ceil(),
        };
        share + u128::from(current)
    }

    fn counted_at(&self, now: u64) -> u64 {
        let start = self.windows.start(self.window(self.clock(now)));
        now.max(u64::try_from(start).unwrap_or(0))
    }

    /// A log would need a search to compute it.
    fn remaining(&self, now: u64) -> Span {
        match self.beside {
            Beside::Log(_) => Span::only(0),
            _ => self.available(now),
        }
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

    /// Returns the first tick of the next window, or when the oldest counted permit of a log
    /// expires.
    fn edge(&self, now: u64) -> u64 {
        let Beside::Log(period) = self.beside else {
            return self.windows.edge(now);
        };
        let oldest = self.slots(now.into(), period).next();
        let edge = oldest.map_or(now.into(), |(taken, _)| *taken) + i128::from(period);
        u64::try_from(edge).unwrap_or(u64::MAX)
    }
}
