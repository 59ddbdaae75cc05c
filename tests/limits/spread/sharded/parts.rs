//! A limit in parts by its documented rule: a word for each part, and one step after the other on
//! them.

use std::cmp::Reverse;

use tollgate::{
    Algorithm, AnyAlgorithm, Debt, Denied, Forecast, Gauge, GiveBack, Granted, Split, Tick,
};

/// What a grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) n: u64,
    pub(super) at: Tick,
    pub(super) remaining: u64,
    /// When the limiter is as good as new, and when the caller may go.
    pub(super) reset: Tick,
    pub(super) ready: Tick,
}

impl Said {
    pub(super) fn of(granted: &Granted) -> Self {
        let at = granted.at();
        Self {
            n: granted.n(),
            at,
            remaining: granted.remaining(),
            reset: at.saturating_add(granted.reset_after()),
            ready: at.saturating_add(granted.delay()),
        }
    }

    /// One grant of both.
    fn and(self, other: Self) -> Self {
        Self {
            n: self.n + other.n,
            at: self.at.max(other.at),
            remaining: self.remaining + other.remaining,
            reset: self.reset.max(other.reset),
            ready: self.ready.max(other.ready),
        }
    }
}

/// Where a grant came from.
#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    One(usize, Granted),
    Several(Said),
}

