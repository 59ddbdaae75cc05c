//! The bucket as a textbook has it, in rational numbers.
//!
//! A bucket is the moment at which it will be full again. That moment, intervals and full buckets
//! are counted in parts of a nanosecond, chosen so that each of them is a whole number: the
//! reduced numerator of the quota is the denominator here. Nothing is rounded but the answers,
//! and nothing is shared with the crate.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::support::random::Random;
pub(crate) use crate::support::reference::FIFTY_YEARS;
use crate::support::reference::{Fraction, Reference, Span, Wait};
use crate::support::seen::Seen;

const YEAR: u64 = FIFTY_YEARS / 50;

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

    /// Nanoseconds until `n` permits are there.
    fn until(&self, now: u64, n: u64) -> Span {
        self.span(now, n == 0, |lack| {
            div_ceil(lack + self.permits(n) - self.reach, self.parts).max(0)
        })
    }

    /// Nanoseconds until the bucket is full. A bucket that will not be for a hundred years may be
    /// another nanosecond late; what the crate promises of permits ends long before.
    fn full_after(&self, now: u64) -> Span {
        let full = self.span(now, false, |lack| div_ceil(lack, self.parts).max(0));
        let far = !self.exact && self.full_tick() > 2 * FIFTY_YEARS;
        Span {
            hi: full.hi + i128::from(far),
            ..full
        }
    }

    /// The first nanosecond at or after which the bucket is full.
    fn full_tick(&self) -> u64 {
        u64::try_from(div_ceil(self.full_at, self.parts)).unwrap_or(u64::MAX)
    }

    /// How many permits could be charged before a burst of them is owed.
    fn chargeable(&self, now: u64) -> u64 {
        let free = 2 * self.reach - self.lack(now).max(0);
        u64::try_from(free.max(0) / self.interval).unwrap_or(u64::MAX)
    }

    /// Gives back `parts`, but no more than are `ahead` and than the bucket lacks. Either may be
    /// counted a nanosecond longer or a quarter of one shorter; what comes back may not. The answer is
    /// how many permits came back, a part of one counted whole.
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

    /// Starts with `initial` permits.
    pub(crate) fn start(&mut self, now: u64, initial: u64) {
        self.take(now, self.burst - initial);
    }
}

impl Reference for Model {
    type Mark = Mark;

    fn limit(&self) -> u64 {
        self.burst
    }

    /// The same, one that matters or one beside it, a later one, an earlier one.
    fn moment(&self, still: u64, random: &mut Random, _seen: &mut Seen) -> u64 {
        let beside =
            |random: &mut Random, tick: u64| tick.saturating_add(random.below(3)).saturating_sub(1);
        let later = |by: u64| still.saturating_add(by);
        let until = |n| later(self.until(still, n).lo as u64);
        let full = self.full_after(still).hi as u64;
        let target = match random.below(20) {
            0..=4 => still,
            5 => later(1),
            6 => later(random.upto(1_000_000)),
            7..=10 => {
                let n = random.upto(self.burst);
                beside(random, until(n))
            }
            11 => beside(random, self.full_tick()),
            12 => beside(random, until(0)),
            13 | 14 => later(random.upto(full.saturating_mul(2))),
            15 => still.saturating_sub(random.upto(1000)),
            16 => still.saturating_sub(random.upto(full)),
            17 => later(full).saturating_add(random.upto(1_000_000_000)),
            18 if random.one_in(50) => random.below(FIFTY_YEARS),
            19 if random.one_in(50) => 0,
            _ => beside(random, until(1)),
        };
        target.min(FIFTY_YEARS)
    }

    /// Where the limiter is not exact its clock is slower by up to a third of a nanosecond in 50 years,
    /// and what is given back so much earlier counts by that much more.
    fn begins_anew(&self, before: u64, now: u64) -> bool {
        !self.exact && now < before.saturating_sub(YEAR)
    }

    fn available(&self, now: u64) -> Span {
        self.span(now, false, |lack| {
            (self.reach - lack.max(0)).max(0) / self.interval
        })
    }

    /// Only what would take past 50 years may be said to be never there.
    fn wait(&self, now: u64, n: u64) -> Wait {
        let span = self.until(now, n);
        Wait {
            span,
            may_be_never: i128::from(FIFTY_YEARS) < i128::from(now) + span.hi,
            is_never: false,
        }
    }

    fn counted_at(&self, now: u64, _n: u64) -> u64 {
        now
    }

    fn as_new_after(&self, now: u64, _counted_at: u64) -> Span {
        self.full_after(now)
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            self.roundings += u64::from(self.lack(now) <= 0);
            self.full_at = self.full_at.max(self.tick(now)) + self.permits(n);
        }
    }

    fn debt(&self, now: u64) -> Span {
        self.span(now, true, |lack| {
            div_ceil(lack - self.reach, self.interval).max(0)
        })
    }

    /// A burst of debt always fits.
    fn room(&self, now: u64) -> RangeInclusive<u64> {
        self.chargeable(now)..=u64::MAX
    }

    /// Elsewhere more than a burst of debt is not paid within 50 years.
    fn knows_debt(&self, now: u64, n: u64) -> bool {
        self.exact || n <= self.chargeable(now)
    }

    fn mark(&self, _now: u64) -> Mark {
        Mark {
            end: self.full_at,
            roundings: self.roundings,
        }
    }

    /// Gives back what `n` permits that ended at `mark` still take of the time after `now`. Where the
    /// limiter is not exact, mark and bucket may have been rounded by different parts of a nanosecond, and
    /// what is left of the grant can't be told closer than that.
    fn undo(&mut self, now: u64, n: u64, mark: Mark) -> Option<Span> {
        if !self.exact && mark.roundings != self.roundings {
            return None;
        }
        let ahead = (mark.end - self.tick(now)).max(0);
        Some(self.give_back(now, self.permits(n), ahead))
    }

    /// Gives back `n` permits, down to a full bucket.
    fn refund(&mut self, now: u64, n: u64) -> Span {
        self.give_back(now, self.permits(n), i128::MAX / 2)
    }

    fn is_idle(&self, now: u64) -> (bool, bool) {
        let late = if self.exact { 0 } else { self.parts };
        (self.lack(now) <= 0, self.lack(now) + late <= 0)
    }

    fn level(&self, now: u64) -> Option<Fraction> {
        self.exact.then(|| Fraction {
            num: self.lack(now).max(0) as u128,
            den: self.interval as u128,
        })
    }

    fn reset(&mut self) {
        self.roundings += 1;
        self.full_at = 0;
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
