//! All buckets as textbooks define them, in rational numbers: token bucket, GCRA and leaky bucket.
//!
//! The state of a bucket is the time at which it will be full again (for a leaky bucket: empty).
//! That time, intervals and full buckets are counted in parts of a nanosecond, chosen so that each
//! of them is a whole number: the denominator is the reduced numerator of the quota. Only the
//! answers are rounded, and no code is shared with the crate.

use crate::support::reference::{Fraction, Reference, Span, Wait};
use crate::support::*;

const YEAR: u64 = FIFTY_YEARS / 50;

#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    /// The parts in a nanosecond.
    parts: i128,
    /// The parts from one permit to the next.
    interval: i128,
    /// A full bucket, in parts.
    reach: i128,
    burst: u64,
    /// The permits that a queue admits without delay beyond the first. `None` for all.
    free: Option<u64>,
    /// Whether every answer must be exact. Otherwise it must be right for a bucket that is full
    /// again less than one unit earlier than this one, which is at most a quarter of a nanosecond,
    /// or up to one nanosecond later.
    pub(crate) exact: bool,
    /// The time at which the bucket is full again, in parts.
    full_at: i128,
    /// The number of times that the bucket left the full state, or that a return was capped. The
    /// limiter rounds at these times.
    roundings: u64,
}

/// The position of a grant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// The end of the time that its last permit covers, in parts.
    end: i128,
    /// The tick at which it was granted.
    at: u64,
    roundings: u64,
}

impl Bucket {
    pub(crate) fn from_quota(quota: Quota) -> Self {
        let period = u64::try_from(quota.period().as_nanos()).expect("a period");
        let divisor = greatest_common_divisor(quota.permits(), period);
        let parts = i128::from(quota.permits() / divisor);
        let interval = i128::from(period / divisor);
        let reach = i128::from(quota.burst_size()) * interval;
        // As documented, exact up to a reduced numerator of 11 if 50 years and two bursts, in
        // parts, fit in the word.
        let word = parts * i128::from(FIFTY_YEARS) + 2 * reach;
        Self {
            parts,
            interval,
            reach,
            burst: quota.burst_size(),
            free: None,
            exact: parts == 1 || parts <= 11 && word < i128::from(u64::MAX),
            full_at: 0,
            roundings: 0,
        }
    }

    /// One permit every `interval`, and up to `tolerance` early.
    pub(crate) fn from_interval(interval: Duration, tolerance: Duration) -> Self {
        let at_once = 1 + tolerance.as_nanos() / interval.as_nanos();
        let quota = Quota::per(1, interval).burst(at_once as u64);
        Self {
            reach: (interval + tolerance).as_nanos() as i128,
            ..Self::from_quota(quota)
        }
    }

    pub(crate) fn queue(self, free: u64) -> Self {
        let free = (free < u64::MAX).then_some(free);
        Self { free, ..self }
    }

    /// Returns the parts that the bucket lacks at `now`. Negative if it has been full for a while.
    fn lack(&self, now: u64) -> i128 {
        self.full_at - self.tick(now)
    }

    fn tick(&self, now: u64) -> i128 {
        self.clock(now) as i128 * self.parts
    }

    /// Returns the first tick at which `n` permits are available.
    pub(crate) fn due(&self, n: u64) -> u64 {
        let due = div_ceil(self.full_at + self.permits(n) - self.reach, self.parts);
        due.max(0) as u64
    }

    fn permits(&self, n: u64) -> i128 {
        i128::from(n).saturating_mul(self.interval)
    }

    /// Returns how much earlier and how much later than this bucket the limiter may be.
    fn off(&self) -> (i128, i128) {
        match self.exact {
            true => (0, 0),
            // Less than a quarter.
            false => (div_ceil(self.parts, 4) - 1, self.parts),
        }
    }

