//! What happens where the own part is not enough. Nothing here is written down anywhere but in the parts'
//! words: a thread that stops in the middle leaves its permits taken, and stops nobody.
//!
//! # Putting back what a request could not use
//!
//! A request that takes from several parts and can't have all puts back what it took. Nobody was granted
//! that, and nobody hears of it: so, other than a give-back that a caller asks for, it must not bring forward a
//! single permit. Others may have changed the word in between, at any tick; then it can't be told what it would
//! be without us, and only what is certain is put back. What that is, the algorithm says
//! ([`Split::put_back`]).
//!
//! For that a bucket must know a tick no older than those of the others. So the clock is read again, after the
//! word. Who is told the time has no such tick, and leaves to a bucket what was taken from it. To put its old
//! word back where nobody seems to have touched it would not do: it may have been lowered, found idle at a later
//! tick, and raised to the very same word.

use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::Part;
use super::at::ShardedAt;
use crate::algorithm::Split;
use crate::cell::Place;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};
use crate::primitive::mistake;

/// How often a request takes from several parts in vain before it is denied. Requests may stand in each
/// other's way, and none of them must go on for ever. Where permits may be lost by it, once.
const fn attempts(later: Later<'_>) -> u32 {
    match later {
        Some(_) => 4,
        None => 1,
    }
}

/// Reads the clock, if there is one.
pub(super) type Later<'c> = Option<&'c dyn Fn() -> Tick>;

/// What a look at all parts found.
enum Look<'a, A> {
    /// A part that has enough.
    One {
        number: u32,
        part: &'a CachePadded<Part<A>>,
    },
    /// No part has. When the first of them will; [`u64::MAX`] if none will.
    None(u64),
}

/// How taking from several parts ended.
enum Gathered {
    All(Granted),
    TooFew,
    /// A part counted at a later tick than others did.
    From(Tick),
}

impl<'a, A: Split> ShardedAt<'a, A> {
    /// A decision that was not made in one turn.
    #[cold]
    #[inline(never)]
    pub(super) fn acquire(self, n: u64, later: Later<'_>) -> Result<Granted, Denied> {
        let (mut then, mut left) = (self, attempts(later));
        loop {
            match then.look(n) {
                // Whoever fails here lost the permits to somebody, who goes on.
                Look::One { number, part } => {
                    if let Ok(granted) = then.part(part).try_acquire_n(n) {
                        return Ok(granted.of_part(number));
                    }
                }
                // What no part has now, all together may have.
                Look::None(u64::MAX) if n <= 1 => return Err(Denied::stuck(n)),
                Look::None(due) if n <= 1 => {
                    return Err(self.denied(n, Some(Tick::from_nanos(due))));
                }
                Look::None(_) => {
                    // More than there can be at once.
                    let _ = self.whole.step(0, self.now, n)?;
                    if left == 0 || then.available() < n {
                        return Err(self.denied(n, self.due(n)));
                    }
                    left -= 1;
                    match then.gather(n, later) {
                        Gathered::All(granted) => return Ok(granted),
                        Gathered::From(tick) => then.now = tick,
                        Gathered::TooFew => {}
                    }
                }
            }
        }
    }

