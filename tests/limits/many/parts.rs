//! A limit in parts by its documented rule: a word for each part, and one step after the other on them.

use std::fmt::Debug;

use tollgate::{Debt, Denied, Gauge, Granted, Requota, Split, Tick};

/// What the algorithms of these tests can do.
pub(crate) trait Every: Split + Debt + Gauge + Requota + Copy + Debug {}
impl<A: Split + Debt + Gauge + Requota + Copy + Debug> Every for A {}

/// What a grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) n: u64,
    pub(crate) at: Tick,
    pub(crate) remaining: u64,
    /// When the limiter is as good as new, and when the caller may go.
    pub(crate) reset: Tick,
    pub(crate) ready: Tick,
}

impl Said {
    pub(crate) fn of(granted: &Granted) -> Self {
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
pub(crate) enum From {
    One(usize, Granted),
    Several(Said),
}

impl From {
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::One(_, granted) => Said::of(granted),
            Self::Several(said) => *said,
        }
    }
}

/// What a charge says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) n: u64,
    pub(crate) at: Tick,
    pub(crate) debt: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Parts<A> {
    whole: A,
    parts: Vec<(A, u64)>,
}

impl<A: Every> Parts<A> {
    /// Fresh ones that start at this tick.
    pub(crate) fn new(whole: A, of: u64, tick: Tick) -> Self {
        let part = |index| {
            let part = whole.part(index, of).expect("a part");
            (part, part.initial_word(tick))
        };
        Self {
            whole,
            parts: (0..of).map(part).collect(),
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.parts
            .iter()
            .map(|(part, _)| part.available(0, Tick::ZERO))
            .sum()
    }

    /// The parts from home on.
    fn from(&self, home: usize) -> impl Iterator<Item = usize> + use<A> {
        let parts = self.parts.len();
        (0..parts).map(move |i| (home + i) % parts)
    }

    fn in_part(&self, part: usize, now: Tick) -> u64 {
        let (algorithm, word) = &self.parts[part];
        algorithm.available(*word, now)
    }

    pub(crate) fn available(&self, now: Tick) -> u64 {
        (0..self.parts.len())
            .map(|part| self.in_part(part, now))
            .sum()
    }

    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        self.parts
            .iter()
            .all(|(part, word)| part.is_idle(*word, now))
    }

    /// The sums of what the parts have counted, rounded down, up, and not.
    pub(crate) fn level(&self, now: Tick) -> (u64, u64, f64) {
        let levels = self.parts.iter().map(|(part, word)| part.level(*word, now));
        levels.fold((0, 0, 0.0), |(floor, ceil, sum), level| {
            (
                floor + level.floor(),
                ceil + level.ceil(),
                sum + level.as_f64(),
            )
        })
    }

