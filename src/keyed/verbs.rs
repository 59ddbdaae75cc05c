//! The methods of a table: decisions, on one key or several, plans and statistics.

use core::hash::Hash;
use std::string::String;

use super::decide::Request;
use super::hasher::KeyHasher;
use super::limiter::Keyed;
use super::stats::KeyedStats;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::store::operations::Acquire;

/// How many keys are hashed, and their buckets prefetched, before the first of them is decided on.
const AHEAD: usize = 16;

impl<A, C, S> Keyed<A, C, S> {
    /// Returns the position of the plan with this name, or `None` if no plan has it. Plans have
    /// their positions and names from [`with_named_plans`](Self::with_named_plans). Look a plan up
    /// once, and use keys [under it](super::Key::with_plan).
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [("free", TokenBucket::new(Quota::per_hour(10))?)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// let free = limiter.plan_named("free").ok_or("no such plan")?;
    /// limiter.key("alice").with_plan(free).try_acquire()?;
    /// assert!(limiter.plan_named("paid").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn plan_named(&self, name: &str) -> Option<usize> {
        self.keys.plans().position(name)
    }

    /// Iterates over the names of the plans, in their order. The iterator is empty if the plans
    /// have no names.
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(10))?;
    /// let plans = [("free", bucket), ("paid", bucket)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// assert!(limiter.plan_names().eq(["free", "paid"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.keys.plans().names().iter().map(String::as_str)
    }

    /// Returns how many keys are in the table, including idle ones.
    pub fn len(&self) -> usize {
        usize::try_from(self.keys.tracked()).unwrap_or(usize::MAX)
    }

    /// Returns whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots: about 1.5 for each key of the requested capacity, and at least
    /// 2048.
    pub fn slots(&self) -> usize {
        self.keys.table().slots()
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Takes one permit of this key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit is not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire<Q: Hash + ?Sized>(&self, key: &Q) -> Result<Granted, Denied> {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        // Prefetch before the clock is read, so that the two overlap.
        let probe_seq = self.keys.table().fetch(self.hasher.hash_key(key));
        Request::new(&self.keys, probe_seq, 0, self.clock.now()).run(Acquire { n })
    }

    /// Takes one permit of each of these keys, in their order, all at one tick. If the table is
    /// larger than the processor's caches, this is twice as fast as single calls: it fetches the
    /// slots of the next keys while it decides on the first ones.
    ///
    /// ```
    /// use tollgate::{Denied, Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(1), 1000)?;
    /// let keys = ["alice", "bob", "alice"];
    /// let mut outcomes = [const { Err(Denied::busy(1)) }; 3];
    /// limiter.try_acquire_batch(&keys, &mut outcomes)?;
    /// assert_eq!(outcomes.map(|outcome| outcome.is_ok()), [true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError::OutcomesLength`] if `keys` and `outcomes` differ in length: then nothing is
    /// decided.
    pub fn try_acquire_batch<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), LimiterError> {
        self.try_acquire_batch_at(0, keys, outcomes, self.clock.now())
    }

    /// Counts the keys in the table and those that left. To find idle keys it visits the whole
    /// table; [`len`](Self::len) does not.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, clock.clone())?;
    /// limiter.try_acquire("alice")?;
    /// clock.advance(Duration::from_secs(1));
    /// limiter.try_acquire("bob")?;
    /// let stats = limiter.stats();
    /// assert_eq!((stats.tracked, stats.idle, stats.evicted), (2, 1, 0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> KeyedStats {
        self.stats_at(self.clock().now())
    }
}

impl<A: Algorithm, C, S: KeyHasher> Keyed<A, C, S> {
    /// Takes one permit of each key, as [`try_acquire_batch`](Self::try_acquire_batch) does, under
    /// the plan at this [position](Self::plan_named) and at this tick.
    ///
    /// # Errors
    ///
    /// [`LimiterError::OutcomesLength`] if `keys` and `outcomes` differ in length: then nothing is
    /// decided.
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        plan: usize,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        if keys.len() != outcomes.len() {
            let (keys, outcomes) = (keys.len(), outcomes.len());
            return Err(LimiterError::OutcomesLength { keys, outcomes });
        }
        let plan = u8::try_from(plan).unwrap_or(u8::MAX);
        let mut probe_seqs = [self.keys.table().probe_seq(0); AHEAD];
        for (keys, outcomes) in keys.chunks(AHEAD).zip(outcomes.chunks_mut(AHEAD)) {
            for (probe_seq, key) in probe_seqs.iter_mut().zip(keys) {
                *probe_seq = self.keys.table().fetch(self.hasher.hash_key(key));
            }
            for (probe_seq, outcome) in probe_seqs.into_iter().zip(outcomes) {
                let request = Request::new(&self.keys, probe_seq, plan, now);
                *outcome = request.run(Acquire { n: 1 });
            }
        }
        Ok(())
    }
}

impl<A: Algorithm, C, S> Keyed<A, C, S> {
    /// Counts the keys at this tick, as [`stats`](Self::stats) does.
    #[must_use]
    pub fn stats_at(&self, now: Tick) -> KeyedStats {
        self.keys.stats(now)
    }
}
