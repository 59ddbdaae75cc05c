//! The bucket as a textbook has it, in rational numbers.
//!
//! A bucket is the moment at which it will be full again. That moment, intervals and full buckets
//! are counted in parts of a nanosecond, chosen so that each of them is a whole number: the
//! reduced numerator of the quota is the denominator here. Nothing is rounded but the answers,
//! and nothing is shared with the crate.

use std::time::Duration;

/// Up to there, in nanoseconds, the crate promises everything: 50 years of 365.25 days.
pub(crate) const FIFTY_YEARS: u64 = 36_525 * 43_200 * 1_000_000_000;

/// The values that are right: all from `lo` to `hi`, which are one where the crate is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
}

impl Span {
    pub(crate) fn has(self, value: u128) -> bool {
        i128::try_from(value).is_ok_and(|value| self.lo <= value && value <= self.hi)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Parts of a nanosecond.
    parts: i128,
    /// From one permit to the next, in parts.
    interval: i128,
    /// A full bucket, in parts.
    reach: i128,
    burst: u64,
    /// Whether every answer must be the one right value. Elsewhere it must be right for a bucket
    /// that is full again up to one nanosecond later than this one.
    pub(crate) exact: bool,
    /// When the bucket is full again, in parts.
    full_at: i128,
    /// How often it was taken from full, or cut short when something was given back. What the
    /// limiter rounds, it rounds there.
    roundings: u64,
}

/// Where a grant stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// The part of time that its last permit ends with.
    end: i128,
    roundings: u64,
}

impl Model {
    /// `n` permits every `period_ns`, `burst` at once.
    pub(crate) fn from_quota(n: u64, period_ns: u64, burst: u64) -> Self {
        let divisor = greatest_common_divisor(n, period_ns);
        let (n, period) = (i128::from(n / divisor), i128::from(period_ns / divisor));
        let reach = i128::from(burst) * period;
        // Documented: exact up to a reduced numerator of 11, where 50 years and two bursts, in
        // parts, fit the word.
        let word = n * i128::from(FIFTY_YEARS) + 2 * reach;
        Self {
            parts: n,
            interval: period,
            reach,
            burst,
            exact: n == 1 || n <= 11 && word < i128::from(u64::MAX),
            full_at: 0,
            roundings: 0,
        }
    }

    /// One permit every `interval`, and up to `tolerance` early.
    pub(crate) fn from_interval(interval: Duration, tolerance: Duration) -> Self {
        let (interval, tolerance) = (interval.as_nanos(), tolerance.as_nanos());
        Self {
            parts: 1,
            interval: interval as i128,
            reach: (interval + tolerance) as i128,
            burst: (1 + tolerance / interval) as u64,
            exact: true,
            full_at: 0,
            roundings: 0,
        }
    }

    pub(crate) fn burst(&self) -> u64 {
        self.burst
    }

    /// What the bucket lacks at `now`, in parts; below 0 if it has been full for a while.
    fn lack(&self, now: u64) -> i128 {
        self.full_at - self.tick(now)
    }

    fn tick(&self, now: u64) -> i128 {
        i128::from(now) * self.parts
    }

    fn permits(&self, n: u64) -> i128 {
        i128::from(n).saturating_mul(self.interval)
    }

