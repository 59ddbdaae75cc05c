//! Token bucket, GCRA and leaky bucket: one line, the tick at which the bucket is idle again.
//!
//! A script compares and moves the tick. All that callers ask for (permits, waits) is computed here
//! from the ticks that it returns.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::Granted;
use tollgate::outcome::Charged;

use super::{Mark, Taken, tick, wait};
use crate::limit::bounds::SPAN;
use crate::limit::rate::{Rate, Ticks};
use crate::script::packed::{BadReply, Packed, pack};

/// A tick that is later than all that a script stores.
const ALWAYS: Ticks = Ticks {
    whole: 5 * SPAN,
    part: 0,
};

/// Stored values have this number added to n, as a mark of their format.
const FORMAT: u64 = 1 << 28;

/// A bucket's rate, and how its permits leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) rate: Rate,
    /// Of a queue: how many permits ahead of the rate go without delay.
    pub(crate) free: Option<u64>,
}

/// When a bucket will be idle, not before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketSeen {
    idle: Ticks,
}

impl Bucket {
    /// Returns the longest wait that the scripts can count: with the reach it is 50 years.
    pub(super) fn longest_wait(&self) -> u64 {
        let reach = self.rate.reach();
        SPAN.saturating_sub(reach.whole)
            .saturating_sub((reach.part > 0).into())
    }

    /// Appends the rate, the cost of the permits, or `cap` if that is less, and the reach.
    pub(super) fn argue(&self, arg: &mut Vec<u8>, n: u64, cap: u64, reach: Ticks) {
        let rate = &self.rate;
        let cost = rate.ticks(rate.cost(n)).min(whole(cap));
        arg.push(b'B');
        pack(arg, &[rate.n(), rate.period(), cost.whole, reach.whole]);
        pack(arg, &[cost.part, reach.part]);
    }

    /// Returns the argument of a request to give back `n` permits: a grant's, or any. In place of
    /// the reach it has how far ahead of the clock a permit can be and leave at once: others wait.
    pub(super) fn giving(&self, n: u64, mark: Option<Mark>) -> Vec<u8> {
        let mut arg = Vec::with_capacity(96);
        let at_once = self.rate.ticks(self.at_once());
        // More than this is never ahead of the clock.
        self.argue(&mut arg, n, 2 * SPAN, at_once);
        let (at, faster) = mark.map_or((ALWAYS, None), |mark| self.carried(mark));
        let faster = faster.map_or([0, 0], |rate| [rate.n(), rate.period()]);
        // In a queue, each grant is a place in a line, as a reservation is.
        let delays = at_once < self.rate.reach();
        let is_reserved = mark.is_some_and(|mark| mark.is_reserved || delays);
        pack(&mut arg, &[at.whole, at.part, is_reserved.into()]);
        pack(&mut arg, &faster);
        arg
    }

    /// Returns the mark of a grant at this rate, or at the rate of the grant if that is faster.
    /// When the rate changed is not known. So that no permit comes back that one of the rates has
    /// refilled, a faster rate counts from the grant on, and a slower one from now on, as the
    /// server knows.
    fn carried(&self, mark: Mark) -> (Ticks, Option<Rate>) {
        let rate = &self.rate;
        let Some((old, then)) = mark.by.filter(|(old, _)| !old.is_as_fast(rate)) else {
            return (mark.at, None);
        };
        // The microseconds of a permit, both times n of both rates.
        let [mine, others] = [(rate, &old), (&old, rate)].map(|(one, other)| one.cost(other.n()));
        if mine > others {
            return (mark.at, Some(old));
        }
        let ahead = old.units(mark.at).saturating_sub(old.units(whole(then)));
        let used = ahead.saturating_mul(rate.period().into()) / u128::from(old.period().max(1));
        let at = rate.units(whole(then)).saturating_add(used);
        (rate.ticks(at), None)
    }

    /// Returns how far ahead of the clock a permit can be and leave at once.
    fn at_once(&self) -> u128 {
        let rate = &self.rate;
        let reach = rate.units(rate.reach());
        self.free
            .map_or(reach, |free| rate.cost(free.saturating_add(1)).min(reach))
    }

    /// Reads what `bucket.tell` returns.
    pub(super) fn see(
        &self,
        told: &mut Packed<'_>,
        now: u64,
    ) -> Result<(BucketSeen, u64), BadReply> {
        let part = told.next(self.rate.n().saturating_sub(1))?;
        let whole = told.next(ALWAYS.whole)?;
        let ban = told.next(ALWAYS.whole)?;
        let idle = Ticks { whole, part };
        match whole < now {
            true => Err(BadReply),
            false => Ok((BucketSeen { idle }, ban)),
        }
    }

