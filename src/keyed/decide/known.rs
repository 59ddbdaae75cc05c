//! Decides on a known key: it is protected, in a primary bucket, and its slot has the requested
//! plan. This is almost always so.

use super::{Request, end};
use crate::algorithm::Algorithm;
use crate::keyed::find::{FoundSlot, SlotState};
use crate::keyed::plans::AlgorithmId;
use crate::store::op::{Attempt, Current, Op, OpResult, Step};
use crate::sync::Backoff;

/// Why the first attempt decided nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Retry {
    /// The first attempt does not handle this case.
    IsLong,
    /// Another thread changed the slot before the exchange.
    WasDisturbed,
}

impl<A: Algorithm> Request<'_, A> {
    /// Decides on a known key if no quota was ever changed.
    #[inline(always)]
    pub(super) fn known<O: Op<A>>(&self, op: &mut O) -> Result<OpResult<A, O>, Retry> {
        let (found, step) = self.known_step(op).ok_or(Retry::IsLong)?;
        let held = found.held();
        let done = match step {
            Ok(done) => done,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let exchange = |next| found.decide_in_place(held.with_word(next));
        match Attempt::end::<A, _, _>(op, held.word(), done, exchange) {
            Attempt::Written(answer) | Attempt::Unchanged(answer) => Ok(Ok(answer)),
            Attempt::Lost => Err(Retry::WasDisturbed),
        }
    }

    #[inline(always)]
    fn known_step<O: Op<A>>(&self, op: &mut O) -> Option<(FoundSlot<'_>, Step<A, O>)> {
        if O::BANS {
            return None;
        }
        let algorithm = self.keys.plans().get(self.plan)?;
        let found = self.find_known(0)?;
        // Read after the slot, so that the version was still 0 when the slot was read.
        if self.keys.plans().version() != 0 {
            return None;
        }
        let view = self.current(found.held(), AlgorithmId::new(self.plan, 0));
        Some((found, op.run_fast(algorithm, view)?))
    }

    /// Finds the slot of a known key whose word has this version.
    #[inline(always)]
    fn find_known(&self, version: u64) -> Option<FoundSlot<'_>> {
        // Only the label is compared: `find` sets which pair, and ignores the word.
        let expected = SlotState::live(self.probe_seq.tag(), false, self.plan, version, 0);
        let expected = expected.protected_if(true);
        self.keys.table().find(&self.probe_seq, expected)
    }

    /// Repeats [`known`](Self::known) while other threads change the slot before the exchange.
    /// Returns `None` if that no longer applies.
    pub(super) fn known_again<O: Op<A>>(&self, op: &mut O) -> Option<OpResult<A, O>> {
        let mut backoff = Backoff::new();
        loop {
            // Wait before looking at the slot: a look takes the cache line from the thread that has
            // it.
            backoff.wait();
            match self.known(op) {
                Ok(outcome) => return Some(outcome),
                Err(Retry::WasDisturbed) => {}
                Err(Retry::IsLong) => return None,
            }
        }
    }

    /// Decides on a known key if quotas have been changed and its word has this version, which is
    /// current.
    pub(super) fn known_changed<O: Op<A>>(
        &self,
        version: u64,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        if version == 0 || O::BANS {
            return None;
        }
        self.of_version(version, self.find_known(version)?, op)
    }

    /// Decides on a key whose slot has the label of this version. `version` was read before the
    /// slot. Returns `None` if it is no longer current, or the slot has changed.
    pub(super) fn of_version<O: Op<A>>(
        &self,
        version: u64,
        found: FoundSlot<'_>,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        if self.keys.plans().version() != version {
            return None;
        }
        let view = self.current(found.held(), AlgorithmId::new(self.plan, version));
        let run = |algorithm: &A| op.run(algorithm, view);
        let step = self.keys.plans().with_plan(self.plan, version, run)?;
        self.in_place(found, step, op, || true)
    }

    /// Returns what an operation runs on: the word of a slot, which is of this algorithm.
    #[inline(always)]
    pub(super) const fn current(&self, held: SlotState, id: AlgorithmId) -> Current {
        Current::new(held.word(), self.now).with_source(id.source())
    }

    /// Ends an attempt on a slot that is not banned. An operation that takes protects the key.
    #[inline(always)]
    pub(super) fn in_place<O: Op<A>>(
        &self,
        found: FoundSlot<'_>,
        step: Step<A, O>,
        op: &O,
        holds: impl Fn() -> bool,
    ) -> Option<OpResult<A, O>> {
        let held = found.held();
        let exchange = |next| found.decide_in_place(held.with_word(next).granted_if(O::TAKES));
        end(op, held.word(), step, exchange, holds)
    }
}
