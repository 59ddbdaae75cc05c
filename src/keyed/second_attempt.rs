//! The second attempt to decide on a key, out of line. To find the slot it loads only labels, which
//! are the halves of slots without the words. It handles three cases: a key that is not protected
//! yet, which a grant protects; a key with an override; and a new key, if a slot of its primary
//! buckets was never used. The last case is usual while the table fills up.

use super::claimable::Claimable;
use super::core::{Absent, Core, Request, source_of};
use super::overrides::OVERRIDE;
use super::plans::AlgorithmId;
use super::slot::SlotState;
use super::table::{FoundSlot, SlotIndex};
use crate::algorithm::Algorithm;
use crate::store::op::{Attempt, Current, Op, OpResult};

impl<A: Algorithm> Core<A> {
    /// Makes the second attempt. Returns `None`, without a change, if this is none of the three
    /// cases or another thread was faster.
    pub(super) fn second_attempt<O: Op<A>>(
        &self,
        request: &Request,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (version, tag) = (self.plans.version(), request.probe_seq.tag());
        let labels = self.table.look_at_labels(&request.probe_seq)?;
        if let Some(at) = labels.first_that_may_be_of(tag) {
            let found = self.table.found(self.table.fast_pair()?, at)?;
            let expected = SlotState::live(tag, at.second, request.plan, version, 0);
            let is_expected = found.held.is_unprotected(expected) && !O::BANS;
            return match is_expected {
                true => self.attempt_at(request, version, found, op),
                false => self.override_attempt(request, at, found, op),
            };
        }
        let free = labels.free_of_never_used()?;
        match self.run_fresh(request, request.now, op)? {
            Absent::Answer(outcome) => Some(outcome),
            fresh => self.insert(request, Claimable::of(free, None), op, Some(fresh)),
        }
    }

    /// Decides on a key that has an override and is not banned.
    #[cold]
    #[inline(never)]
    fn override_attempt<O: Op<A>>(
        &self,
        request: &Request,
        at: SlotIndex,
        found: FoundSlot<'_>,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (held, probe_seq) = (found.held, &request.probe_seq);
        let overrides = self.plans.overrides_of(held)?;
        let number = overrides.number_in(held, probe_seq.hash())?;
        let expected = SlotState::live(probe_seq.tag(), at.second, OVERRIDE, number, 0);
        if !held.is_unbanned(expected) || O::BANS {
            return None;
        }
        let view = Current::new(held.word, request.now);
        let view = view.with_source(source_of(AlgorithmId::new(OVERRIDE, number)));
        let said = |algorithm: &A| op.run(algorithm, view);
        let exchange = |next| found.decide_in_place(held.with_word(next).granted_if(O::TAKES));
        let outcome = match overrides.with(probe_seq.hash(), number, said)? {
            Err(refusal) => Err(refusal),
            Ok(done) => match Attempt::end::<A, _, _>(op, held.word, done, exchange) {
                Attempt::Unchanged(answer) => Ok(answer),
                attempt => return attempt.answer().map(Ok),
            },
        };
        // The override's number was looked up after the slot was read. If the slot has changed
        // since, the number's last bits may be those of a later override. In that case return
        // `None`.
        (self.table.load(at) == held).then_some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::algorithm::TokenBucket;
    use crate::clock::Tick;
    use crate::keyed::plans::Plans;
    use crate::keyed::probe_seq::LEAST_PAIRS;
    use crate::keyed::slot::VERSIONS;
    use crate::keyed::table::Table;
    use crate::quota::Quota;
    use crate::store::operations::{Acquire, Look};

    fn bucket(burst: u64) -> TokenBucket {
        TokenBucket::new(Quota::per_hour(burst)).expect("a bucket")
    }

    #[test]
    fn an_answer_that_is_late_until_its_number_comes_again_is_of_no_other_algorithm() {
        let now = Tick::from_nanos(1_000_000_000);
        let pairs = NonZeroU64::new(LEAST_PAIRS).expect("some");
        let table = Table::new(pairs).expect("there is memory");
        let Some(fast_pair) = table.fast_pair() else {
            return;
        };
        let plans = Plans::one(bucket(5)).with_overrides(2).expect("one plan");
        let core = Core::new(table, plans);
        let [probe_seq, other] = [7, 8].map(|hash| core.table.probe_seq(hash));
        let plan = 0;
        let request = &Request {
            probe_seq,
            plan,
            now,
        };
        let set = |key, burst| {
            core.set_override_of(key, bucket(burst), now)
                .expect("a place")
        };
        set(&probe_seq, 1000);
        assert!(core.apply(*request, Acquire { n: 999 }).is_ok());
        let labels = core.table.look_at_labels(&probe_seq).expect("halves");
        let at = labels.first_that_may_be_of(probe_seq.tag()).expect("it");
        let found = || core.table.found(fast_pair, at).expect("a slot");
        let late = found();
        // One permit of 1000 is left, and still one when the burst is 10.
        for _ in 2..VERSIONS {
            set(&other, 9);
        }
        set(&probe_seq, 100);
        set(&probe_seq, 10);
        assert_eq!(found().held.label(), late.held.label());
        let look = || Look(|bucket: &TokenBucket, word, now| bucket.available(word, now));
        assert_eq!(core.apply(*request, look()), Ok(1));
        let said = core.override_attempt(request, at, late, &mut look());
        assert_ne!(said, Some(Ok(0)), "the old word by the new algorithm");
        let said = core.override_attempt(request, at, late, &mut Acquire { n: 1 });
        assert!(!matches!(said, Some(Err(_))), "one is there: {said:?}");
    }
}