impl From {
    pub(super) fn said(&self) -> Said {
        match self {
            Self::One(_, granted) => Said::of(granted),
            Self::Several(said) => *said,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Parts {
    whole: AnyAlgorithm,
    parts: Vec<(AnyAlgorithm, u64)>,
}

impl Parts {
    /// Fresh ones that start at this tick.
    pub(super) fn new(whole: AnyAlgorithm, of: usize, tick: Tick) -> Self {
        let part = |index| {
            let part = whole.part(index, of as u64).expect("a part");
            (part, part.initial_word(tick))
        };
        Self {
            whole,
            parts: (0..of as u64).map(part).collect(),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        let each = self.parts.iter();
        each.map(|(part, _)| part.available(0, Tick::ZERO)).sum()
    }

    pub(super) fn available(&self, now: Tick) -> u64 {
        let each = self.parts.iter();
        each.map(|(part, word)| part.available(*word, now)).sum()
    }

    pub(super) fn is_idle(&self, now: Tick) -> bool {
        let mut each = self.parts.iter();
        each.all(|(part, word)| part.is_idle(*word, now))
    }

    /// Whether any part owes.
    pub(super) fn owes(&self, now: Tick) -> bool {
        let mut each = self.parts.iter();
        each.any(|(part, word)| part.step(*word, now, 0).is_err())
    }

    /// The sums of what the parts have counted, rounded down, up, and not.
    pub(super) fn level(&self, now: Tick) -> (u64, u64, f64) {
        let levels = self.parts.iter().map(|(part, word)| part.level(*word, now));
        levels.fold((0, 0, 0.0), |(floor, ceil, sum), level| {
            let rounded = (floor + level.floor(), ceil + level.ceil());
            (rounded.0, rounded.1, sum + level.as_f64())
        })
    }

    /// The first tick from now on at which there are `n`, looked for tick by tick in halves.
    pub(super) fn due(&self, now: Tick, n: u64) -> Option<Tick> {
        let is_free = |tick| {
            let mut each = self.parts.iter();
            each.any(|(part, word)| part.step(*word, tick, 0).is_ok())
        };
        let there = |tick| match n {
            0 => is_free(tick),
            _ => self.available(tick) >= n,
        };
        if there(now) {
            return Some(now);
        }
        let (mut before, mut from) = (now.as_nanos(), u64::MAX);
        if !there(Tick::MAX) {
            return None;
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

    /// The parts from home on.
    fn from(&self, home: usize) -> impl Iterator<Item = usize> + use<> {
        let parts = self.parts.len();
        (0..parts).map(move |i| (home + i) % parts)
    }

    /// Makes a step of this part's word.
    fn change<T>(&mut self, part: usize, step: impl FnOnce(&AnyAlgorithm, u64) -> (u64, T)) -> T {
        let (algorithm, word) = &mut self.parts[part];
        let (next, said) = step(algorithm, *word);
        *word = next;
        said
    }

    /// The own part; then the one that has most, the first of several; then several together, which
    /// are counted at one tick: the latest that any of them has seen.
    pub(super) fn acquire(&mut self, home: usize, n: u64, now: Tick) -> Result<From, Denied> {
        let _ = self.whole.step(0, now, n)?;
        let mut then = now;
        loop {
            let step = |part: usize| {
                let (algorithm, word) = &self.parts[part];
                Some((
                    algorithm.available(*word, then),
                    part,
                    algorithm.step(*word, then, n).ok()?,
                ))
            };
            let most = self.from(home).filter_map(step).reduce(|best, next| {
                let is_better = best.1 != home && next.0 > best.0;
                if is_better { next } else { best }
            });
            if let Some((_, part, (next, granted))) = most {
                self.parts[part].1 = next;
                return Ok(From::One(part, granted));
            }
            if n <= 1 || self.available(then) < n {
                return Err(match self.due(now, n) {
                    Some(due) => Denied::later(n, due.saturating_since(now)),
                    None => Denied::stuck(n),
                });
            }
            match self.gather(home, n, then) {
                Ok(said) => return Ok(From::Several(said)),
                Err(later) => then = later,
            }
        }
    }

    /// As many as there are from each part in turn, all at one tick; or the tick at which one of
    /// them counts.
    fn gather(&mut self, home: usize, n: u64, now: Tick) -> Result<Said, Tick> {
        let before = self.parts.clone();
        let mut sum: Option<Said> = None;
        for part in self.from(home) {
            let left = n - sum.map_or(0, |sum| sum.n);
            let granted = self.change(part, |part, word| part.take_up_to(word, now, left));
            if granted.n() == 0 {
                continue;
            }
            let said = Said::of(&granted);
            sum = match sum {
                Some(sum) if sum.at != said.at => {
                    self.parts = before;
                    return Err(sum.at.max(said.at));
                }
                sum => Some(sum.map_or(said, |sum| sum.and(said))),
            };
            if left == said.n {
                break;
            }
        }
        Ok(sum.expect("there were enough"))
    }

    /// From each part in turn, the own one first, what counts at the tick at which the first of
    /// them does.
    pub(super) fn take_up_to(&mut self, home: usize, n: u64, now: Tick) -> From {
        let (mut from, mut left): (Option<From>, _) = (None, n);
        for part in self.from(home) {
            let (algorithm, word) = &mut self.parts[part];
            let (next, granted) = algorithm.take_up_to(*word, now, left);
            let said = Said::of(&granted);
            let so_far = from.map(|from| from.said());
            from = match so_far {
                None => Some(From::One(part, granted)),
                Some(_) if said.n == 0 => from,
                Some(so_far) if so_far.n == 0 => Some(From::One(part, granted)),
                Some(so_far) if so_far.at != said.at => continue,
                Some(so_far) => Some(From::Several(so_far.and(said))),
            };
            *word = next;
            left -= said.n;
            if left == 0 {
                break;
            }
        }
        from.expect("a part")
    }

    /// When each part has a permit, and how many it has, so that the last one is the poorest.
    fn poverty(&self, part: usize, now: Tick) -> (Tick, Reverse<u64>) {
        let (algorithm, word) = &self.parts[part];
        let due = algorithm.due(*word, now, 1).unwrap_or(Tick::MAX);
        (due, Reverse(algorithm.available(*word, now)))
    }

    /// What there is, and the rest as equal debts, what is left over to the richest, permit by
    /// permit. How many were charged, when they count, and what all parts owe then.
    pub(super) fn charge(&mut self, home: usize, n: u64, now: Tick) -> (u64, Tick, u64) {
        let taken = self.take_up_to(home, n, now).said();
        let (mut charged, mut at) = (taken.n, taken.at);
        let (owed, of) = (n - taken.n, self.parts.len());
        let each = owed / of as u64;
        for turn in 0..of + (owed % of as u64) as usize {
            let richest = (0..of).min_by_key(|part| self.poverty(*part, now));
            let (part, share) = match turn < of {
                true => (turn, each),
                false => (richest.expect("a part"), 1),
            };
            let one = self.change(part, |part, word| part.charge(word, now, share));
            charged += one.n();
            if one.n() > 0 {
                at = at.max(one.at());
            }
        }
        let each = self.parts.iter();
        let debts = each.map(|(part, word)| part.charge(*word, now, 0).1.debt());
        (charged, at, debts.fold(0, u64::saturating_add))
    }

    /// To the part it came from. Of several, as many as would come back to one word, to all alike.
    pub(super) fn undo(&mut self, from: &From, now: Tick) -> u64 {
        match from {
            From::One(part, granted) => {
                self.change(*part, |part, word| part.undo(word, now, granted))
            }
            From::Several(said) => {
                let (word, alone) = self.whole.step(0, said.at, said.n).expect("it is fresh");
                let (_, back) = self.whole.undo(word, now, &alone);
                self.refund(back, now)
            }
        }
    }

    /// Permit by permit: to all in turn while there is one for each of them, then to the poorest;
    /// to none that is full.
    pub(super) fn refund(&mut self, n: u64, now: Tick) -> u64 {
        let mut open: Vec<usize> = (0..self.parts.len()).collect();
        let mut left = n;
        let refund =
            |this: &mut Self, part, n| this.change(part, |part, word| part.refund(word, now, n));
        while left > 0 && !open.is_empty() {
            let each = left / open.len() as u64;
            if each > 0 {
                open.retain(|part| {
                    let came = refund(self, *part, each);
                    left -= came;
                    came == each
                });
                continue;
            }
            let poorest = open.iter().max_by_key(|part| self.poverty(**part, now));
            let poorest = *poorest.expect("a part");
            match refund(self, poorest, 1) {
                0 => open.retain(|part| *part != poorest),
                _ => left -= 1,
            }
        }
        n - left
    }

    pub(super) fn reset(&mut self) {
        self.parts.iter_mut().for_each(|(_, word)| *word = 0);
    }
}
