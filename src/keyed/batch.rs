//! Decisions on several keys at once.

use core::hash::Hash;

use super::decide::Request;
use super::hasher::KeyHasher;
use super::limiter::Keyed;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::store::operations::Acquire;

/// How many keys are hashed, and their buckets prefetched, before the first of them is decided on.
const AHEAD: usize = 16;

impl<A: Algorithm, C: Clock, S: KeyHasher> Keyed<A, C, S> {
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
