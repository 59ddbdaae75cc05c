//! What the scripts' replies mean. Any reply is accepted or refused; none panics.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::outcome::Charged;
use tollgate::{Denied, Granted, Tick};

use super::{ALWAYS, BadReply, Part, merged, up_to};
use crate::client::Reply;
use crate::rate::{Rate, SPAN, Ticks};

/// A granted part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The grant, in ticks since 2026-01-01 00:00 UTC on the server's clock.
    pub(crate) granted: Granted,
    /// The tick at which the limit will be idle: what an undo needs.
    pub(crate) mark: Ticks,
}

/// The state of a key: when it will be idle (not before now), and when its ban ends (0: no ban).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) now: u64,
    idle: Ticks,
    ban: u64,
}

impl Seen {
    /// Returns how many permits can be taken now.
    pub(crate) fn available(&self, rate: &Rate) -> u64 {
        match self.ban > self.now {
            true => 0,
            false => remaining(rate, self.idle, self.now),
        }
    }

    /// Returns how long the key is banned from now, or `None` if it is not.
    pub(crate) fn banned_for(&self) -> Option<Duration> {
        let left = self.ban.checked_sub(self.now)?;
        (left > 0).then(|| Duration::from_micros(left))
    }

    /// Returns whether `n` permits would be granted now.
    pub(crate) fn check(&self, rate: &Rate, n: u64) -> Result<(), Denied> {
        if n > rate.burst() {
            return Err(Denied::never(n, rate.burst()));
        }
        match self.due(rate, n) {
            due if due <= self.now => Ok(()),
            due => Err(self.denied(due, n)),
        }
    }

    /// Returns the first microsecond at which `n` permits will be granted.
    fn due(&self, rate: &Rate, n: u64) -> u64 {
        let next = rate.units(self.idle) + rate.cost(n);
        let due = rate.micros_up(next.saturating_sub(rate.units(rate.reach())));
        due.max(self.ban)
    }

    /// Returns the denial of a request that will be granted at `due`. After 50 years the clock
    /// stands still.
    fn denied(&self, due: u64, n: u64) -> Denied {
        let wait = (due <= SPAN).then(|| Duration::from_micros(due.saturating_sub(self.now)));
        match (self.ban > self.now, wait) {
            (true, wait) => Denied::banned(n, wait),
            (false, Some(wait)) => Denied::later(n, wait),
            (false, None) => Denied::stuck(n),
        }
    }
}

