//! The second attempt of a decision on a key, out of line. It looks at labels alone, and handles
//! three cases: a key that is not protected, and becomes so with this grant; a key with an
//! override; and a new key, if its primary buckets have slots that were never used, as while the
//! table fills up.

use super::claimable::Claimable;
use super::core::{Core, Fresh, Request, source_of};
use super::overrides::OWN;
use super::plans::InForce;
use super::slot::SlotState;
use super::table::{FoundSlot, SlotIndex};
use crate::algorithm::Algorithm;
use crate::store::op::{Current, Op, OpResult};

impl<A: Algorithm> Core<A> {
    /// Returns `None` if it changed nothing: this is none of the three cases, or another thread was
    /// faster.
    pub(super) fn second_attempt<O: Op<A>>(
        &self,
        request: &Request,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (version, tag) = (self.plans.version(), request.probe_seq.tag());
        let labels = self.table.look_at_labels(&request.probe_seq)?;
        if let Some(at) = labels.first_that_may_be_of(tag) {
            let place = self.table.found(self.table.fast_pair()?, at)?;
            let expected = SlotState::live(tag, at.second, request.plan, version, 0);
            let is_expected = place.held.label() == expected.label() && !O::BANS;
            return match is_expected {
                true => self.attempt_at(request, version, place, op),
                false => self.own_attempt(request, at, place, op),
            };
        }
        let free = labels.free_of_never_used()?;
        match self.run_fresh(request, request.now, op)? {
            Fresh::Answer(outcome) => Some(outcome),
            fresh => self.insert(request, Claimable::of(free, None), op, Some(fresh)),
        }
    }

    /// Decides on a key that has an override and is not banned.
    #[cold]
    #[inline(never)]
    fn own_attempt<O: Op<A>>(
        &self,
        request: &Request,
        at: SlotIndex,
        place: FoundSlot<'_>,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (held, probe_seq) = (place.held, &request.probe_seq);
        let overrides = self.plans.overrides_of(held)?;
        let number = overrides.number_in(held, probe_seq.hash())?;
        let expected = SlotState::live(probe_seq.tag(), at.second, OWN, number, 0);
        let expected = expected.protected_if(held.is_protected());
        if held.label() != expected.label() || O::BANS {
            return None;
        }
        let view = Current::new(held.word, request.now);
        let view = view.with_source(source_of(InForce::new(OWN, number)));
        let said = |algorithm: &A| op.run(algorithm, view);
        match overrides.with(probe_seq.hash(), number, said)? {
            Ok((next, answer)) => {
                if !op.is_unchanged(held.word, next) {
                    let next = held.with_word(next).protected_if(O::TAKES);
                    place.decide_in_place(next).ok()?;
                }
                Some(Ok(answer))
            }
            Err(refusal) => Some(Err(refusal)),
        }
    }
}
