//! Decides on a key that is not in the table, and inserts it.

use super::Request;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::admit::{Candidate, Claim};
use crate::keyed::overflow::Overflow;
use crate::keyed::plans::AlgorithmId;
use crate::outcome::Denied;
use crate::store::cell::UNSTARTED;
use crate::store::op::{Current, Op, OpResult};
use crate::sync::inject_fault;

/// The source ([`AlgorithmId::source`]) of a grant that was not recorded. Such a grant can't be
/// undone.
const UNRECORDED: u32 = u32::MAX;

/// The result of an operation on a key that is not in the table.
pub(super) enum Absent<A, O: Op<A>> {
    /// Nothing has to be stored. This is the answer.
    Answer(OpResult<A, O>),
    /// This word, which the algorithm `id` made, must be stored for the key. `answer` is `None` if
    /// the algorithm refuses the operation. It will refuse it again when the word is stored.
    Keep {
        word: u64,
        id: AlgorithmId,
        answer: Option<O::Output>,
    },
}

impl<A: Algorithm> Request<'_, A> {
    /// Returns the algorithm in force for a key that is not in the table: its override, or its plan
    /// in the newest version.
    #[inline(always)]
    pub(super) fn in_force(&self) -> AlgorithmId {
        self.keys.plans().in_force(self.plan, self.probe_seq.hash())
    }

    /// Runs an operation on the word of a key that is not in the table, with this algorithm and at
    /// this tick. Returns `None` if the algorithm changes meanwhile.
    pub(super) fn run_fresh<O: Op<A>>(
        &self,
        id: AlgorithmId,
        now: Tick,
        op: &mut O,
    ) -> Option<Absent<A, O>> {
        let run = |algorithm: &A| {
            let first = first_word(algorithm, now);
            let view = Current::new(first, now).with_source(id.source());
            let (word, answer) = match op.run(algorithm, view) {
                // Don't store an unchanged word, with one exception: a key that starts with less
                // than its burst (a first word other than 0) begins to refill with its first
                // request for permits. Never store the word 0: it contains no tick, so a caller
                // with an old tick would count at that tick instead of at the horizon.
                Ok((next, answer))
                    if !O::BANS
                        && ((first, next) == (0, 0)
                            || op.is_unchanged(first, next) && (first == 0 || !O::GRANTS)) =>
                {
                    return Absent::Answer(Ok(answer));
                }
                Err(refusal) if first == 0 => return Absent::Answer(Err(refusal)),
                Ok((next, answer)) => (next, Some(answer)),
                // The stored word will give the same refusal.
                Err(_) => (first, None),
            };
            Absent::Keep { word, id, answer }
        };
        self.keys.plans().with(id, self.probe_seq.hash(), run)
    }

    /// Inserts a key into a slot.
    pub(super) fn insert<O: Op<A>>(
        &self,
        candidate: &Candidate,
        op: &mut O,
        fresh: Option<Absent<A, O>>,
    ) -> Option<OpResult<A, O>> {
        let claim = self.keys.claim(&self.probe_seq, candidate)?;
        let done = self.establish(&claim, op, fresh);
        if done.is_none() {
            self.keys.release(&claim);
        }
        done
    }

    /// Turns a claim into the key's live slot, with the word after the operation. Returns `None` if
    /// the operation still has to be done: because the claim could not be published, or because the
    /// algorithm refused the operation and only the key was inserted. `fresh` is the operation's
    /// result at the request's tick.
    pub(super) fn establish<O: Op<A>>(
        &self,
        claim: &Claim,
        op: &mut O,
        fresh: Option<Absent<A, O>>,
    ) -> Option<OpResult<A, O>> {
        let early = inject_fault!(ReadsTheVersionFirst).then(|| self.in_force()); // FAULT
        let now = self.keys.confirm(&self.probe_seq, claim)?.max(self.now);
        // Read after the claim and the fence that follows it. A thread that sweeps this part of the
        // table for this version, or for a later one, therefore finds the claim and releases it. So
        // does a thread that changes the key's override.
        let in_force = early.unwrap_or_else(|| self.in_force());
        let fresh = match fresh {
            Some(Absent::Keep { id, .. }) if id == in_force && now == self.now => fresh,
            _ => self.run_fresh(in_force, now, op),
        };
        match fresh? {
            Absent::Keep { word, id, answer } => {
                self.keys.publish(claim, id, word, O::BANS)?;
                answer.map(Ok)
            }
            Absent::Answer(outcome) => {
                self.keys.release(claim);
                Some(outcome)
            }
        }
    }

    /// Refuses the operation, or answers as for a fresh key without storing anything. If the
    /// requested plan does not exist, the answer is that of the first plan.
    pub(super) fn unrecorded<O: Op<A>>(&self, mut op: O, why: fn(u64) -> Denied) -> OpResult<A, O> {
        let (plans, hash) = (self.keys.plans(), self.probe_seq.hash());
        let plan = plans.or_first(self.plan);
        if self.keys.overflow() != Overflow::Admit || O::BANS || plan != self.plan {
            if let Some(refusal) = op.unavailable(why, self.now) {
                return refusal;
            }
        }
        loop {
            let run = |algorithm: &A| {
                let word = first_word(algorithm, self.now);
                let view = Current::new(word, self.now).with_source(UNRECORDED);
                op.run(algorithm, view).map(|(_, answer)| answer)
            };
            // If this version is outdated, a later one exists.
            if let Some(outcome) = plans.with(plans.in_force(plan, hash), hash, run) {
                return outcome;
            }
        }
    }
}

/// Returns the word of a key that is inserted now.
fn first_word<A: Algorithm>(algorithm: &A, now: Tick) -> u64 {
    algorithm.initial_word(now).min(UNSTARTED - 1)
}