/// Reads the reply to [`take`](super::take): the grant of each part, or the part that is refused
/// longest.
pub(crate) fn taken(
    parts: &[Part<'_>],
    reply: &Reply,
) -> Result<Result<Vec<Taken>, (usize, Denied)>, BadReply> {
    let mut numbers = Numbers::of(reply)?;
    let granted = numbers.next(1)?;
    let now = numbers.now()?;
    let keys = merged(parts);
    let states = numbers.states(&keys, now)?;
    let asked = parts.iter().enumerate().filter_map(|(i, part)| {
        let key = keys.iter().position(|other| other.key == part.key)?;
        Some((i, part, states.get(key)?, up_to(parts, i)))
    });
    if granted == 1 {
        let taken = asked.map(|(_, part, state, n)| state.taken(part, n));
        return taken.collect::<Result<_, _>>().map(Ok);
    }
    let refused = asked.map(|(i, part, state, n)| (state.due(part.rate, n), i, state, part));
    // With equal waits, the first part is named.
    let longest = refused.max_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
    match longest {
        Some((due, i, state, part)) if due > now => Ok(Err((i, state.denied(due, part.n)))),
        _ => Err(BadReply),
    }
}

/// Reads the reply to [`look`](super::look).
pub(crate) fn seen(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Seen>, BadReply> {
    let mut numbers = Numbers::of(reply)?;
    let now = numbers.now()?;
    numbers.states(parts, now)
}

/// Reads the reply to [`give`](super::give): how many permits each part got back, rounded up.
pub(crate) fn given(
    parts: &[(Part<'_>, Option<Ticks>)],
    reply: &Reply,
) -> Result<Vec<u64>, BadReply> {
    let mut numbers = Numbers::of(reply)?;
    numbers.now()?;
    let given = parts.iter().map(|(part, _)| {
        let units = part.rate.units(numbers.ticks(part.rate)?);
        let back = part.rate.permits_up(units);
        if back > part.n {
            return Err(BadReply);
        }
        Ok(back)
    });
    let given = given.collect::<Result<_, _>>()?;
    numbers.end(given)
}

/// Reads the reply to [`charge`](super::charge).
pub(crate) fn charged(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Charged>, BadReply> {
    let mut numbers = Numbers::of(reply)?;
    let now = numbers.now()?;
    let charged = parts.iter().map(|part| {
        let rate = part.rate;
        let (before, after) = (numbers.idle(rate, now)?, numbers.idle(rate, now)?);
        let taken = rate.units(after).checked_sub(rate.units(before));
        let n = rate.permits(taken.ok_or(BadReply)?);
        if n > part.n {
            return Err(BadReply);
        }
        let clear = rate.units(after).saturating_sub(rate.units(rate.reach()));
        let owed = clear.saturating_sub(rate.units(whole(now)));
        let clear_after = match rate.micros_up(clear) {
            due if due > SPAN => Duration::MAX,
            due => Duration::from_micros(due.saturating_sub(now)),
        };
        Ok(Charged::new(n, tick(now)).with_debt(rate.permits_up(owed), clear_after))
    });
    let charged = charged.collect::<Result<_, _>>()?;
    numbers.end(charged)
}

/// Reads the reply to [`ban`](super::ban): how long each part's key is banned from now.
pub(crate) fn banned(parts: &[Part<'_>], reply: &Reply) -> Result<Vec<Duration>, BadReply> {
    let mut numbers = Numbers::of(reply)?;
    let now = numbers.now()?;
    let left = parts.iter().map(|_| {
        Ok(Duration::from_micros(
            numbers.next(ALWAYS.whole)?.saturating_sub(now),
        ))
    });
    let left = left.collect::<Result<_, _>>()?;
    numbers.end(left)
}

impl Seen {
    /// Returns the grant of the last of `n` permits that were taken from this state.
    fn taken(&self, part: &Part<'_>, n: u64) -> Result<Taken, BadReply> {
        let rate = part.rate;
        let idle = rate.units(self.idle) + rate.cost(n);
        let ahead = idle.saturating_sub(rate.units(whole(self.now)));
        if ahead > rate.units(rate.reach()) || self.ban > 0 {
            return Err(BadReply);
        }
        let mark = rate.ticks(idle);
        let granted = Granted::new(part.n, tick(self.now))
            .with_room(remaining(rate, mark, self.now), NonZeroU64::MIN)
            .with_reset_at(tick(rate.micros_up(idle)));
        Ok(Taken { granted, mark })
    }
}

/// Returns how many permits are left at `now` in a limit that will be idle then.
fn remaining(rate: &Rate, idle: Ticks, now: u64) -> u64 {
    let lacks = rate.units(idle).saturating_sub(rate.units(whole(now)));
    rate.permits(rate.units(rate.reach()).saturating_sub(lacks))
}

const fn whole(micros: u64) -> Ticks {
    Ticks {
        whole: micros,
        part: 0,
    }
}

fn tick(micros: u64) -> Tick {
    Tick::from_nanos(micros.saturating_mul(1000))
}

/// The numbers of a reply, in their order.
struct Numbers<'a> {
    left: std::slice::Iter<'a, Reply>,
}

impl<'a> Numbers<'a> {
    fn of(reply: &'a Reply) -> Result<Self, BadReply> {
        match reply {
            Reply::List(list) => Ok(Self { left: list.iter() }),
            _ => Err(BadReply),
        }
    }

    /// Returns the next number, which must be at most `max`.
    fn next(&mut self, max: u64) -> Result<u64, BadReply> {
        match self.left.next() {
            Some(Reply::Int(number)) => match u64::try_from(*number) {
                Ok(number) if number <= max => Ok(number),
                _ => Err(BadReply),
            },
            _ => Err(BadReply),
        }
    }

    fn now(&mut self) -> Result<u64, BadReply> {
        self.next(SPAN)
    }

    fn ticks(&mut self, rate: &Rate) -> Result<Ticks, BadReply> {
        Ok(Ticks {
            whole: self.next(ALWAYS.whole)?,
            part: self.next(rate.n().saturating_sub(1))?,
        })
    }

    /// Returns when a key will be idle, which is not before now.
    fn idle(&mut self, rate: &Rate, now: u64) -> Result<Ticks, BadReply> {
        match self.ticks(rate)? {
            ticks if ticks.whole < now => Err(BadReply),
            ticks => Ok(ticks),
        }
    }

    /// Returns the states of the parts, which end the reply.
    fn states(mut self, parts: &[Part<'_>], now: u64) -> Result<Vec<Seen>, BadReply> {
        let states = parts.iter().map(|part| {
            Ok(Seen {
                now,
                idle: self.idle(part.rate, now)?,
                ban: self.next(ALWAYS.whole)?,
            })
        });
        let states = states.collect::<Result<_, _>>()?;
        self.end(states)
    }

    /// Returns the result if no number is left.
    fn end<T>(mut self, result: T) -> Result<T, BadReply> {
        match self.left.next() {
            None => Ok(result),
            Some(_) => Err(BadReply),
        }
    }
}
