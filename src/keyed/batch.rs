//! Decisions on several keys at once.

use core::hash::Hash;

use super::core::Request;
use super::hasher::KeyHasher;
use super::plan::KeyedPlan;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::store::operations::Acquire;

/// How many keys are hashed, and their buckets prefetched, before the first of them is decided on.
const AHEAD: usize = 16;

impl<A: Algorithm, C, S: KeyHasher> KeyedPlan<'_, A, C, S> {
    /// Takes one permit of each key at this tick: see
    /// [`try_acquire_batch`](super::Keyed::try_acquire_batch).
    ///
    /// # Errors
    ///
    /// [`LimiterError::OutcomesLength`] if `keys` and `outcomes` differ in length: then nothing is
    /// decided.
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        if keys.len() != outcomes.len() {
            let (keys, outcomes) = (keys.len(), outcomes.len());
            return Err(LimiterError::OutcomesLength { keys, outcomes });
        }
        let (core, plan) = (&self.limiter.core, self.index());
        let mut probe_seqs = [core.table.probe_seq(0); AHEAD];
        for (keys, outcomes) in keys.chunks(AHEAD).zip(outcomes.chunks_mut(AHEAD)) {
            for (probe_seq, key) in probe_seqs.iter_mut().zip(keys) {
                *probe_seq = core.fetch(self.limiter.hasher.hash_key(key));
            }
            for (probe_seq, outcome) in probe_seqs.into_iter().zip(outcomes) {
                *outcome = core.apply(
                    Request {
                        probe_seq,
                        plan,
                        now,
                    },
                    Acquire { n: 1 },
                );
            }
        }
        Ok(())
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> KeyedPlan<'_, A, C, S> {
    /// Takes one permit of each key under this plan: see
    /// [`try_acquire_batch`](super::Keyed::try_acquire_batch).
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
        self.try_acquire_batch_at(keys, outcomes, self.limiter.clock.now())
    }
}
