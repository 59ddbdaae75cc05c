use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::MAX_SHARDS;
use super::part::Part;
use crate::algorithm::{Debt, Gauge, Level, Split};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted, SEVERAL};

/// Which parts are full.
#[derive(Default, Clone, Copy)]
struct Full([u64; MAX_SHARDS / 64]);

impl Full {
    fn has(&self, part: usize) -> bool {
        let bits = self.0.get(part / 64);
        bits.is_some_and(|bits| bits >> (part % 64) & 1 == 1)
    }

    fn add(&mut self, part: usize) {
        if let Some(bits) = self.0.get_mut(part / 64) {
            *bits |= 1 << (part % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }
}

/// A view of a [`Sharded`](crate::Sharded) limiter at one tick, from the part where the caller is
/// at home.
pub struct ShardedAt<'a, A> {
    pub(super) parts: &'a [CachePadded<Part<A>>],
    pub(super) whole: &'a A,
    home: usize,
    pub(super) now: Tick,
}

impl<'a, A: Split> ShardedAt<'a, A> {
    #[inline(always)]
    pub(super) const fn new(
        parts: &'a [CachePadded<Part<A>>],
        whole: &'a A,
        home: usize,
        now: Tick,
    ) -> Self {
        Self {
            parts,
            whole,
            home,
            now,
        }
    }

    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// The same, at home in another part: for those who know better than a thread's number where
    /// they run, such as a thread for each core. Shards are numbered from 0, and again from 0 after
    /// the last.
    ///
    /// ```
    /// use tollgate::{NoClock, Quota, Sharded, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(10))?;
    /// let gate = Sharded::starting_at(bucket, 2, NoClock, Tick::ZERO)?;
    /// let granted = gate.at(Tick::ZERO).from_shard(1).try_acquire_n(2)?;
    /// assert_eq!(granted.remaining(), 3); // in this part
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    #[must_use]
    pub fn from_shard(self, shard: usize) -> Self {
        let home = shard.checked_rem(self.parts.len()).unwrap_or(0);
        Self { home, ..self }
    }

    /// The part so many places from home, round again after the last, and its number. `None` if
    /// that is home again.
    #[inline(always)]
    pub(super) fn neighbour(&self, distance: usize) -> Option<(u32, &'a CachePadded<Part<A>>)> {
        let (parts, place) = (self.parts.len(), self.home + distance);
        if distance >= parts {
            return None;
        }
        let place = if place < parts { place } else { place - parts };
        Some((place as u32, self.parts.get(place)?))
    }

    /// All parts with their numbers, from home on.
    pub(super) fn nearest_first(
        self,
    ) -> impl Iterator<Item = (u32, &'a CachePadded<Part<A>>)> + Clone {
        (0..).map_while(move |distance| self.neighbour(distance))
    }