    /// Returns the range of answers for what the bucket lacks at `now`, from less than a unit less
    /// up to a nanosecond more.
    fn span(&self, now: u64, answer: impl Fn(i128) -> i128) -> Span {
        let lack = self.lack(now);
        let (early, late) = self.off();
        let (a, b) = (answer(lack - early), answer(lack + late));
        Span {
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    /// Returns the first nanosecond at which the bucket is full.
    fn full_tick(&self) -> u64 {
        u64::try_from(div_ceil(self.full_at, self.parts)).unwrap_or(u64::MAX)
    }

    /// Returns `parts` to the bucket, at most `ahead` and at most what it lacks. Each of these may
    /// be up to a nanosecond longer or a quarter of one shorter in the limiter, but the returned
    /// part is exact. The result is the number of permits that came back, with a fraction rounded
    /// up.
    fn give_back(&mut self, now: u64, parts: i128, ahead: i128) -> Span {
        let lack = self.lack(now).max(0);
        let (early, late) = self.off();
        let count = |off: i128| {
            let most = (ahead.min(lack) + off).max(0);
            div_ceil(parts.min(most), self.interval)
        };
        let span = Span {
            lo: count(-early),
            hi: count(late),
        };
        let given = parts.min(ahead).min(lack);
        self.full_at -= given;
        self.roundings += u64::from(given < parts);
        span
    }
}

impl Reference for Bucket {
    type Mark = Mark;

    fn limit(&self) -> u64 {
        self.burst
    }

    fn period(&self) -> u64 {
        (self.interval / self.parts).max(1) as u64
    }

    fn edge(&self, _now: u64) -> u64 {
        self.full_tick()
    }

    /// Returns the last tick at which a burst and a burst of debt fit in the word.
    fn horizon(&self) -> Option<u64> {
        let room = i128::from(u64::MAX - 1) - 2 * self.reach;
        self.exact.then_some((room / self.parts) as u64)
    }

    fn weight(&self, time: u128) -> Fraction {
        let lack = self.full_at - time as i128 * self.parts;
        Fraction {
            num: lack.max(0) as u128,
            den: self.interval as u128,
        }
    }

    /// An inexact limiter's clock is slower by up to a third of a nanosecond in 50 years. A return
    /// that is that much earlier counts for that much more.
    fn begins_anew(&self, before: u64, now: u64) -> bool {
        !self.exact && now < before.saturating_sub(YEAR)
    }

    fn available(&self, now: u64) -> Span {
        self.span(now, |lack| {
            (self.reach - lack.max(0)).max(0) / self.interval
        })
    }

    /// An inexact limiter may report that a wait of more than 50 years never ends.
    fn wait(&self, now: u64, n: u64) -> Wait {
        let span = self.span(now, |lack| {
            div_ceil(lack + self.permits(n) - self.reach, self.parts).max(0)
        });
        let is_after = |end: u64| i128::from(end) < i128::from(now) + span.hi;
        match self.horizon() {
            Some(horizon) if span.hi > 0 && is_after(horizon) => Wait::NEVER,
            horizon => Wait {
                span,
                may_be_never: horizon.is_none() && is_after(FIFTY_YEARS),
                is_never: false,
            },
        }
    }

    /// A bucket that will not be full for a hundred years may be another nanosecond late. The
    /// crate's guarantees about permits end long before.
    fn as_new_after(&self, now: u64, _counted_at: u64) -> Span {
        if self.exact {
            return Span::only(self.full_tick().saturating_sub(now));
        }
        let full = self.span(now, |lack| div_ceil(lack, self.parts).max(0));
        let is_far = self.full_tick() > 2 * FIFTY_YEARS;
        Span {
            hi: full.hi + i128::from(is_far),
            ..full
        }
    }

    /// `max(0, level after - 1 - free) / rate`, rounded up: until the level above the free permits
    /// has drained.
    fn delay(&self, now: u64, n: u64) -> Span {
        match self.free {
            Some(free) if n > 0 => {
                let ahead = self.permits(free).saturating_add(self.interval);
                self.span(now, |lack| {
                    let due = div_ceil(self.tick(now) + lack - ahead, self.parts);
                    (due - i128::from(now)).max(0)
                })
            }
            _ => Span::only(0),
        }
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            self.roundings += u64::from(self.lack(now) <= 0);
            self.full_at = self.full_at.max(self.tick(now)) + self.permits(n);
        }
    }

    fn debt(&self, now: u64) -> Span {
        self.span(now, |lack| {
            div_ceil(lack - self.reach, self.interval).max(0)
        })
    }

    /// An inexact limiter always has room for a burst of debt.
    fn room(&self, now: u64) -> Span {
        let count = |parts: i128| u64::try_from(parts.max(0) / self.interval).unwrap_or(u64::MAX);
        if self.exact {
            let room = count(i128::from(u64::MAX - 1) - self.full_at.max(self.tick(now)));
            return Span::only(room);
        }
        Span {
            lo: count(2 * self.reach - self.lack(now).max(0)).into(),
            hi: u64::MAX.into(),
        }
    }

    /// An inexact limiter may not repay more than a burst of debt within 50 years.
    fn knows_debt(&self, now: u64, n: u64) -> bool {
        self.exact || i128::from(n) <= self.room(now).lo
    }

    fn mark(&self, now: u64) -> Mark {
        Mark {
            end: self.full_at,
            at: now,
            roundings: self.roundings,
        }
    }

    /// Returns the part of the time after `now` that `n` permits ending at `mark` still cover. In
    /// an inexact limiter, mark and bucket may be rounded by different fractions of a nanosecond,
    /// so the rest of the grant is known only that closely.
    ///
    /// A queue gives nothing back while others wait behind the grant, or if the grant waited and
    /// is no longer in line. A caller with an old tick gives back at the tick of the grant.
    fn undo(&mut self, now: u64, n: u64, mark: Mark) -> Option<Span> {
        if !self.exact && mark.roundings != self.roundings {
            return None;
        }
        let delays = self
            .free
            .map(|free| self.permits(free).saturating_add(self.interval));
        let now = match delays.filter(|at_once| *at_once < self.reach) {
            None => now,
            Some(at_once) => {
                let now = now.max(mark.at);
                let (early, late) = self.off();
                let last = self.full_at.max(mark.end) - self.tick(now) - at_once;
                let (waits, may_wait) = (last - early > 0, last + late > 0);
                if mark.end != self.full_at && may_wait {
                    return waits.then_some(Span::only(0));
                }
                now
            }
        };
        let ahead = (mark.end - self.tick(now)).max(0);
        Some(self.give_back(now, self.permits(n), ahead))
    }

    fn refund(&mut self, now: u64, n: u64) -> Span {
        self.give_back(now, self.permits(n), i128::MAX / 2)
    }

    fn is_idle(&self, now: u64) -> [bool; 2] {
        let (early, late) = self.off();
        [-early, late].map(|off| self.lack(now) + off <= 0)
    }

    fn level(&self, now: u64) -> Option<Fraction> {
        self.exact.then(|| self.weight(self.clock(now)))
    }

    fn reset(&mut self) {
        self.roundings += 1;
        self.full_at = 0;
    }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}

pub(crate) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
