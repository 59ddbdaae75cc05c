use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::hint::Hint;
use super::shard::MAX_SHARDS;
use super::shard::Shard;
use crate::algorithm::{Debt, Gauge, Level, Split};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted, SEVERAL, Settled};

/// The set of shards that are full.
#[derive(Default, Clone, Copy)]
struct Full([u64; MAX_SHARDS / 64]);

impl Full {
    fn has(&self, shard: usize) -> bool {
        let bits = self.0.get(shard / 64);
        bits.is_some_and(|bits| bits >> (shard % 64) & 1 == 1)
    }

    fn add(&mut self, shard: usize) {
        if let Some(bits) = self.0.get_mut(shard / 64) {
            *bits |= 1 << (shard % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }
}

/// A view of a [`Sharded`](crate::Sharded) limiter at one tick. Its requests use one shard first:
/// by default, that of the thread that created the view.
pub struct ShardedView<'a, A> {
    pub(super) shards: &'a [CachePadded<Shard<A>>],
    pub(super) hint: &'a Hint,
    pub(super) whole: &'a A,
    pub(super) first: usize,
    pub(super) now: Tick,
}

impl<'a, A: Split> ShardedView<'a, A> {
    /// Returns the tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// Returns the same view with another first shard. Shards are numbered from 0; a larger number
    /// wraps around.
    ///
    /// Use it if you know better which shard each thread should use, for example with one thread
    /// for each core.
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate::{Quota, Sharded, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(100))?;
    /// let limiter = Sharded::starting_at(bucket, 2, NoClock, Tick::ZERO)?;
    /// let granted = limiter.at(Tick::ZERO).from_shard(1).try_acquire_n(2)?;
    /// assert_eq!(granted.remaining(), 48); // in this shard
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    #[must_use]
    pub fn from_shard(self, shard: usize) -> Self {
        let first = shard.checked_rem(self.shards.len()).unwrap_or(0);
        Self { first, ..self }
    }

    /// Returns the shard at this distance from the first one, with its number. Distances wrap
    /// around at the last shard. Returns `None` if the distance is the number of shards or more.
    #[inline(always)]
    pub(super) fn neighbor(&self, distance: usize) -> Option<(u32, &'a CachePadded<Shard<A>>)> {
        let (shards, place) = (self.shards.len(), self.first + distance);
        if distance >= shards {
            return None;
        }
        let place = if place < shards {
            place
        } else {
            place - shards
        };
        Some((place as u32, self.shards.get(place)?))
    }

    /// Returns all shards with their numbers, beginning with the first one.
    pub(super) fn nearest_first(
        self,
    ) -> impl Iterator<Item = (u32, &'a CachePadded<Shard<A>>)> + Clone {
        (0..).map_while(move |distance| self.neighbor(distance))
    }

    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no shard has a permit.
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits or none at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the shards have fewer than `n` permits together.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        match self.hint.decide(n, self.now, || self.try_once(n)) {
            Some(outcome) => outcome,
            None => self.acquire(n),
        }
    }

    /// Takes `n` permits from the view's first shard in a single attempt. `None` means that nothing
    /// was taken; use the slow path.
    #[inline(always)]
    pub(super) fn try_once(&self, n: u64) -> Option<Granted> {
        let granted = self.shards.get(self.first)?.try_once(self.now, n)?;
        Some(granted.with_source(self.first as u32))
    }

    /// Returns how many fractions make one permit.
    #[inline]
    pub(super) fn permit(&self) -> u64 {
        self.shards.first().map_or(1, |shard| shard.permit())
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    pub fn check_n(&self, n: u64) -> Result<(), Denied> {
        let fractions = n.saturating_mul(self.permit());
        let own = self.shards.get(self.first);
        if n > 0 && own.is_some_and(|own| own.at(self.now).check_n(fractions).is_ok()) {
            return Ok(());
        }
        // Denies requests for more than the limiter can ever have.
        let _ = self.whole.step(0, self.now, n)?;
        match self.due(n) {
            Some(due) if due <= self.now => Ok(()),
            Some(due) => Err(Denied::later(n, due.saturating_since(self.now))),
            None => Err(Denied::stuck(n)),
        }
    }

    /// Takes up to `n` permits at this tick.
    #[must_use = "the grant says how many permits were taken"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.take_some(n).unwrap_or_else(|| self.take_of_own(n))
    }