    /// The answers that `answer` gives to what the bucket lacks at `now` and up to a nanosecond
    /// more, and to what it lacked a quarter of a nanosecond less if it is about debt: that admits
    /// nothing, and so may be told to be over so much too early.
    fn span(&self, now: u64, about_debt: bool, answer: impl Fn(i128) -> i128) -> Span {
        let lack = self.lack(now);
        let (late, early) = match (self.exact, about_debt) {
            (true, _) => (0, 0),
            (false, false) => (self.parts, 0),
            (false, true) => (self.parts, div_ceil(self.parts, 4)),
        };
        let (a, b) = (answer(lack - early), answer(lack + late));
        Span {
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    /// Nanoseconds until `n` permits are there; for 0 permits, until no debt is left.
    pub(crate) fn wait(&self, now: u64, n: u64) -> Span {
        self.span(now, n == 0, |lack| {
            div_ceil(lack + self.permits(n) - self.reach, self.parts).max(0)
        })
    }

    pub(crate) fn available(&self, now: u64) -> Span {
        self.span(now, false, |lack| {
            (self.reach - lack.max(0)).max(0) / self.interval
        })
    }

    /// Nanoseconds until the bucket is full. A bucket that will not be for a hundred years may be
    /// another nanosecond late; what the crate promises of permits ends long before.
    pub(crate) fn full_after(&self, now: u64) -> Span {
        let full = self.span(now, false, |lack| div_ceil(lack, self.parts).max(0));
        let far = !self.exact && self.full_tick() > 2 * FIFTY_YEARS;
        Span {
            hi: full.hi + i128::from(far),
            ..full
        }
    }

    /// Permits owed, a started one counted whole.
    pub(crate) fn debt(&self, now: u64) -> Span {
        self.span(now, true, |lack| {
            div_ceil(lack - self.reach, self.interval).max(0)
        })
    }

    /// How many permits could be charged before a burst of them is owed.
    pub(crate) fn chargeable(&self, now: u64) -> u64 {
        let free = 2 * self.reach - self.lack(now).max(0);
        u64::try_from(free.max(0) / self.interval).unwrap_or(u64::MAX)
    }

    /// Takes `n` permits, there or not.
    pub(crate) fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            self.roundings += u64::from(self.lack(now) <= 0);
            self.full_at = self.full_at.max(self.tick(now)) + self.permits(n);
        }
    }

    /// Where the last grant stands: what [`undo`](Self::undo) wants to know.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            end: self.full_at,
            roundings: self.roundings,
        }
    }

    /// Whether the limiter must know where this grant stands: always, where it is exact.
    /// Elsewhere mark and bucket may have been rounded by different parts of a nanosecond, and
    /// what is left of the grant can't be told closer than that.
    pub(crate) fn knows(&self, mark: Mark) -> bool {
        self.exact || mark.roundings == self.roundings
    }

    /// Gives back what `n` permits that ended at `mark` still take of the time after `now`. The
    /// answer is how many came back, a part of one counted whole.
    pub(crate) fn undo(&mut self, now: u64, n: u64, mark: Mark) -> Span {
        let ahead = (mark.end - self.tick(now)).max(0);
        self.give_back(now, self.permits(n), ahead)
    }

    /// Gives back `n` permits, down to a full bucket.
    pub(crate) fn refund(&mut self, now: u64, n: u64) -> Span {
        self.give_back(now, self.permits(n), i128::MAX / 2)
    }

    /// Gives back `parts`, but no more than are `ahead` and than the bucket lacks. Either may be
    /// counted a nanosecond longer or a quarter of one shorter; what comes back may not.
    fn give_back(&mut self, now: u64, parts: i128, ahead: i128) -> Span {
        let lack = self.lack(now).max(0);
        let slack = if self.exact { 0 } else { self.parts };
        let count = |off: i128| {
            let most = (ahead.min(lack) + off).max(0);
            div_ceil(parts.min(most), self.interval)
        };
        let span = Span {
            lo: count(-div_ceil(slack, 4)),
            hi: count(slack),
        };
        let given = parts.min(ahead).min(lack);
        self.full_at -= given;
        self.roundings += u64::from(given < parts);
        span
    }

    pub(crate) fn reset(&mut self) {
        self.roundings += 1;
        self.full_at = 0;
    }

    /// Starts with `initial` permits.
    pub(crate) fn start(&mut self, now: u64, initial: u64) {
        self.take(now, self.burst - initial);
    }

    /// Whether the bucket is full: whether it may be told to be, and whether it must.
    pub(crate) fn is_full(&self, now: u64) -> (bool, bool) {
        let late = if self.exact { 0 } else { self.parts };
        (self.lack(now) <= 0, self.lack(now) + late <= 0)
    }

    /// The first nanosecond at or after which the bucket is full.
    pub(crate) fn full_tick(&self) -> u64 {
        u64::try_from(div_ceil(self.full_at, self.parts)).unwrap_or(u64::MAX)
    }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
