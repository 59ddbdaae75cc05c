//! What happens where the own part is not enough. Nothing here is written down anywhere but in the parts'
//! words: a thread that stops in the middle leaves its permits taken, and stops nobody.
//!
//! # Putting back what a request could not use
//!
//! A request that takes from several parts and can't have all puts back what it took, and nobody was
//! granted it. So, other than a give-back that a caller asks for, it must not bring forward a single
//! permit. Let `k` be taken from a word at tick `t`, which made it `after` where `before` had been.
//!
//! - **Untouched.** If the word still is `after`, it becomes `before` again, and nothing has happened.
//!   (If others took and gave back in between, so that it is the same word again, nothing of theirs is in
//!   it.)
//! - **Touched.** The word without us can't be known: where the bucket would have been full meanwhile, the
//!   others would have found less to add to. So only what is certain is put back: `k` permits less all that
//!   the clock made since `t`, as an [`undo`](crate::algorithm::GiveBack::undo) of a grant that found the
//!   limiter fresh. That is at most what `undo` gives by the grant's own mark, and the difference matters
//!   when several requests are under way: the mark counts what others had taken and may have put back.
//!
//! With `c(j) = max(0, k(j) - made since t(j))` for each request `j` that is under way, and `base` the word of
//! an idle bucket at the latest tick seen, this holds after each change: `word >= base + sum of c` while
//! the sum is not 0, and `word - sum of c` is at least what the word would be without those requests, or both
//! are idle. Taking adds `k` to both sides; time lowers each `c` by as much as it raises `base`; other grants
//! raise the word; and putting back lowers word and sum by no more than `c(j)`.
//!
//! That needs a tick no older than those of the others, so the clock is read again after the word. Who has
//! no clock can't know it and leaves the word as it is.

use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::Part;
use super::at::ShardedAt;
use crate::algorithm::Split;
use crate::cell::Place;
use crate::clock::Tick;
use crate::limiter::At;
use crate::outcome::{Denied, Granted};
use crate::primitive::mistake;

/// How often a request takes from several parts in vain before it is denied. Requests may stand in each
/// other's way, and none of them must go on for ever.
const ATTEMPTS: u32 = 4;

/// What was taken from one part.
#[derive(Clone, Copy)]
struct Taken {
    before: u64,
    after: u64,
    granted: Granted,
}

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
    /// A decision that was not made in one turn. `later` reads the clock, if there is one.
    #[cold]
    #[inline(never)]
    pub(super) fn acquire(
        self,
        n: u64,
        later: impl Fn() -> Option<Tick>,
    ) -> Result<Granted, Denied> {
        let (mut then, mut attempts) = (self, 0);
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
                    if attempts == ATTEMPTS || then.available() < n {
                        return Err(self.denied(n, self.due(n)));
                    }
                    attempts += 1;
                    match then.gather(n, &later) {
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
    fn gather(&self, n: u64, later: &impl Fn() -> Option<Tick>) -> Gathered {
        self.gather_from(self.nearest_first(), n, None, later)
    }

    /// Takes what is missing from the first of these parts and then from the others: what each frame
    /// took it puts back if the rest can't be had. Recursive, since there is nowhere to note it.
    fn gather_from(
        &self,
        mut parts: impl Iterator<Item = (u32, &'a CachePadded<Part<A>>)> + Clone,
        missing: u64,
        so_far: Option<Granted>,
        later: &impl Fn() -> Option<Tick>,
    ) -> Gathered {
        let Some((number, part)) = parts.next() else {
            return Gathered::TooFew;
        };
        let taken = self.take(part, missing);
        let granted = taken.granted.of_part(number);
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
            self.put_back(part, &taken, later);
        }
        outcome
    }

    fn take(&self, part: &Part<A>, n: u64) -> Taken {
        let view = At::new(&part.algorithm, &part.cell, self.now);
        view.change(|before| {
            let (after, granted) = part.algorithm.take_up_to(before, self.now, n);
            let taken = Taken {
                before,
                after,
                granted,
            };
            (after, taken)
        })
    }

    /// See above.
    fn put_back(&self, part: &Part<A>, taken: &Taken, later: &impl Fn() -> Option<Tick>) {
        let Taken {
            before,
            after,
            granted,
        } = *taken;
        let (mut word, mut next) = (after, before);
        while let Err(seen) = part.cell.exchange(word, next) {
            word = seen;
            if word == after || mistake!(PutsBackBlindly) {
                next = before;
                continue;
            }
            // Read after the word, so that it is no older than what others brought.
            let later = mistake!(PutsBackAtItsTick => Some(self.now), else later());
            let Some(now) = later else { return };
            let fresh = match part.algorithm.step(0, granted.at(), granted.n()) {
                Ok((_, fresh)) => fresh,
                Err(_) => return,
            };
            let certain = mistake!(PutsBackByItsMark => u64::MAX, else fresh.mark());
            let mark = certain.min(granted.mark());
            (next, _) = part.algorithm.undo(word, now, &granted.with_mark(mark));
            if next == word {
                return;
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