    /// Takes up to `n` permits from the view's first shard.
    fn take_of_own(&self, n: u64) -> Granted {
        let Some(shard) = self.shards.get(self.first) else {
            return Granted::new(0, self.now);
        };
        let (permit, algorithm) = (self.permit(), shard.algorithm());
        shard.change(self.now, |word| {
            let n = n.min(algorithm.available(word, self.now) / permit.max(1));
            let (next, granted) = algorithm.take_up_to(word, self.now, n * permit);
            let granted = granted.of_permits(n, permit);
            (next, granted.with_source(self.first as u32))
        })
    }

    /// Returns how many permits are available at this tick.
    pub fn available(&self) -> u64 {
        let each = self
            .shards
            .iter()
            .map(|shard| shard.at(self.now).available());
        each.fold(0, u64::saturating_add) / self.permit().max(1)
    }

    /// Returns whether the limiter behaves like a new one at this tick.
    pub fn is_idle(&self) -> bool {
        self.shards.iter().all(|shard| shard.at(self.now).is_idle())
    }

    /// Resets the limiter.
    pub fn reset(&self) {
        self.lowering(|| self.shards.iter().for_each(|shard| shard.reset()));
    }

    /// Runs `lower`, which lowers words and so adds permits, and then discards what the hint knows.
    pub(super) fn lowering<T>(&self, lower: impl FnOnce() -> T) -> T {
        let done = lower();
        self.hint.raise();
        done
    }

    /// Returns how long it takes until `n` permits are available.
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        Some(self.due(n)?.saturating_since(self.now))
    }

    /// Gives back a grant at this tick.
    pub fn undo(&self, granted: Granted) -> u64 {
        self.lowering(|| self.give_back_grant(granted))
    }

    /// Shards have no reservations, so this is [`undo`](Self::undo).
    pub(crate) fn roll_back(&self, granted: Granted) -> u64 {
        self.undo(granted)
    }

    fn give_back_grant(&self, granted: Granted) -> u64 {
        let own = match granted.source() {
            SEVERAL => None,
            number => self.shards.get(number as usize),
        };
        match own {
            Some(shard) => {
                let n = granted.n().saturating_mul(self.permit());
                let fractions = granted.with_n(n);
                let undo = |algorithm: &A, word| algorithm.undo(word, self.now, &fractions);
                let back = shard.give_back(undo);
                // A single shard knows what it can take back: a queue, which can't be split, gives
                // nothing back while a caller waits behind the grant.
                if back == fractions.n() || self.shards.len() == 1 {
                    return back.div_ceil(self.permit());
                }
                // The shard has no room for the rest, because other permits were returned to it.
                // Give the rest to all shards, but not the part that time has already refilled at
                // the latest tick that this shard has seen.
                let now = self.now.max(shard.at(self.now).take_up_to(0).at());
                let (_, all) = shard.algorithm().undo(fractions.mark(), now, &fractions);
                let others = self.give_back_to_all(all.saturating_sub(back).into());
                self.in_permits(u128::from(back) + others)
            }
            None => {
                // Several shards granted it. Give back as many permits as a single word would take
                // back if this were its only grant, at the latest tick that any shard has seen.
                let ticks = self
                    .shards
                    .iter()
                    .map(|shard| shard.at(self.now).take_up_to(0).at());
                let now = ticks.fold(self.now, Tick::max);
                let alone = self.whole.step(0, granted.at(), granted.n());
                let n = alone.map_or(0, |(word, alone)| self.whole.undo(word, now, &alone).1);
                self.give_back(n)
            }
        }
    }

    /// Gives back `n` permits at this tick.
    pub fn refund(&self, n: u64) -> u64 {
        self.lowering(|| self.give_back(n))
    }

    fn give_back(&self, n: u64) -> u64 {
        // The debts of all shards together can be more fractions than 64 bits hold.
        let fractions = u128::from(n) * u128::from(self.permit());
        self.in_permits(self.give_back_to_all(fractions)).min(n)
    }

    /// Returns how many permits these fractions are, rounded up.
    fn in_permits(&self, fractions: u128) -> u64 {
        let permits = fractions.div_ceil(self.permit().max(1).into());
        u64::try_from(permits).unwrap_or(u64::MAX)
    }

    /// Gives fractions back to all shards in equal shares, and returns how many were returned. If a
    /// shard becomes full, the rest of its share goes to the other shards.
    fn give_back_to_all(&self, fractions: u128) -> u128 {
        let (mut left, mut full) = (fractions, Full::default());
        loop {
            let mut open = self.shards.len() as u64 - full.count();
            if left == 0 || open == 0 {
                break;
            }
            let before = full;
            for (number, shard) in self.shards.iter().enumerate() {
                if before.has(number) {
                    continue;
                }
                let share = u64::try_from(left.div_ceil(open.into())).unwrap_or(u64::MAX);
                let refund = |algorithm: &A, word| algorithm.refund(word, self.now, share);
                let n = shard.give_back(refund).min(share);
                (left, open) = (left - u128::from(n), open - 1);
                if n < share {
                    full.add(number);
                }
            }
        }
        fractions - left
    }
}

