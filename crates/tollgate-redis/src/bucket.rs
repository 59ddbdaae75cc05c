//! Token bucket, GCRA and leaky bucket as a meter, decided by a server: what to send, and what the
//! answers mean.
//!
//! The three are one line: the tick at which the limit is idle again. A script compares and moves
//! it; all that callers ask for (permits, waits) is computed here from the ticks that it returns.
//! A call asks about several keys in one slot. A key may be named twice.

mod reply;

use std::fmt;
use std::time::Duration;

use tollgate::Denied;

use crate::rate::{Rate, SPAN, Ticks};
use crate::script::{self, Script};

pub(crate) use reply::{Seen, banned, charged, given, seen, taken};

/// What a client sends: a script, its keys and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
}

/// One key of a call: `n` permits of the limit `rate` that is stored under `key`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) rate: &'a Rate,
    pub(crate) n: u64,
}

/// A reply that no script gives to this call. Something else answers, or has written the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct BadReply;

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's reply is not one that the script gives")
    }
}

impl std::error::Error for BadReply {}

/// Ticks that are later than all that a script stores.
const ALWAYS: Ticks = Ticks {
    whole: 5 * SPAN,
    part: 0,
};

/// Takes the permits of all parts, or of none. [`taken`] reads the reply.
///
/// # Errors
///
/// A part that asks for more than a burst is never granted, so the server is not asked. This counts
/// the permits of earlier parts with the same key, which must have the same rate.
pub(crate) fn take(parts: &[Part<'_>]) -> Result<Call, (usize, Denied)> {
    for (i, part) in parts.iter().enumerate() {
        let (n, limit) = (up_to(parts, i), part.rate.burst());
        if n > limit {
            return Err((i, Denied::never(n, limit)));
        }
        let mut earlier = parts.iter().take(i).filter(|other| other.key == part.key);
        if earlier.any(|other| other.rate != part.rate) {
            return Err((i, Denied::never(part.n, 0)));
        }
    }
    Ok(call(script::take(), merged(parts).into_iter(), |part| {
        let (cost, reach) = (capped_cost(part, SPAN), part.rate.reach());
        [
            cost.whole,
            cost.part,
            part.rate.n(),
            reach.whole,
            reach.part,
        ]
    }))
}

/// Returns how many permits the parts up to this one ask of this one's key.
fn up_to(parts: &[Part<'_>], last: usize) -> u64 {
    let key = parts.get(last).map(|part| part.key);
    let same = parts
        .iter()
        .take(last.saturating_add(1))
        .filter(|part| Some(part.key) == key);
    same.fold(0, |sum, part| sum.saturating_add(part.n))
}

/// Returns one part for each key, with the permits of all its parts.
fn merged<'a>(parts: &[Part<'a>]) -> Vec<Part<'a>> {
    let mut merged = Vec::<Part<'a>>::with_capacity(parts.len());
    for part in parts {
        match merged.iter_mut().find(|other| other.key == part.key) {
            Some(same) => same.n = same.n.saturating_add(part.n),
            None => merged.push(*part),
        }
    }
    merged
}

/// Reads the state of the parts' keys. [`seen`] reads the reply.
pub(crate) fn look(parts: &[Part<'_>]) -> Call {
    call(script::look(), parts.iter().copied(), |part| {
        [part.rate.n()]
    })
}

/// Gives permits back: those of a grant with its mark (an undo), or any (a refund, without a mark).
/// [`given`] reads the reply.
pub(crate) fn give(parts: &[(Part<'_>, Option<Ticks>)]) -> Call {
    let keys = parts.iter().map(|(part, _)| *part);
    let mut marks = parts.iter().map(|(_, mark)| mark.unwrap_or(ALWAYS));
    call(script::give(), keys, |part| {
        // More than a script stores can't be given back.
        let cost = capped_cost(part, ALWAYS.whole);
        let mark = marks.next().unwrap_or(ALWAYS);
        [cost.whole, cost.part, part.rate.n(), mark.whole, mark.part]
    })
}

/// Takes permits unconditionally, up to 50 years ahead. [`charged`] reads the reply.
pub(crate) fn charge(parts: &[Part<'_>]) -> Call {
    call(script::charge(), parts.iter().copied(), |part| {
        let cost = capped_cost(part, SPAN);
        [cost.whole, cost.part, part.rate.n()]
    })
}

/// Makes the parts' keys idle again, and ends their bans. The reply is an integer.
pub(crate) fn reset(parts: &[Part<'_>]) -> Call {
    call(script::reset(), parts.iter().copied(), |_| [])
}

/// Bans the parts' keys for at most 50 years. [`banned`] reads the reply.
pub(crate) fn ban(parts: &[Part<'_>], long: Duration) -> Call {
    let micros = long.as_nanos().div_ceil(1000);
    let micros = u64::try_from(micros).unwrap_or(SPAN).min(SPAN);
    call(script::ban(), parts.iter().copied(), |part| {
        let reach = part.rate.reach();
        [micros, part.rate.n(), reach.whole, reach.part]
    })
}

/// Returns what the permits cost, or this many microseconds if that is less.
fn capped_cost(part: Part<'_>, cap: u64) -> Ticks {
    let cap = Ticks {
        whole: cap,
        part: 0,
    };
    part.rate.ticks(part.rate.cost(part.n)).min(cap)
}

fn call<'a, const N: usize>(
    script: &'static Script,
    parts: impl Iterator<Item = Part<'a>>,
    mut args: impl FnMut(Part<'a>) -> [u64; N],
) -> Call {
    let mut call = Call {
        script,
        keys: Vec::new(),
        args: Vec::new(),
    };
    for part in parts {
        call.keys.push(part.key.to_vec());
        let numbers = args(part).map(|number| number.to_string().into_bytes());
        call.args.extend(numbers);
    }
    call
}
