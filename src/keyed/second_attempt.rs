//! The second attempt of a decision on a key, out of line. It is for keys that are not protected,
//! which their second grant protects; and for keys that come into the table while slots of their
//! primary buckets have never been used, as while it is filled. It looks at labels alone.

use super::claimable::Claimable;
use super::core::{Core, Fresh, Request};
use super::slot::SlotState;
use crate::algorithm::Algorithm;
use crate::store::op::{Op, OpResult};

impl<A: Algorithm> Core<A> {
    /// `None` if the key is of neither kind, or another thread was quicker: nothing was done then.
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
            return is_expected
                .then(|| self.attempt_at(request, version, place, op))
                .flatten();
        }
        let free = labels.free_of_never_used()?;
        match self.run_fresh(request, request.now, op)? {
            Fresh::Answer(outcome) => Some(outcome),
            fresh => self.insert(request, Claimable::of(free, None), op, Some(fresh)),
        }
    }
}