    /// [`Sharded::try_acquire`](crate::Sharded::try_acquire) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no part had it.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// [`Sharded::try_acquire_n`](crate::Sharded::try_acquire_n) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        match self.try_once(n) {
            Some(granted) => Ok(granted),
            None => self.acquire(n),
        }
    }

    /// The own part, in one turn.
    #[inline(always)]
    pub(super) fn try_once(&self, n: u64) -> Option<Granted> {
        let granted = self.parts.get(self.home)?.at(self.now).try_once(n)?;
        Some(granted.of_part(self.home as u32))
    }

    /// [`Sharded::take_up_to`](crate::Sharded::take_up_to) at this tick.
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        let mut taken: Option<Granted> = None;
        for (number, part) in self.nearest_first() {
            let missing = n - taken.map_or(0, |taken| taken.n());
            let this = part.take(self.now, missing);
            let granted = this.granted.of_part(number);
            taken = match taken {
                Some(taken) if granted.n() == 0 => Some(taken),
                Some(taken) if taken.n() > 0 && taken.at() != granted.at() => {
                    // Of a window that is ahead of the others. A grant has one tick.
                    part.put_back(&this);
                    Some(taken)
                }
                Some(taken) if taken.n() > 0 => Some(taken.and(granted)),
                _ => Some(granted),
            };
            if taken.is_some_and(|taken| taken.n() == n) {
                break;
            }
        }
        taken.unwrap_or(Granted::new(0, self.now))
    }

    /// [`Sharded::available`](crate::Sharded::available) at this tick.
    pub fn available(&self) -> u64 {
        let each = self.parts.iter().map(|part| part.at(self.now).available());
        each.fold(0, u64::saturating_add)
    }

    /// Whether the limiter can no longer be told from a fresh one at this tick.
    pub fn is_idle(&self) -> bool {
        self.parts.iter().all(|part| part.at(self.now).is_idle())
    }

    /// [`Sharded::reset`](crate::Sharded::reset).
    pub fn reset(&self) {
        for part in self.parts {
            part.reset();
        }
    }

    /// [`Sharded::time_until`](crate::Sharded::time_until) at this tick.
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        Some(self.due(n)?.saturating_since(self.now))
    }

    /// [`Sharded::undo`](crate::Sharded::undo) at this tick.
    pub fn undo(&self, granted: Granted) -> u64 {
        let own = match granted.part() {
            SEVERAL => None,
            number => self.parts.get(number as usize),
        };
        match own {
            Some(part) => {
                part.give_back(|algorithm, word| algorithm.undo(word, self.now, &granted))
            }
            None => {
                // As many as would come back of it to one word that nobody else has used.
                let alone = self.whole.step(0, granted.at(), granted.n());
                let n = alone.map_or(0, |(word, alone)| self.whole.undo(word, self.now, &alone).1);
                self.refund(n)
            }
        }
    }

    /// [`Sharded::refund`](crate::Sharded::refund) at this tick.
    pub fn refund(&self, n: u64) -> u64 {
        let refund = |part: &Part<A>, n: u64| {
            let refund = |algorithm: &A, word| algorithm.refund(word, self.now, n);
            part.give_back(refund).min(n)
        };
        let (mut left, mut full) = (n, Full::default());
        // To all alike, as what is owed is owed by all alike, and what is left over to those that
        // have least. A part that takes less than that is full: the others get the rest.
        while let Some(each) = left.checked_div(self.parts.len() as u64 - full.count()) {
            let open = || {
                let numbered = (0..).zip(self.parts);
                numbered.filter(|(number, _)| !full.has(*number))
            };
            if left == 0 {
                break;
            }
            if each == 0 {
                let poorest = open().max_by_key(|(_, part)| part.due_of_one(self.now));
                let Some((number, part)) = poorest else { break };
                match refund(part, 1) {
                    0 => full.add(number),
                    n => left -= n,
                }
                continue;
            }
            let mut those = full;
            for (number, part) in open() {
                let n = refund(part, each);
                left -= n;
                if n < each {
                    those.add(number);
                }
            }
            full = those;
        }
        n - left
    }
}

impl<A: Split + Debt> ShardedAt<'_, A> {
    /// [`Sharded::charge`](crate::Sharded::charge) at this tick.
    pub fn charge(&self, n: u64) -> Charged {
        let taken = self.take_up_to(n);
        let (owed, parts) = (n - taken.n(), self.parts.len() as u64);
        let (mut charged, mut at) = (taken.n(), taken.at());
        let mut charge = |part: &Part<A>, n| {
            let one = part.at(self.now).charge(n);
            if one.n() > 0 {
                (charged, at) = (charged + one.n(), at.max(one.at()));
            }
        };
        let each = owed.checked_div(parts).unwrap_or(0);
        for part in self.parts.iter().filter(|_| each > 0) {
            charge(part, each);
        }
        // The rest to those that would have a permit first, so that all parts owe alike.
        for _ in 0..owed - each * parts {
            let first = |part: &&CachePadded<Part<A>>| part.due_of_one(self.now);
            if let Some(part) = self.parts.iter().min_by_key(first) {
                charge(part, 1);
            }
        }
        let (mut debt, mut clear) = (0_u64, Duration::ZERO);
        for part in self.parts {
            let one = part.at(self.now).charge(0);
            debt = debt.saturating_add(one.debt());
            clear = clear.max(one.clear_after());
        }
        Charged::new(charged, at).with_debt(debt, clear)
    }
}

impl<A: Split + Gauge> ShardedAt<'_, A> {
    /// [`Sharded::level`](crate::Sharded::level) at this tick.
    pub fn level(&self) -> Level {
        let each = self.parts.iter().map(|part| part.at(self.now).level());
        each.reduce(Level::plus).unwrap_or(Level::of_permits(0))
    }
}

impl<A> Clone for ShardedAt<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for ShardedAt<'_, A> {}

impl<A: fmt::Debug + Split> fmt::Debug for ShardedAt<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.parts.iter().map(|part| part.cell());
        f.debug_struct("ShardedAt")
            .field("cells", &words.collect::<Vec<_>>())
            .field("algorithm", &self.whole)
            .field("home", &self.home)
            .field("now", &self.now)
            .finish()
    }
}
