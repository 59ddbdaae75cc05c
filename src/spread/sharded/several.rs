//! What happens where the own part is not enough. Nothing here is written down anywhere but in the
//! parts' words: a thread that stops in the middle leaves its permits taken, and stops nobody.

use core::time::Duration;

use super::at::ShardedAt;
use super::part::Part;
use crate::algorithm::Split;
use crate::cell::Place;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// How often a request takes from several parts in vain before it is denied. Requests may stand in
/// each other's way, and none of them must go on for ever.
const ATTEMPTS: u32 = 4;

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
    pub(super) fn acquire(self, n: u64) -> Result<Granted, Denied> {
        match n {
            0 => self.acquire_of_one(0),
            1 => self.acquire_of_one(1),
            n => self.acquire_of_several(n),
        }
    }

    /// What one part has or none. A denial is short: it looks at each part once.
    #[inline(always)]
    fn acquire_of_one(self, n: u64) -> Result<Granted, Denied> {
        loop {
            let dues = self.parts.iter().filter_map(|part| {
                let word = part.cell().load();
                part.algorithm().due(word, self.now, n)
            });
            match dues.min() {
                None => return Err(Denied::stuck(n)),
                Some(due) if due > self.now => {
                    return Err(Denied::later(n, due.saturating_since(self.now)));
                }
                Some(_) => {}
            }
            // Whoever fails here lost the permits to somebody, who goes on.
            if let Some(granted) = self.take_from_one(n) {
                return Ok(granted);
            }
        }
    }

    fn acquire_of_several(self, n: u64) -> Result<Granted, Denied> {
        // More than there can be at once.
        let _ = self.whole.step(0, self.now, n)?;
        let (mut then, mut left) = (self, ATTEMPTS);
        loop {
            if let Some(granted) = then.take_from_one(n) {
                return Ok(granted);
            }
            // What no part has now, all together may have.
            if left == 0 || then.available() < n {
                return Err(self.denied(n, self.due(n)));
            }
            match then.gather(n) {
                Gathered::All(granted) => return Ok(granted),
                // Later each time, until it is that of the part that is ahead of all.
                Gathered::From(tick) => then.now = tick,
                Gathered::TooFew => left -= 1,
            }
        }
    }

    /// Takes `n` from a part that has as many: the own one, or of those that do the one that has
    /// most; of several the first from home on. `None` if none does, or somebody else was faster.
    #[inline(never)]
    fn take_from_one(&self, n: u64) -> Option<Granted> {
        let (mut most, mut there, mut distance) = (None, 0, 0);
        while let Some((number, part)) = self.neighbour(distance) {
            let word = part.cell().load();
            let due = part.algorithm().due(word, self.now, n);
            if due.is_some_and(|due| due <= self.now) {
                let available = part.algorithm().available(word, self.now);
                if most.is_none() || available > there {
                    (most, there) = (Some((number, part)), available);
                }
                if distance == 0 {
                    break;
                }
            }
            distance += 1;
        }
        let (number, part) = most?;
        Some(part.at(self.now).try_acquire_n(n).ok()?.of_part(number))
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
        let due = |part: &Part<A>, n| part.algorithm().due(part.cell().load(), self.now, n);
        if n <= 1 {
            return self.parts.iter().filter_map(|part| due(part, n)).min();
        }
        let there = |tick| {
            let each = self.parts.iter();
            let each = each.map(|part| part.algorithm().available(part.cell().load(), tick));
            each.fold(0, u64::saturating_add) >= n
        };
        if there(self.now) {
            return Some(self.now);
        }
        // At the latest when each has its share, unless one of them never will.
        let fresh = |part: &Part<A>| part.algorithm().available(0, self.now);
        let all: u128 = self.parts.iter().map(|part| u128::from(fresh(part))).sum();
        let share = |part: &Part<A>| {
            let share = (u128::from(n) * u128::from(fresh(part))).div_ceil(all.max(1));
            due(part, u64::try_from(share).unwrap_or(n))
        };
        let shares = self.parts.iter().try_fold(self.now, |latest, part| {
            share(part).map(|due| due.max(latest))
        });
        let latest = shares.unwrap_or(Tick::MAX);
        if !there(latest) {
            // Others have taken since the shares were looked at: that is when all were to be there.
            return shares;
        }
        let (mut before, mut from) = (self.now.as_nanos(), latest.as_nanos());
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
    fn gather(&self, n: u64) -> Gathered {
        self.gather_from(0, n, None)
    }

    /// Takes what is missing from the part so far from home and then from those after it: what each
    /// frame took it puts back if the rest can't be had. Recursive, since there is nowhere to note
    /// it.
    fn gather_from(&self, distance: usize, missing: u64, so_far: Option<Granted>) -> Gathered {
        let Some((number, part)) = self.neighbour(distance) else {
            return Gathered::TooFew;
        };
        let taken = part.take(self.now, missing);
        let granted = taken.granted.of_part(number);
        if granted.n() == 0 {
            return self.gather_from(distance + 1, missing, so_far);
        }
        let outcome = match so_far {
            Some(so_far) if so_far.at() != granted.at() => {
                Gathered::From(so_far.at().max(granted.at()))
            }
            so_far => {
                let sum = so_far.map_or(granted, |so_far| so_far.and(granted));
                match missing - granted.n() {
                    0 => Gathered::All(sum),
                    missing => self.gather_from(distance + 1, missing, Some(sum)),
                }
            }
        };
        if !matches!(outcome, Gathered::All(_)) {
            part.put_back(&taken);
        }
        outcome
    }
}
