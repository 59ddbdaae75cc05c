//! A model of a sharded limit by its documented rule: a word for each shard that counts fractions
//! of a permit, changed step by step.

use tollgate::algorithm::{Debt, Gauge, GiveBack, Split};

use crate::support::*;

/// The contents of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) n: u64,
    pub(super) at: Tick,
    pub(super) remaining: u64,
    /// When the limiter is idle again, and when the caller may go.
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

    /// Converts fractions to permits of `permit` fractions each.
    fn in_permits(self, permit: u64) -> Self {
        Self {
            n: self.n / permit,
            remaining: self.remaining / permit,
            ..self
        }
    }

    /// Combines two grants into one.
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

/// The origin of a grant.
#[derive(Debug)]
pub(super) enum From {
    /// A shard, its grant in fractions, and the grant in permits.
    One(usize, Granted, Said),
    Several(Said),
}

impl From {
    pub(super) fn said(&self) -> Said {
        match self {
            Self::One(_, _, said) | Self::Several(said) => *said,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Parts {
    whole: AnyAlgorithm,
    part: AnyAlgorithm,
    /// The fractions in a permit.
    permit: u64,
    words: Vec<u64>,
    /// The last word that each shard may reach before it must check the others, and the permits
    /// that it has until then.
    level: Vec<(u64, u64)>,
    /// For each shard, the fullest shard when it last checked all of them.
    fullest: Vec<usize>,
}

impl Parts {
    /// Creates fresh shards that start at this tick.
    pub(super) fn new(whole: AnyAlgorithm, of: usize, tick: Tick) -> Self {
        let (part, permit) = whole.per_shard(of as u64).expect("it splits");
        assert_eq!(permit % of as u64, 0, "{whole} in {of}");
        Self {
            whole,
            part,
            permit,
            words: vec![part.initial_word(tick); of],
            level: vec![(0, 0); of],
            fullest: vec![0; of],
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.whole.available(0, Tick::ZERO)
    }

    /// Returns the fractions that each shard has.
    fn have(&self, now: Tick) -> Vec<u64> {
        let each = self.words.iter();
        each.map(|word| self.part.available(*word, now)).collect()
    }

    pub(super) fn available(&self, now: Tick) -> u64 {
        self.have(now).iter().sum::<u64>() / self.permit
    }

    pub(super) fn is_idle(&self, now: Tick) -> bool {
        let mut each = self.words.iter();
        each.all(|word| self.part.is_idle(*word, now))
    }

    fn owes_nothing(&self, part: usize, now: Tick) -> bool {
        self.part.step(self.words[part], now, 0).is_ok()
    }

    /// Returns whether any shard is in debt.
    pub(super) fn owes(&self, now: Tick) -> bool {
        (0..self.words.len()).any(|part| !self.owes_nothing(part, now))
    }

    /// Returns the sum of the shards' counts, rounded down, rounded up, and exact.
    pub(super) fn level(&self, now: Tick) -> (u128, u128, f64) {
        let levels = self.words.iter().map(|word| self.part.level(*word, now));
        let (floor, ceil, sum) = levels.fold((0, 0, 0.0), |(floor, ceil, sum), level| {
            let rounded = [level.floor(), level.ceil()].map(u128::from);
            (floor + rounded[0], ceil + rounded[1], sum + level.as_f64())
        });
        let permit = u128::from(self.permit);
        (floor / permit, ceil.div_ceil(permit), sum / permit as f64)
    }

    /// Returns the first tick from now on at which `n` permits are available, found by binary
    /// search.
    pub(super) fn due(&self, now: Tick, n: u64) -> Option<Tick> {
        let there = |tick| match n {
            0 => (0..self.words.len()).any(|part| self.owes_nothing(part, tick)),
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
            match there(tick(middle)) {
                true => from = middle,
                false => before = middle,
            }
        }
        Some(tick(from))
    }

    /// Returns the shards in order, starting at `first`.
    fn from(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        let parts = self.words.len();
        (0..parts).map(move |i| (first + i) % parts)
    }

    /// Applies an operation to this shard's word.
    fn change<T>(&mut self, part: usize, step: impl FnOnce(&AnyAlgorithm, u64) -> (u64, T)) -> T {
        let (next, said) = step(&self.part, self.words[part]);
        self.words[part] = next;
        said
    }

    fn one(&self, part: usize, granted: Granted) -> From {
        let said = Said::of(&granted).in_permits(self.permit);
        From::One(part, granted, said)
    }

    /// Returns the origin of a grant that no limiter made: the first shard.
    pub(super) fn forged(&self, granted: &Granted) -> From {
        let n = granted.n().saturating_mul(self.permit);
        let fractions = Granted::new(n, granted.at()).with_mark(granted.mark());
        From::One(0, fractions, Said::of(granted))
    }

    /// Takes from this shard, which has enough.
    fn take_from(&mut self, part: usize, n: u64, now: Tick) -> From {
        let n = n * self.permit;
        let granted = self.change(part, |part, word| part.step(word, now, n).expect("enough"));
        self.one(part, granted)
    }

    /// Takes from shard `first` if that keeps seven eighths of its burst or leaves the shards
    /// level. Otherwise takes from the fullest shard if that leaves them level, or from several.
    pub(super) fn acquire(&mut self, first: usize, n: u64, now: Tick) -> Result<From, Denied> {
        if let Some(fractions) = n.checked_mul(self.permit) {
            let fresh = self.part.available(0, Tick::ZERO);
            let keep = match self.words.len() {
                1 => 0,
                _ => fresh - fresh / 8,
            };
            match self.part.step(self.words[first], now, fractions) {
                Ok((next, granted))
                    if granted.remaining() >= keep || self.is_level(first, next) =>
                {
                    return Ok(self.take_from(first, n, now));
                }
                _ => {}
            }
        }
        let denied = |this: &Self| match this.due(now, n) {
            Some(due) => Denied::later(n, due.saturating_since(now)),
            None => Denied::stuck(n),
        };
        if n == 0 {
            let free = self.from(first).find(|part| self.owes_nothing(*part, now));
            let free = free.ok_or_else(|| denied(self))?;
            return Ok(self.take_from(free, 0, now));
        }
        let _ = self.whole.step(0, now, n)?;
        let part = self.fullest[first];
        if let Ok((next, _)) = self.part.step(self.words[part], now, n * self.permit)
            && self.is_level(first, next)
        {
            return Ok(self.take_from(part, n, now));
        }
        let from = self.take(first, now, |there| if there < n { 0 } else { n });
        from.ok_or_else(|| denied(self))
    }

    /// Takes the wanted number of the permits that are available now, at the latest tick at which
    /// any shard counts.
    fn take(&mut self, first: usize, now: Tick, wanted: impl Fn(u64) -> u64) -> Option<From> {
        let mut then = now;
        loop {
            match wanted(self.available(now)) {
                0 => return None,
                n => {
                    self.look_at_fullest(first, then);
                    match self.take_level(first, n, then) {
                        Ok(from) => return Some(from),
                        Err(later) => then = later,
                    }
                }
            }
        }
    }

    /// Until the next check, the shard may fall a 32nd of the burst below the fullest one, if
    /// that is a permit or more and the fullest one lacks as much.
    fn look_at_fullest(&mut self, first: usize, now: Tick) {
        let full = self.part.available(0, Tick::ZERO);
        let slack = full / 32;
        if slack < self.permit || self.words.len() == 1 || !self.part.is_ordered() {
            return;
        }
        let fullest = self.fullest(first, now);
        let word = self.words[fullest];
        if self.part.available(word, now) > full - slack {
            return;
        }
        let (floor, _) = self.part.take_up_to(word, now, slack);
        let after = |n| self.part.take_up_to(0, Tick::ZERO, n).0;
        let words = after(slack + 1) - after(1);
        self.level[first] = (floor, words);
        self.fullest[first] = fullest;
    }

    fn is_level(&self, first: usize, word: u64) -> bool {
        let (floor, words) = self.level[first];
        floor.wrapping_sub(word) < words
    }

    /// Returns the fullest shard, or the nearest one of several.
    fn fullest(&self, first: usize, now: Tick) -> usize {
        let have = self.have(now);
        let most = have.iter().max();
        let fullest = self.from(first).find(|part| Some(&have[*part]) == most);
        fullest.expect("a part")
    }

    /// Takes from shard `first` or from the fullest one if that shard then has about the mean.
    /// Otherwise takes from all shards above a common level, shard `first` first.
    fn take_level(&mut self, first: usize, n: u64, now: Tick) -> Result<From, Tick> {
        let (have, of) = (self.have(now), self.words.len() as u64);
        let wanted = n * self.permit;
        let full = self.part.available(0, Tick::ZERO);
        let empties = !self.part.is_steady() && wanted / of <= full / 4;
        // If periods begin with a permit, a request that finds all shards full begins all periods.
        let is_full = have.iter().all(|have| *have == full);
        let begins = is_full && self.part.begins_with_a_permit() && !empties;
        let uneven = match full < wanted.saturating_mul(4) {
            _ if begins => 0,
            true => (self.permit / n).saturating_sub(4 * (self.permit / of)),
            false => self.permit / n + full / 64,
        };
        let mean = (have.iter().sum::<u64>() - wanted) / of;
        let stays = |part: usize| have[part] >= wanted && have[part] - wanted + uneven >= mean;
        for part in [first, self.fullest(first, now)] {
            if stays(part) {
                return Ok(self.take_from(part, n, now));
            }
        }
        // The highest level to which they can be lowered.
        let above = |level: u64| {
            let each = have.iter().map(|have| have.saturating_sub(level));
            each.sum::<u64>() >= wanted
        };
        let (mut level, mut too_high) = (0, u64::MAX);
        while too_high - level > 1 {
            let middle = level + (too_high - level) / 2;
            match above(middle) {
                true => level = middle,
                false => too_high = middle,
            }
        }
        let is_scarce = empties || have.iter().sum::<u64>() / of <= full / 8;
        let leave = if is_scarce {
            0
        } else {
            level.saturating_sub(uneven)
        };
        // All shards count at one tick.
        let (mut ticks, mut left) = (Vec::new(), wanted);
        for (part, have) in have.iter().enumerate() {
            let n = have.saturating_sub(leave).min(left);
            if n > 0 {
                ticks.push(self.part.take_up_to(self.words[part], now, n).1.at());
            }
            left -= n;
        }
        if ticks.iter().min() < ticks.iter().max() {
            return Err(*ticks.iter().max().expect("some"));
        }
        left = wanted;
        let mut sum: Option<From> = None;
        for (part, have) in have.iter().enumerate() {
            let n = have.saturating_sub(leave).min(left);
            if n == 0 {
                continue;
            }
            let granted = self.change(part, |part, word| part.take_up_to(word, now, n));
            let said = Said::of(&granted);
            sum = Some(match sum {
                None => From::One(part, granted, said),
                Some(sum) => From::Several(sum.said().and(said)),
            });
            left -= n;
        }
        assert_eq!(left, 0, "there were enough");
        Ok(match sum.expect("some") {
            From::One(part, granted, _) => self.one(part, granted),
            From::Several(said) => From::Several(said.in_permits(self.permit)),
        })
    }

    /// Takes as many as are available.
    pub(super) fn take_up_to(&mut self, first: usize, n: u64, now: Tick) -> From {
        let from = self.take(first, now, |there| there.min(n));
        from.unwrap_or_else(|| {
            let none = |part: &AnyAlgorithm, word| part.take_up_to(word, now, 0);
            let none = self.change(first, none);
            self.one(first, none)
        })
    }

    /// Takes the available permits, and the rest as equal debts. Returns how many were charged,
    /// when they count, and the debt of all shards then.
    pub(super) fn charge(&mut self, first: usize, n: u64, now: Tick) -> (u64, Tick, u64) {
        let taken = self.take_up_to(first, n, now).said();
        let (owed, of) = (n - taken.n, self.words.len() as u64);
        let share = owed.saturating_mul(self.permit / of);
        let (mut charged, mut debt, mut at) = (0_u128, 0_u128, taken.at);
        for part in 0..self.words.len() {
            let one = self.change(part, |part, word| part.charge(word, now, share));
            charged += u128::from(one.n());
            debt += u128::from(one.debt());
            if one.n() > 0 {
                at = at.max(one.at());
            }
        }
        let permit = u128::from(self.permit);
        let charged = (charged / permit).min(owed.into()) as u64;
        (taken.n + charged, at, debt.div_ceil(permit) as u64)
    }

    /// Returns permits to the shard of their origin. If that shard cannot take them all because
    /// other permits came back to it, the rest goes to all shards evenly. A grant from several
    /// shards returns as many as one word would, to all evenly.
    pub(super) fn undo(&mut self, from: &From, now: Tick) -> u64 {
        match from {
            From::One(part, granted, _) => {
                let back = self.change(*part, |part, word| part.undo(word, now, granted));
                if self.words.len() == 1 {
                    return back.div_ceil(self.permit);
                }
                let (_, none) = self.part.take_up_to(self.words[*part], now, 0);
                let latest = now.max(none.at());
                let (_, all) = self.part.undo(granted.mark(), latest, granted);
                let others = self.refund_fractions(all.saturating_sub(back).into(), now);
                (u128::from(back) + others).div_ceil(self.permit.into()) as u64
            }
            From::Several(said) => {
                let (word, alone) = self.whole.step(0, said.at, said.n).expect("it is fresh");
                let counted = |word: &u64| self.part.take_up_to(*word, now, 0).1.at();
                let latest = self.words.iter().map(counted).fold(now, Tick::max);
                let (_, back) = self.whole.undo(word, latest, &alone);
                self.refund(back, now)
            }
        }
    }

    pub(super) fn refund(&mut self, n: u64, now: Tick) -> u64 {
        let permit = u128::from(self.permit);
        let back = self.refund_fractions(u128::from(n) * permit, now);
        back.div_ceil(permit) as u64
    }

    /// Returns fractions to all shards that are not full, evenly and in rounds. The remainder goes
    /// to the last.
    fn refund_fractions(&mut self, all: u128, now: Tick) -> u128 {
        let mut open: Vec<usize> = (0..self.words.len()).collect();
        let mut left = all;
        while left > 0 && !open.is_empty() {
            let mut turns = open.len() as u128;
            open.retain(|part| {
                let share = left.div_ceil(turns).try_into().unwrap_or(u64::MAX);
                let back = self.change(*part, |part, word| part.refund(word, now, share));
                (left, turns) = (left - u128::from(back), turns - 1);
                back == share
            });
        }
        all - left
    }

    pub(super) fn reset(&mut self) {
        self.words.fill(0);
    }
}