impl<A: Split + Debt> ShardedView<'_, A> {
    /// Corrects a grant for an estimated cost, at this tick.
    pub fn settle(&self, granted: Granted, actual: u64) -> Settled {
        Settled::by(
            granted,
            actual,
            |unused| self.undo(unused),
            |more| self.charge(more),
        )
    }

    /// Takes `n` permits unconditionally at this tick.
    pub fn charge(&self, n: u64) -> Charged {
        let taken = self.take_up_to(n);
        let (permit, shards) = (self.permit(), self.shards.len() as u64);
        let (owed, mut at) = (n - taken.n(), taken.at());
        // An owed permit is spread over the shards: each owes the same number of fractions.
        let each = owed.saturating_mul(permit.checked_div(shards).unwrap_or(0));
        let (mut charged, mut debt, mut clear) = (0_u128, 0_u128, Duration::ZERO);
        for shard in self.shards {
            let one = shard.at(self.now).charge(each);
            if one.n() > 0 {
                (charged, at) = (charged + u128::from(one.n()), at.max(one.at()));
            }
            debt += u128::from(one.debt());
            clear = clear.max(one.clear_after());
        }
        // The new debt changes the tick of the next permit.
        self.hint.raise();
        let charged = charged / u128::from(permit.max(1));
        let charged = u64::try_from(charged).unwrap_or(owed).min(owed);
        Charged::new(taken.n() + charged, at).with_debt(self.in_permits(debt), clear)
    }
}

impl<A: Split + Gauge> ShardedView<'_, A> {
    /// Returns how many permits are counted at this tick.
    pub fn level(&self) -> Level {
        let each = self.shards.iter().map(|shard| shard.at(self.now).level());
        let all = each.reduce(Level::plus).unwrap_or(Level::of_permits(0));
        all.of_fractions(self.permit())
    }
}

impl<A> Clone for ShardedView<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for ShardedView<'_, A> {}

impl<A: fmt::Debug + Split> fmt::Debug for ShardedView<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedView")
            .field("algorithm", &self.whole)
            .field("available", &self.available())
            .field("first", &self.first)
            .field("now", &self.now)
            .finish()
    }
}
