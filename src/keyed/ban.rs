//! Bans, for tables of keys: a banned key has no permits before a certain tick.

use core::convert::Infallible;

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::store::op::{Current, Op, Step};

/// The operation that bans a key: it takes all permits that the key will have when the ban ends.
pub(super) struct Ban {
    pub(super) until: Tick,
}

impl<A: Algorithm> Op<A> for Ban {
    type Output = ();
    type Refusal = Denied;
    const BANS: bool = true;

    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, ()), Denied> {
        let until = self.until.max(current.now);
        let (next, _) = algorithm.take_up_to(current.word, until, u64::MAX);
        Ok((next, ()))
    }

    /// A ban is always written: it changes the slot even if the key has no permit to take.
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        false
    }

    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<Result<(), Denied>> {
        Some(Err(why(0)))
    }
}

/// The operation that finds when a key's ban ends. It changes nothing.
pub(super) struct BannedUntil;

impl<A: Algorithm> Op<A> for BannedUntil {
    /// The first tick with a permit, or `None` if the key is not banned.
    type Output = Option<Tick>;
    type Refusal = Infallible;

    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let Current { word, now, .. } = current;
        let banned = current.is_banned.then_some(word);
        let last = banned.and_then(|word| last_without_permits(algorithm, word, now));
        Ok((word, last.map(after)))
    }

    /// Always runs out of line, because only that path knows whether the key is banned.
    fn run_fast(&mut self, _algorithm: &A, _current: Current) -> Option<Step<A, Self>> {
        None
    }
}

/// Returns the word with which a ban continues under another algorithm, or `None` if the ban is
/// over. The ban ends at the same tick, even if the other algorithm would refill the permits
/// sooner.
pub(super) fn ban_in<A: Algorithm>(old: &A, word: u64, now: Tick, new: &A) -> Option<u64> {
    let last = last_without_permits(old, word, now)?;
    Some(banned_until(new, last))
}

/// Returns the last tick before the first permit, or `None` if there is a permit at `now`.
pub(super) fn last_without_permits<A: Algorithm>(
    algorithm: &A,
    word: u64,
    now: Tick,
) -> Option<Tick> {
    let has_none = |tick| algorithm.available(word, Tick::from_nanos(tick)) == 0;
    let (mut none, mut stride) = (now.as_nanos(), 1_u64 << 63);
    while stride > 0 {
        match none.checked_add(stride) {
            Some(later) if has_none(later) => none = later,
            _ => {}
        }
        stride >>= 1;
    }
    has_none(none).then_some(Tick::from_nanos(none))
}

/// Returns a word that has no permit up to tick `last`, and one permit right after it. For a window
/// there is no such word. There the word has no permit before the window of `last` ends.
pub(super) fn banned_until<A: Algorithm>(algorithm: &A, last: Tick) -> u64 {
    let then = after(last);
    let all_but_one = algorithm.available(0, then).saturating_sub(1);
    let (word, _) = algorithm.take_up_to(0, then, all_but_one);
    // With a window, a caller with an earlier tick counts in the window that begins at `then`,
    // where one permit is left. In this case take all permits at `last` instead.
    match [Tick::ZERO, last]
        .iter()
        .all(|tick| algorithm.available(word, *tick) == 0)
    {
        true => word,
        false => algorithm.take_up_to(0, last, u64::MAX).0,
    }
}

/// Returns the next tick.
const fn after(tick: Tick) -> Tick {
    Tick::from_nanos(tick.as_nanos().saturating_add(1))
}
