//! A bucket in exact integers: what the scripts must answer, and what they must store.
//!
//! It is written from the definition, without the crate's arithmetic: moments are counted in units
//! of 1/n microsecond in 128 bits.

use std::time::Duration;

use tollgate::Quota;

pub(super) const SPAN: u128 = 1_577_880_000_000_000;

/// A quota as `n` permits every `period` microseconds, without common divisors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) n: u128,
    pub(super) period: u128,
    pub(super) burst: u128,
}

impl Line {
    pub(super) fn of(quota: Quota) -> Self {
        let (mut n, mut period) = (u128::from(quota.permits()), quota.period().as_nanos());
        // Permits each nanosecond are a thousand times as many each microsecond.
        n *= 1000;
        for prime in 2..=1000 {
            while n % prime == 0 && period % prime == 0 {
                (n, period) = (n / prime, period / prime);
            }
        }
        let (mut a, mut b) = (n, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Self {
            n: n / a,
            period: period / a,
            burst: quota.burst_size().into(),
        }
    }

    pub(super) fn reach(&self) -> u128 {
        self.burst * self.period
    }
}

/// What is stored under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// When the limit is idle, in units of 1/n microsecond.
    idle: u128,
    n: u128,
    period: u128,
    ban: u128,
    /// When it was written.
    written: u128,
    /// The milliseconds after the write at which the key expires.
    pub(super) expiry: u128,
}

impl Stored {
    /// Returns the bytes that are stored.
    pub(super) fn value(&self) -> Vec<u8> {
        let (whole, part) = (self.idle / self.n, self.idle % self.n);
        let written = match self.ban {
            0 => self.written as f64,
            ban => -(ban as f64),
        };
        let mut value = Vec::new();
        value.extend((self.n as u32 + (1 << 28)).to_le_bytes());
        value.extend((part as u32).to_le_bytes());
        value.extend((whole as f64).to_le_bytes());
        value.extend(written.to_le_bytes());
        value.extend((self.period as f64).to_le_bytes());
        value
    }
}

impl Stored {
    /// Returns what a call at another rate makes of it first: what was used stays used, up to 50
    /// years of it, and is refilled at the new rate from then on. A ban keeps its time.
    pub(super) fn called(self, line: Line, now: u128) -> Self {
        let is_same = self.n == line.n && self.period == line.period;
        if is_same || self.ban > 0 || self.idle / self.n < now {
            return self;
        }
        let ahead = self.idle - now * self.n;
        let (permits, rest) = (ahead / self.period, ahead % self.period);
        let rest = (rest * line.period).div_ceil(self.period);
        let used = permits.saturating_mul(line.period).saturating_add(rest);
        let used = used.min(SPAN * line.n);
        Self {
            idle: now * line.n + used,
            n: line.n,
            period: line.period,
            ban: 0,
            written: now,
            expiry: used / line.n / 1000 + 1001,
        }
    }
}

/// A key at a moment, in the units of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) line: Line,
    /// The server's clock, in microseconds.
    pub(super) now: u128,
    pub(super) idle: u128,
    /// When the ban ends, or 0.
    pub(super) ban: u128,
}

impl Key {
    pub(super) fn of(stored: Option<Stored>, line: Line, now: u128) -> Self {
        let (idle, ban) = match stored {
            None => (0, 0),
            // A part of another denominator is rounded up.
            Some(stored) => {
                let stored = stored.called(line, now);
                let (whole, part) = (stored.idle / stored.n, stored.idle % stored.n);
                let part = (part * line.n).div_ceil(stored.n);
                (whole * line.n + part, stored.ban)
            }
        };
        let ban = if ban > now { ban } else { 0 };
        let idle = idle.max(now * line.n);
        Self {
            line,
            now,
            idle,
            ban,
        }
    }

    pub(super) fn stored(&self) -> Stored {
        let last = self.idle / self.line.n + 1;
        assert!(self.ban < last, "a key must not expire while it is banned");
        Stored {
            idle: self.idle,
            n: self.line.n,
            period: self.line.period,
            ban: self.ban,
            written: self.now,
            expiry: life(self.idle / self.line.n - self.now),
        }
    }

    fn clock(&self) -> u128 {
        self.now * self.line.n
    }

    /// Returns whether `n` permits are granted at a microsecond, if nothing changes before.
    pub(super) fn grants(&self, n: u128, at: u128) -> bool {
        self.grants_within(n, at, 0)
    }

    /// Returns whether `n` permits are granted that are due within `wait` microseconds.
    pub(super) fn grants_within(&self, n: u128, at: u128, wait: u128) -> bool {
        let idle = self.idle.max(at * self.line.n);
        let ahead = (self.line.reach() + wait * self.line.n).min(SPAN * self.line.n);
        at >= self.ban && idle + n * self.line.period <= at * self.line.n + ahead
    }

    /// Takes permits that are due at a microsecond, from which they count at the earliest.
    pub(super) fn take(&mut self, n: u128, due: u128) {
        if n > 0 {
            self.idle = self.idle.max(due * self.line.n) + n * self.line.period;
        }
    }
    pub(super) fn available(&self) -> u128 {
        let lacks = self.idle - self.clock();
        match self.ban {
            0 => self.line.reach().saturating_sub(lacks) / self.line.period,
            _ => 0,
        }
    }

    /// Gives back at most `n` permits below the mark, and returns how many. A reservation gets none
    /// back behind which others wait.
    pub(super) fn give(&mut self, n: u128, mark: u128, is_reserved: bool) -> u128 {
        let now_due = self.clock() + self.line.reach();
        let waits = self.idle > now_due || mark > now_due;
        if self.ban > 0 || is_reserved && waits && mark != self.idle {
            return 0;
        }
        let above = mark.min(self.idle).saturating_sub(self.clock());
        let back = (n * self.line.period).min(above);
        self.idle -= back;
        back.div_ceil(self.line.period)
    }

    /// Returns how many permits are recorded.
    pub(super) fn charge(&mut self, n: u128) -> u128 {
        let last = (self.now + SPAN) * self.line.n;
        let more = (n * self.line.period).min(last.saturating_sub(self.idle));
        self.idle += more;
        more / self.line.period
    }

    /// Returns how many permits are owed, and how long until they are paid.
    pub(super) fn debt(&self) -> (u128, Duration) {
        let paid = self.idle.saturating_sub(self.line.reach());
        let owed = paid.saturating_sub(self.clock()).div_ceil(self.line.period);
        match paid.div_ceil(self.line.n) {
            due if due > SPAN => (owed, Duration::MAX),
            due => (owed, micros(due.saturating_sub(self.now))),
        }
    }

    pub(super) fn ban(&mut self, long: u128) {
        let until = self.now + long;
        self.idle = self.idle.max(until * self.line.n + self.line.reach());
        self.ban = self.ban.max(until);
    }

    /// Returns the first microsecond at which `n` permits are granted, if nothing changes before.
    pub(super) fn due(&self, n: u128) -> u128 {
        let next = self.idle + n * self.line.period;
        let due = next.saturating_sub(self.line.reach()).div_ceil(self.line.n);
        due.max(self.ban).max(self.now)
    }
}

pub(super) fn micros(micros: u128) -> Duration {
    Duration::from_micros(micros.try_into().expect("below 2^64"))
}

/// Returns the milliseconds after which a key expires that is needed for `long` microseconds.
pub(super) fn life(long: u128) -> u128 {
    let known = [(1_000_000, 2001), (8_000_000, 9001), (64_000_000, 65_001)];
    let known = known.into_iter().find(|(most, _)| long <= *most);
    known.map_or(long / 1000 + 1001, |(_, life)| life)
}
