//! Decisions on many keys at once.

use core::hash::Hash;

use super::core::Asked;
use super::hasher::KeyHasher;
use super::plan::PlanOf;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::op::Acquire;
use crate::outcome::{Denied, Granted};
use crate::quota::ConfigError;

/// How many keys are hashed, and their lines asked for, before the first of them is decided on.
const AHEAD: usize = 16;

impl<A: Algorithm, C, S: KeyHasher> PlanOf<'_, A, C, S> {
    /// [`check_many`](super::Keyed::check_many) at this tick.
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutcomesLength`] unless there are as many outcomes as keys: then nothing is
    /// decided.
    pub fn check_many_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), ConfigError> {
        if keys.len() != outcomes.len() {
            let (keys, outcomes) = (keys.len(), outcomes.len());
            return Err(ConfigError::OutcomesLength { keys, outcomes });
        }
        let (core, plan) = (&self.gate.core, self.index());
        let mut spots = [core.table.spot(0); AHEAD];
        for (keys, outcomes) in keys.chunks(AHEAD).zip(outcomes.chunks_mut(AHEAD)) {
            for (spot, key) in spots.iter_mut().zip(keys) {
                *spot = core.fetch(self.gate.hasher.hash_key(key));
            }
            for (spot, outcome) in spots.into_iter().zip(outcomes) {
                *outcome = core.apply(Asked { spot, plan, now }, Acquire { n: 1 });
            }
        }
        Ok(())
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> PlanOf<'_, A, C, S> {
    /// [`check_many`](super::Keyed::check_many) by this plan.
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutcomesLength`] unless there are as many outcomes as keys: then nothing is
    /// decided.
    pub fn check_many<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), ConfigError> {
        self.check_many_at(keys, outcomes, self.gate.clock.now())
    }
}