    /// Reads the reply of the script for one bucket: the state before, and whether it granted `n`
    /// permits.
    pub(super) fn see_one(
        &self,
        reply: &[u8],
        n: u64,
    ) -> Result<(bool, u64, BucketSeen, u64), BadReply> {
        let mut told = Packed::new(reply);
        let (granted, of) = match told.short()? {
            of if of >= FORMAT => (true, of - FORMAT),
            of => (false, of),
        };
        if of != self.rate.n() {
            return Err(BadReply);
        }
        let part = told.short()?;
        let whole = told.next(ALWAYS.whole)?;
        let ban = match granted {
            true => 0,
            false => told.next(ALWAYS.whole)?,
        };
        let now = told.next(SPAN)?;
        if granted && told.next(SPAN)? != self.rate.period() {
            return Err(BadReply);
        }
        let mut idle = Ticks { whole, part };
        if granted {
            let before = self.rate.units(idle).checked_sub(self.rate.cost(n));
            idle = self.rate.ticks(before.ok_or(BadReply)?);
        }
        if part >= self.rate.n() || idle.whole < now {
            return Err(BadReply);
        }
        told.end((granted, now, BucketSeen { idle }, ban))
    }

    /// Returns how many permits can be taken.
    pub(super) fn available(&self, seen: &BucketSeen, now: u64) -> u64 {
        let rate = &self.rate;
        let lacks = rate.units(seen.idle).saturating_sub(rate.units(whole(now)));
        rate.permits(rate.units(rate.reach()).saturating_sub(lacks))
    }

    /// Returns the first microsecond at which `n` permits will be granted.
    pub(super) fn due(&self, seen: &BucketSeen, n: u64) -> u64 {
        let rate = &self.rate;
        let next = rate.units(seen.idle) + rate.cost(n);
        rate.micros_up(next.saturating_sub(rate.units(rate.reach())))
    }

    /// Returns the grant of `n` permits that were taken from this state, at most `wait`
    /// microseconds before they are due.
    pub(super) fn taken(
        &self,
        seen: &BucketSeen,
        now: u64,
        n: u64,
        wait: u64,
    ) -> Result<Taken, BadReply> {
        let rate = &self.rate;
        let due = self.due(seen, n).max(now);
        if due - now > wait {
            return Err(BadReply);
        }
        // A reservation counts from its due tick or a later one.
        let from = rate.units(seen.idle).max(rate.units(whole(due)));
        let idle = from + rate.cost(n);
        let mark = match n {
            0 => seen.idle,
            _ => rate.ticks(idle),
        };
        let idle = rate.units(mark);
        let after = BucketSeen { idle: mark };
        let granted = Granted::new(n, tick(now))
            .with_remaining(self.available(&after, now), NonZeroU64::MIN)
            .with_reset_at(tick(rate.micros_up(idle)));
        let leaves = match n {
            0 => 0,
            _ => rate.micros_up(idle.saturating_sub(self.at_once())),
        };
        let granted = match due.max(leaves) {
            ready if ready > now => granted.with_ready_at(tick(ready)),
            _ => granted,
        };
        let rate = Some(self.rate);
        Ok(Taken {
            granted,
            mark,
            rate,
        })
    }

    /// Reads what `bucket.give` returns: how many permits, rounded up.
    pub(super) fn given(&self, told: &mut Packed<'_>) -> Result<u64, BadReply> {
        let whole = told.next(ALWAYS.whole)?;
        let part = told.next(self.rate.n().saturating_sub(1))?;
        Ok(self.rate.permits_up(self.rate.units(Ticks { whole, part })))
    }

    /// Reads what `bucket.charge` returns.
    pub(super) fn charged(&self, told: &mut Packed<'_>, now: u64) -> Result<Charged, BadReply> {
        let rate = &self.rate;
        let mut idle = || {
            let whole = told.next(ALWAYS.whole)?;
            let part = told.next(rate.n().saturating_sub(1))?;
            match whole < now {
                true => Err(BadReply),
                false => Ok(rate.units(Ticks { whole, part })),
            }
        };
        let (before, after) = (idle()?, idle()?);
        let n = rate.permits(after.checked_sub(before).ok_or(BadReply)?);
        let clear = after.saturating_sub(rate.units(rate.reach()));
        let owed = clear.saturating_sub(rate.units(whole(now)));
        let clear_after = wait(rate.micros_up(clear), now);
        Ok(Charged::new(n, tick(now))
            .with_debt(rate.permits_up(owed), clear_after.unwrap_or(Duration::MAX)))
    }
}

const fn whole(micros: u64) -> Ticks {
    Ticks {
        whole: micros,
        part: 0,
    }
}