    /// The first tick from now on at which there are `n`, looked for tick by tick in halves.
    pub(crate) fn due(&self, now: Tick, n: u64) -> Option<Tick> {
        let there = |tick| match n {
            0 => self
                .parts
                .iter()
                .any(|(part, word)| part.step(*word, tick, 0).is_ok()),
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

    /// The own part; then the one that has most, the first of several; then several together.
    pub(crate) fn acquire(&mut self, home: usize, n: u64, now: Tick) -> Result<From, Denied> {
        let _ = self.whole.step(0, now, n)?;
        // What several parts take is counted at one tick: the latest that any of them has seen.
        let mut then = now;
        loop {
            let has = |part: &usize| {
                let (algorithm, word) = &self.parts[*part];
                algorithm.step(*word, then, n).is_ok()
            };
            let most = |best: usize, part| match self.in_part(part, then) > self.in_part(best, then)
            {
                true => part,
                false => best,
            };
            let one = match has(&home) {
                true => Some(home),
                false => self.from(home).filter(has).reduce(most),
            };
            if let Some(part) = one {
                let (algorithm, word) = &mut self.parts[part];
                let (next, granted) = algorithm.step(*word, then, n)?;
                *word = next;
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

    /// As many as there are from each part in turn, all at one tick; or the tick at which one of them counts.
    fn gather(&mut self, home: usize, n: u64, now: Tick) -> Result<Said, Tick> {
        let mut words = self.parts.clone();
        let (mut sum, mut left): (Option<Said>, _) = (None, n);
        for part in self.from(home) {
            let (algorithm, word) = &mut words[part];
            let (next, granted) = algorithm.take_up_to(*word, now, left);
            if granted.n() == 0 {
                continue;
            }
            *word = next;
            left -= granted.n();
            let said = Said::of(&granted);
            sum = match sum {
                Some(sum) if sum.at != said.at => return Err(sum.at.max(said.at)),
                sum => Some(sum.map_or(said, |sum| sum.and(said))),
            };
            if left == 0 {
                break;
            }
        }
        self.parts = words;
        Ok(sum.expect("there were enough"))
    }

    /// From each part in turn, the own one first, what counts at the tick at which the first of them does.
    pub(crate) fn take_up_to(&mut self, home: usize, n: u64, now: Tick) -> From {
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
    fn poverty(&self, part: usize, now: Tick) -> (Tick, std::cmp::Reverse<u64>) {
        let (algorithm, word) = &self.parts[part];
        let due = algorithm.due(*word, now, 1).unwrap_or(Tick::MAX);
        (due, std::cmp::Reverse(algorithm.available(*word, now)))
    }

    /// What there is, and the rest as equal debts, what is left over to the richest, permit by permit. What is
    /// owed then is what all parts owe.
    pub(crate) fn charge(&mut self, home: usize, n: u64, now: Tick) -> Charge {
        let taken = self.take_up_to(home, n, now).said();
        let mut charge = Charge {
            n: taken.n,
            at: taken.at,
            debt: 0,
        };
        let (owed, of) = (n - taken.n, self.parts.len() as u64);
        let mut shares = vec![owed / of; self.parts.len()];
        for turn in 0..of + owed % of {
            let part = match usize::try_from(turn).expect("few") {
                part if part < shares.len() => part,
                _ => (0..shares.len())
                    .min_by_key(|part| self.poverty(*part, now))
                    .expect("a part"),
            };
            let share = std::mem::replace(&mut shares[part], 1);
            let (algorithm, word) = &mut self.parts[part];
            let (next, charged) = algorithm.charge(*word, now, share);
            *word = next;
            charge.n += charged.n();
            if charged.n() > 0 {
                charge.at = charge.at.max(charged.at());
            }
        }
        for (algorithm, word) in &self.parts {
            let (_, charged) = algorithm.charge(*word, now, 0);
            charge.debt = charge.debt.saturating_add(charged.debt());
        }
        charge
    }

    /// To the part it came from. Of several, as many as would come back to one word, to all alike.
    pub(crate) fn undo(&mut self, from: &From, now: Tick) -> u64 {
        match from {
            From::One(part, granted) => {
                let (algorithm, word) = &mut self.parts[*part];
                let (next, back) = algorithm.undo(*word, now, granted);
                *word = next;
                back
            }
            From::Several(said) => {
                let (word, alone) = self.whole.step(0, said.at, said.n).expect("it is fresh");
                let (_, back) = self.whole.undo(word, now, &alone);
                self.refund(back, now)
            }
        }
    }

    /// Whether any part owes.
    pub(crate) fn owes(&self, now: Tick) -> bool {
        let free = |(part, word): &(A, u64)| part.step(*word, now, 0).is_ok();
        !self.parts.iter().all(free)
    }

    /// To all alike, and what is left over to the poorest, permit by permit.
    pub(crate) fn refund(&mut self, n: u64, now: Tick) -> u64 {
        let (mut left, of) = (n, self.parts.len() as u64);
        loop {
            let (before, each) = (left, left / of);
            for part in 0..self.parts.len() {
                left -= self.refund_to(part, each, now);
            }
            if each == 0 || left == before {
                break;
            }
        }
        for _ in 0..of.min(if left < of { of } else { 0 }) {
            let poorest = (0..self.parts.len()).max_by_key(|part| self.poverty(*part, now));
            left -= self.refund_to(poorest.expect("a part"), 1.min(left), now);
        }
        n - left
    }

    fn refund_to(&mut self, part: usize, n: u64, now: Tick) -> u64 {
        let (algorithm, word) = &mut self.parts[part];
        let (next, back) = algorithm.refund(*word, now, n);
        *word = next;
        back
    }

    pub(crate) fn reset(&mut self) {
        self.parts.iter_mut().for_each(|(_, word)| *word = 0);
    }
}
