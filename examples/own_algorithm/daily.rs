//! At most `n` permits a day. The count starts again at midnight of the clock.
//!
//! # The word
//!
//! ```text
//!  63                             32 31                              0
//! ┌─────────────────────────────────┬─────────────────────────────────┐
//! │ day, from the clock's tick 0 on │ permits taken in it             │
//! └─────────────────────────────────┴─────────────────────────────────┘
//! ```
//!
//! 0 is day 0 with nothing taken: fresh, and full. Days are numbered from the clock's tick 0 and
//! their numbers do not wrap, so the count of an old day never comes back. 64 bits of nanoseconds
//! are 213 504 days: the day fits into its field, and the word is never all ones.

use std::num::NonZeroU64;

use tollgate::algorithm::{Algorithm, Forecast, GiveBack};
use tollgate::{Denied, Granted, Tick};

/// A day in the ticks of a clock.
pub(crate) const DAY_NS: u64 = 86_400_000_000_000;

/// At most `limit` permits each day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Daily {
    limit: u64,
}

/// The day on which a caller is counted, and how many permits were taken on it before.
struct Today {
    day: u64,
    taken: u64,
    /// The tick at which the caller is counted: its own, or the start of `day` if that is later.
    at: Tick,
}

impl Daily {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit: limit.into(),
        }
    }

    /// Reads the word for a caller at `now`. A caller from an earlier day is counted on the word's
    /// day, because a grant must not lower the word.
    fn read(word: u64, now: Tick) -> Today {
        let (day, taken) = (word >> 32, word & u64::from(u32::MAX));
        let today = now.as_nanos() / DAY_NS;
        if today > day {
            return Today {
                day: today,
                taken: 0,
                at: now,
            };
        }
        let dawn = Tick::from_nanos(day.saturating_mul(DAY_NS));
        Today {
            day,
            taken,
            at: now.max(dawn),
        }
    }

    fn left(&self, today: &Today) -> u64 {
        self.limit.saturating_sub(today.taken)
    }
}

impl Today {
    /// The tick at which the day ends, if the clock gets there.
    fn midnight(&self) -> Option<Tick> {
        let tick = (self.day + 1).checked_mul(DAY_NS)?;
        Some(Tick::from_nanos(tick))
    }

    fn word(&self, taken: u64) -> u64 {
        (self.day << 32) | taken
    }

    /// Returns permits to this day, at most those taken on it.
    fn give_back(&self, word: u64, n: u64) -> (u64, u64) {
        match n.min(self.taken) {
            0 => (word, 0),
            n => (self.word(self.taken - n), n),
        }
    }
}

impl Algorithm for Daily {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if n > self.limit {
            return Err(Denied::never(n, self.limit));
        }
        let today = Self::read(word, now);
        if n > self.left(&today) {
            return Err(match today.midnight() {
                Some(midnight) => Denied::later(n, midnight.saturating_since(now)),
                None => Denied::stuck(n),
            });
        }
        let taken = today.taken + n;
        // A request for no permits changes nothing.
        let next = if n == 0 { word } else { today.word(taken) };
        let granted = Granted::new(n, today.at)
            .with_remaining(self.limit.saturating_sub(taken), NonZeroU64::MIN)
            .with_mark(next);
        let reset_at = match taken {
            0 => today.at,
            _ => today.midnight().unwrap_or(Tick::MAX),
        };
        Ok((next, granted.with_reset_at(reset_at)))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.left(&Self::read(word, now))
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        Self::read(word, now).taken == 0
    }
}

impl Forecast for Daily {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        let today = Self::read(word, now);
        if n > self.limit {
            None
        } else if n <= self.left(&today) {
            Some(now)
        } else {
            today.midnight()
        }
    }
}

impl GiveBack for Daily {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let today = Self::read(word, now);
        if granted.mark() >> 32 == today.day {
            today.give_back(word, granted.n())
        } else {
            (word, 0)
        }
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        Self::read(word, now).give_back(word, n)
    }
}
