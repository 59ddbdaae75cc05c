//! A remembered denial in one word.
//!
//! ```text
//!   63           23     22     21     17 16      0
//!  ┌───────────────┬────────┬───────────┬─────────┐
//!  │     until     │ banned │  exponent │ mantissa│
//!  └───────────────┴────────┴───────────┴─────────┘
//!                           └──── due - until ────┘
//! ```
//!
//! Times count in units of 2^20 ns, about a millisecond.
//!
//! - *until*: the denial is remembered before this tick, which is rounded down. It is at most a
//!   second, and never more than the wait, after the call was *sent*. The server read its clock
//!   later, so the permits are not due before.
//! - *due*: the tick that callers are told to wait for, which is rounded up: the wait after the
//!   answer was *received*. The server read its clock earlier, so the permits are due then. Waits
//!   of up to two minutes are rounded by at most two units, and longer ones by 1 / 65 536 more.
//!
//! 41 bits of these units are 73 years, so no word has all bits set.

use std::time::Duration;

use tollgate::algorithm::Algorithm;
use tollgate::{Denied, Granted, Tick};

/// How long a denial is remembered, at most.
const LONGEST: Duration = Duration::from_secs(1);

/// A unit is 2^20 ns.
const UNIT_BITS: u32 = 20;
const UNIT: u64 = 1 << UNIT_BITS;

const MANTISSA_BITS: u32 = 17;
const UNTIL_SHIFT: u32 = 23;
const BANNED: u64 = 1 << 22;
const LATER: u64 = BANNED - 1;

/// The largest *until*.
const LAST: u64 = (1 << 41) - 2;

/// Remembers a denial for a while: the algorithm of a table whose words are denials.
///
/// A step for 0 permits reads: it is denied while a denial is remembered, and writes nothing. A
/// step for the [word](word_of) of a denial writes it, unless one is remembered.
#[derive(Debug)]
pub(super) struct Remember;

impl Algorithm for Remember {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if !self.is_idle(word, now) {
            return Err(denial(word, now, n));
        }
        // A full table asks what becomes of any `n`.
        let longest = now.saturating_add(LONGEST).as_nanos() >> UNIT_BITS;
        let until = (n >> UNTIL_SHIFT).min(longest).min(LAST);
        let next = until << UNTIL_SHIFT | n & (BANNED | LATER);
        let next = if self.is_idle(next, now) { word } else { next };
        Ok((next, Granted::new(n, now)))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        match self.is_idle(word, now) {
            true => u64::MAX,
            false => 0,
        }
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        until(word) <= now
    }

    fn idle_at(&self, word: u64, now: Tick) -> Tick {
        until(word).max(now)
    }

    fn larger_is_idle_later(&self) -> bool {
        true
    }
}

/// Returns the word of a denial, or `None` if it is not one to remember: it has no wait that ends,
/// or one that is too short.
pub(super) fn word_of(denied: &Denied, sent: Tick, received: Tick) -> Option<u64> {
    let (wait, banned) = match *denied {
        Denied::Later { retry_after, .. } => (retry_after, 0),
        Denied::Banned { retry_after, .. } => (retry_after?, BANNED),
        _ => return None,
    };
    let until = sent.saturating_add(wait.min(LONGEST)).as_nanos() >> UNIT_BITS;
    if until > LAST || until << UNIT_BITS <= received.as_nanos() {
        return None;
    }
    let wait = u64::try_from(wait.as_nanos()).ok()?;
    let due = received.max(sent).as_nanos().checked_add(wait)?;
    let later = float_up(due.div_ceil(UNIT).saturating_sub(until))?;
    Some(until << UNTIL_SHIFT | banned | later)
}

/// Returns the denial that a word remembers, as a caller is told at this tick.
fn denial(word: u64, now: Tick, n: u64) -> Denied {
    let due = (word >> UNTIL_SHIFT).saturating_add(of_float(word & LATER));
    let due = Tick::from_nanos(due.saturating_mul(UNIT));
    let wait = due.saturating_since(now);
    match word & BANNED {
        0 => Denied::later(n, wait),
        _ => Denied::banned(n, Some(wait)),
    }
}

fn until(word: u64) -> Tick {
    Tick::from_nanos((word >> UNTIL_SHIFT) << UNIT_BITS)
}

/// Returns a number as a mantissa and an exponent, rounded up. `None` if it is too large.
fn float_up(number: u64) -> Option<u64> {
    let bits = u64::BITS - number.leading_zeros();
    let exponent = bits.saturating_sub(MANTISSA_BITS);
    let mantissa = number.div_ceil(1 << exponent);
    let (mantissa, exponent) = match mantissa >> MANTISSA_BITS {
        0 => (mantissa, exponent),
        _ => (mantissa >> 1, exponent + 1),
    };
    let float = u64::from(exponent) << MANTISSA_BITS | mantissa;
    (float <= LATER).then_some(float)
}

fn of_float(float: u64) -> u64 {
    let mantissa = float & ((1 << MANTISSA_BITS) - 1);
    mantissa << (float >> MANTISSA_BITS)
}

#[cfg(test)]
#[path = "../../tests/remembered/word.rs"]
mod tests;
