//! The first attempt to decide on a key, which almost always suffices. It requires that the key is
//! protected ([`slot`](super::slot)) and in a primary bucket ([`probe_seq`](super::probe_seq)),
//! that its slot has the requested plan, and that no quota was ever changed. After a change,
//! [`changed_attempt`](Core::changed_attempt) does the same for words of the current version.

use super::core::{Core, Request, Retry, source_of};
use super::plans::AlgorithmId;
use super::slot::SlotState;
use super::table::FoundSlot;
use crate::algorithm::Algorithm;
use crate::store::op::{Attempt, Current, Op, OpResult, Step};
use crate::sync::Backoff;

impl<A: Algorithm> Core<A> {
    #[inline(always)]
    pub(super) fn first_attempt<O: Op<A>>(
        &self,
        request: Request,
        op: &mut O,
    ) -> Result<OpResult<A, O>, Retry> {
        let (found, step) = self.first_step(request, op).ok_or(Retry::IsLong)?;
        let exchange = |next| found.decide_in_place(found.held.with_word(next));
        let done = match step {
            Ok(done) => done,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match Attempt::end::<A, _, _>(op, found.held.word, done, exchange) {
            Attempt::Written(answer) | Attempt::Unchanged(answer) => Ok(Ok(answer)),
            Attempt::Lost => Err(Retry::WasDisturbed),
        }
    }

    /// Repeats the first attempt while other threads change the slot before the exchange. Returns
    /// `None` if the first attempt no longer applies.
    pub(super) fn first_attempt_later<O: Op<A>>(
        &self,
        request: &Request,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let mut backoff = Backoff::new();
        loop {
            // Wait before looking at the slot: a look takes the cache line from the thread that has
            // it.
            backoff.wait();
            match self.first_attempt(*request, op) {
                Ok(outcome) => return Some(outcome),
                Err(Retry::WasDisturbed) => {}
                Err(Retry::IsLong) => return None,
            }
        }
    }

    /// Finds the slot for the first attempt, and computes its result.
    #[inline(always)]
    fn first_step<O: Op<A>>(
        &self,
        request: Request,
        op: &mut O,
    ) -> Option<(FoundSlot<'_>, Step<A, O>)> {
        if O::BANS {
            return None;
        }
        let algorithm = self.plans.get(request.plan)?;
        let probe_seq = request.probe_seq;
        let expected = SlotState::live(probe_seq.tag(), false, request.plan, 0, 0);
        let label = expected.protected_if(true).label();
        let found = self
            .table
            .find(self.table.fast_pair()?, &probe_seq, label)?;
        let held = found.held;
        // Read after the slot, so that the version was still 0 when the slot was read.
        if self.plans.version() != 0 {
            return None;
        }
        let source = source_of(AlgorithmId::new(request.plan, 0));
        let word = Current::new(held.word, request.now).with_source(source);
        Some((found, op.run_fast(algorithm, word)?))
    }

    /// Makes the first attempt when quotas have been changed, if the key's word has the current
    /// version.
    pub(super) fn changed_attempt<O: Op<A>>(
        &self,
        request: &Request,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let version = self.plans.version();
        if version == 0 || O::BANS {
            return None;
        }
        let probe_seq = &request.probe_seq;
        let expected = SlotState::live(probe_seq.tag(), false, request.plan, version, 0);
        let label = expected.protected_if(true).label();
        let found = self.table.find(self.table.fast_pair()?, probe_seq, label)?;
        self.attempt_at(request, version, found, op)
    }

    /// Decides on a key whose slot has this version. A grant protects the key. Returns `None` if
    /// the version is no longer current or the slot has changed.
    pub(super) fn attempt_at<O: Op<A>>(
        &self,
        request: &Request,
        version: u64,
        found: FoundSlot<'_>,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        if self.plans.version() != version {
            return None;
        }
        let held = found.held;
        let view = Current::new(held.word, request.now);
        let view = view.with_source(source_of(AlgorithmId::new(request.plan, version)));
        let said = |algorithm: &A| op.run(algorithm, view);
        let done = match self.plans.with(request.plan, version, said)? {
            Ok(done) => done,
            Err(refusal) => return Some(Err(refusal)),
        };
        let exchange = |next| found.decide_in_place(held.with_word(next).granted_if(O::TAKES));
        Attempt::end::<A, _, _>(op, held.word, done, exchange)
            .answer()
            .map(Ok)
    }
}
