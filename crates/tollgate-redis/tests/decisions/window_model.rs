//! Windows in exact integers: what the scripts must answer, and what they must store.
//!
//! It is written from the definition: it weighs counts in 128 bits, and finds each moment by
//! trying.

use super::model::SPAN;
use crate::limit::kind::Shape;

/// The microseconds from 1970 to 2026.
const ORIGIN: i128 = 1_767_225_600_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) limit: u128,
    /// Microseconds.
    pub(super) period: u128,
    pub(super) shape: Shape,
}

impl Rule {
    /// Returns where the window that holds a moment begins (perhaps before 2026) and ends.
    fn window(&self, at: u128) -> (i128, u128) {
        let (at, period) = (at as i128, self.period as i128);
        let begins = match self.shape {
            Shape::FirstHit => at,
            _ => (at + ORIGIN) / period * period - ORIGIN,
        };
        (begins, (begins + period) as u128)
    }
}

/// What is stored under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    count: u128,
    before: u128,
    ends: u128,
    ban: u128,
    /// When it was written.
    written: u128,
    /// The milliseconds after the write at which the key expires.
    pub(super) expiry: u128,
}

impl Stored {
    /// Returns the bytes that are stored.
    pub(super) fn value(&self) -> Vec<u8> {
        let written = match self.ban {
            0 => self.written as f64,
            ban => -(ban as f64),
        };
        let mut value = vec![2];
        for number in [self.count, self.before, self.ends] {
            value.extend((number as f64).to_le_bytes());
        }
        value.extend(written.to_le_bytes());
        value
    }
}

/// A key at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) rule: Rule,
    /// The server's clock, in microseconds.
    pub(super) now: u128,
    pub(super) count: u128,
    pub(super) before: u128,
    pub(super) ends: u128,
    /// When the ban ends, or 0.
    pub(super) ban: u128,
}

impl Key {
    pub(super) fn of(stored: Option<Stored>, rule: Rule, now: u128) -> Self {
        let stored = stored.map(|stored| (stored.count, stored.before, stored.ends, stored.ban));
        let (count, before, ends, ban) = stored.unwrap_or_default();
        let ban = if ban > now { ban } else { 0 };
        let key = Self {
            rule,
            now,
            count,
            before,
            ends,
            ban,
        };
        key.moved(now)
    }

    /// Returns the counts at a moment, if nothing changes before.
    fn moved(self, at: u128) -> Self {
        let (begins, ends) = self.rule.window(at);
        let slides = self.rule.shape == Shape::Slides;
        // A window that a later clock began goes on.
        if at < self.ends {
            let reopens = self.count == 0 && self.rule.shape == Shape::FirstHit;
            return Self {
                before: if slides { self.before } else { 0 },
                ends: if reopens {
                    self.ends.max(ends)
                } else {
                    self.ends
                },
                ..self
            };
        }
        let is_next = self.ends as i128 >= begins;
        Self {
            count: 0,
            before: if slides && is_next { self.count } else { 0 },
            ends,
            ..self
        }
    }

    /// Returns how many permits are counted, times the period.
    fn weight(&self, at: u128) -> u128 {
        let period = self.rule.period;
        self.before * (self.ends - at).min(period) + self.count * period
    }

    fn most(&self) -> u128 {
        self.rule.limit * self.rule.period
    }

    /// Returns whether `n` permits fit at a moment, if nothing changes before.
    pub(super) fn fits(&self, n: u128, at: u128) -> bool {
        let moved = self.moved(at);
        moved.weight(at) + n * self.rule.period <= self.most()
    }

    /// Returns whether they also are granted: no ban is in the way.
    pub(super) fn grants(&self, n: u128, at: u128) -> bool {
        at >= self.ban && self.fits(n, at)
    }

    /// Returns the first moment, from now on, at which something holds that then holds for ever.
    fn first(&self, holds: impl Fn(u128) -> bool) -> u128 {
        let (mut low, mut high) = (self.now, 6 * SPAN);
        assert!(holds(high), "{self:?}");
        while low < high {
            let middle = (low + high) / 2;
            match holds(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// Returns the first moment at which `n` permits are granted, if nothing changes before.
    pub(super) fn due(&self, n: u128) -> u128 {
        self.first(|at| self.grants(n, at))
    }

    /// Returns how many permits are owed, and the moment at which none will be.
    pub(super) fn debt(&self) -> (u128, u128) {
        let owed = self.weight(self.now).saturating_sub(self.most());
        let clear = self.first(|at| self.fits(0, at));
        (owed.div_ceil(self.rule.period), clear)
    }

    /// Returns the first moment at which no permit is counted.
    pub(super) fn forgotten(&self) -> u128 {
        self.first(|at| self.moved(at).weight(at) == 0)
    }

    /// Returns the moment at which permits of now are counted.
    pub(super) fn counted_at(&self) -> u128 {
        self.now.max(self.ends.saturating_sub(self.rule.period))
    }

    pub(super) fn available(&self) -> u128 {
        match self.ban {
            0 => self.most().saturating_sub(self.weight(self.now)) / self.rule.period,
            _ => 0,
        }
    }

    /// Gives back at most `n` permits, if they are of the current window, and returns how many.
    pub(super) fn give(&mut self, n: u128, mark: Option<u128>) -> u128 {
        if self.ban > 0 || mark.is_some_and(|mark| mark != self.ends) {
            return 0;
        }
        let given = n.min(self.count);
        self.count -= given;
        given
    }

    /// Counts permits, and returns how many.
    pub(super) fn charge(&mut self, n: u128) -> u128 {
        let charged = n.min((1 << 52) - 1 - self.count);
        self.count += charged;
        charged
    }

    /// Bans the key. The window in which the ban ends is full.
    pub(super) fn ban(&mut self, long: u128) {
        let until = self.now + long;
        *self = self.moved(until);
        self.count = self.count.max(self.rule.limit);
        self.ban = self.ban.max(until);
    }

    /// Returns what is stored. When the key expires, it counts nothing, as no key does.
    pub(super) fn stored(&self) -> Stored {
        let last = self.forgotten().max(self.ban);
        let stored = Stored {
            count: self.count,
            before: self.before,
            ends: self.ends,
            ban: self.ban,
            written: self.now,
            expiry: (last - self.now) / 1000 + 1001,
        };
        let expired = Self::of(Some(stored), self.rule, self.now + stored.expiry * 1000);
        assert_eq!((expired.count, expired.before, expired.ban), (0, 0, 0));
        stored
    }
}