    /// Looks for a part that has `n`: the own one, or of those that do the one that has most; of several the
    /// first from home on. Writes nothing.
    #[inline]
    fn look(&self, n: u64) -> Look<'a, A> {
        let (mut most, mut soonest) = (None, u64::MAX);
        let (mut there, mut turn) = (0, 0);
        while let Some((number, part)) = self.neighbour(turn) {
            let word = part.cell.load();
            match part.algorithm.due(word, self.now, n) {
                Some(due) if due <= self.now => {
                    if turn == 0 {
                        return Look::One { number, part };
                    }
                    let available = part.algorithm.available(word, self.now);
                    if most.is_none() || available > there {
                        (most, there) = (Some((number, part)), available);
                    }
                }
                Some(due) => soonest = soonest.min(due.as_nanos()),
                None => {}
            }
            turn += 1;
        }
        match most {
            Some((number, part)) => Look::One { number, part },
            None => Look::None(soonest),
        }
    }

    fn denied(&self, n: u64, due: Option<Tick>) -> Denied {
        match due {
            // They came, or came back, only now.
            Some(due) if due <= self.now => Denied::later(n, Duration::from_nanos(1)),
            Some(due) => Denied::later(n, due.saturating_since(self.now)),
            None => Denied::stuck(n),
        }
    }

    /// The first tick at which all parts together have `n`.
    pub(super) fn due(&self, n: u64) -> Option<Tick> {
        let _ = self.whole.step(0, self.now, n).ok()?;
        let due = |part: &Part<A>, n| part.algorithm.due(part.cell.load(), self.now, n);
        if n <= 1 {
            return self.parts.iter().filter_map(|part| due(part, n)).min();
        }
        // At the latest when each has its share.
        let fresh = |part: &Part<A>| part.algorithm.available(0, self.now);
        let all: u128 = self.parts.iter().map(|part| u128::from(fresh(part))).sum();
        let mut latest = self.now;
        for part in self.parts {
            let share = (u128::from(n) * u128::from(fresh(part))).div_ceil(all.max(1));
            latest = latest.max(due(part, u64::try_from(share).unwrap_or(n))?);
        }
        let there = |tick| {
            let each = self.parts.iter();
            let each = each.map(|part| part.algorithm.available(part.cell.load(), tick));
            each.fold(0, u64::saturating_add) >= n
        };
        let (mut before, mut from) = (self.now.as_nanos(), latest.as_nanos());
        if there(self.now) {
            return Some(self.now);
        }
        while from - before > 1 {
            let middle = before + (from - before) / 2;
            match there(Tick::from_nanos(middle)) {
                true => from = middle,
                false => before = middle,
            }
        }
        Some(Tick::from_nanos(from))
    }

    /// Takes `n` from several parts, or nothing.
    fn gather(&self, n: u64, later: Later<'_>) -> Gathered {
        self.gather_from(self.nearest_first(), n, None, later)
    }

    /// Takes what is missing from the first of these parts and then from the others: what each frame
    /// took it puts back if the rest can't be had. Recursive, since there is nowhere to note it.
    fn gather_from(
        &self,
        mut parts: impl Iterator<Item = (u32, &'a CachePadded<Part<A>>)> + Clone,
        missing: u64,
        so_far: Option<Granted>,
        later: Later<'_>,
    ) -> Gathered {
        let Some((number, part)) = parts.next() else {
            return Gathered::TooFew;
        };
        let granted = self.part(part).take_up_to(missing).of_part(number);
        if granted.n() == 0 {
            return self.gather_from(parts, missing, so_far, later);
        }
        let outcome = match so_far {
            Some(so_far) if so_far.at() != granted.at() => {
                Gathered::From(so_far.at().max(granted.at()))
            }
            so_far => {
                let sum = so_far.map_or(granted, |so_far| so_far.and(granted));
                match missing - granted.n() {
                    0 => Gathered::All(sum),
                    missing => self.gather_from(parts, missing, Some(sum), later),
                }
            }
        };
        if !matches!(outcome, Gathered::All(_)) && !mistake!(PutsNothingBack) {
            self.put_back(part, &granted, later);
        }
        outcome
    }

    /// Puts back what nobody has used, as far as that is certain.
    pub(super) fn put_back(&self, part: &Part<A>, granted: &Granted, later: Later<'_>) {
        let mut word = part.cell.load();
        loop {
            // Read after the word, so that it is no older than what others brought.
            let later =
                mistake!(PutsBackAtItsTick => Some(self.now), else later.map(|read| read()));
            let next = mistake!(
                PutsBackByItsMark => part.algorithm.undo(word, later.unwrap_or(self.now), granted).0,
                else part.algorithm.put_back(word, granted, later)
            );
            if mistake!(PutsBackBlindly) {
                part.cell.replace(next);
                return;
            }
            if next == word {
                return;
            }
            match part.cell.exchange(word, next) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Gives back as many permits as were granted, as far as the clock has not refilled them.
    #[cold]
    pub(super) fn undo_of_several(&self, granted: &Granted) -> u64 {
        let mut left = granted.n();
        for (_, part) in self.nearest_first() {
            let n = left.min(part.algorithm.available(0, granted.at()));
            if let Ok((_, fresh)) = part.algorithm.step(0, granted.at(), n) {
                left -= self.part(part).undo(fresh).min(left);
            }
        }
        granted.n() - left
    }
}
