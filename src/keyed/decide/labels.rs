//! Decides on keys that labels suffice to find, which are the halves of slots without the words:
//! a key that is not protected yet, which a grant protects; a key with an override; and a new key,
//! if a slot of its primary buckets was never used. The last case is usual while the table fills
//! up.

use super::Request;
use super::absent::Absent;
use crate::algorithm::Algorithm;
use crate::keyed::admit::Candidate;
use crate::keyed::find::{FoundSlot, SlotIndex, SlotState};
use crate::keyed::plans::OVERRIDE;
use crate::store::op::{Op, OpResult};

impl<A: Algorithm> Request<'_, A> {
    /// Decides in the three cases. `version` is the current one. Returns `None`, without a change,
    /// if this is none of them or another thread was faster.
    pub(super) fn by_labels<O: Op<A>>(&self, version: u64, op: &mut O) -> Option<OpResult<A, O>> {
        let (table, tag) = (self.keys.table(), self.probe_seq.tag());
        let labels = table.look_at_labels(&self.probe_seq)?;
        if let Some(at) = labels.first_that_may_be_of(tag) {
            let found = table.found(at)?;
            let expected = SlotState::live(tag, at.is_second(), self.plan, version, 0);
            return match found.held().is_unprotected(expected) && !O::BANS {
                true => self.of_version(version, found, op),
                false => self.overridden(at, found, op),
            };
        }
        let free = labels.free_of_never_used()?;
        match self.run_fresh(self.in_force(), self.now, op)? {
            Absent::Answer(outcome) => Some(outcome),
            fresh => self.insert(&Candidate::of(free), op, Some(fresh)),
        }
    }

    /// Decides on a key that has an override and is not banned.
    #[cold]
    #[inline(never)]
    fn overridden<O: Op<A>>(
        &self,
        at: SlotIndex,
        found: FoundSlot<'_>,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (held, plans) = (found.held(), self.keys.plans());
        let tag = self.probe_seq.tag();
        let expected = SlotState::live(tag, at.is_second(), OVERRIDE, held.version(), 0);
        if O::BANS || !held.is_unbanned(expected) {
            return None;
        }
        let run = |id, algorithm: &A| op.run(algorithm, self.current(held, id));
        let step = plans.with_override(held, self.probe_seq.hash(), run)?;
        // The override was looked up after the slot was read. If the slot has changed since, its
        // number's last bits may be those of a later override.
        self.in_place(found, step, op, || self.keys.table().load(at) == held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::TokenBucket;
    use crate::clock::Tick;
    use crate::keyed::admit::Keys;
    use crate::keyed::find::{Table, VERSIONS};
    use crate::keyed::plans::Plans;
    use crate::quota::Quota;
    use crate::store::operations::{Acquire, Look};

    fn bucket(burst: u64) -> TokenBucket {
        TokenBucket::new(Quota::per_hour(burst)).expect("a bucket")
    }

    #[test]
    fn an_answer_that_is_late_until_its_number_comes_again_is_of_no_other_algorithm() {
        let now = Tick::from_nanos(1_000_000_000);
        let table = Table::with_capacity(1).expect("there is memory");
        let plans = Plans::one(bucket(5)).with_overrides(2).expect("one plan");
        let keys = Keys::new(table, plans);
        let [probe_seq, other] = [7, 8].map(|hash| keys.table().probe_seq(hash));
        let request = || Request::new(&keys, probe_seq, 0, now);
        let set = |key, burst| keys.set_override(key, bucket(burst), now).expect("a place");
        set(&probe_seq, 1000);
        assert!(request().run(Acquire { n: 999 }).is_ok());
        let Some(labels) = keys.table().look_at_labels(&probe_seq) else {
            return;
        };
        let at = labels.first_that_may_be_of(probe_seq.tag()).expect("it");
        let found = || keys.table().found(at).expect("a slot");
        let late = found();
        // One permit of 1000 is left, and still one when the burst is 10.
        for _ in 2..VERSIONS {
            set(&other, 9);
        }
        set(&probe_seq, 100);
        set(&probe_seq, 10);
        assert_eq!(found().held().label(), late.held().label());
        let look = || Look(|bucket: &TokenBucket, word, now| bucket.available(word, now));
        assert_eq!(request().run(look()), Ok(1));
        let said = request().overridden(at, late, &mut look());
        assert_ne!(said, Some(Ok(0)), "the old word by the new algorithm");
        let said = request().overridden(at, late, &mut Acquire { n: 1 });
        assert!(!matches!(said, Some(Err(_))), "one is there: {said:?}");
        let said = request().present(at, late.held(), &mut look());
        assert_ne!(said, Some(Ok(0)), "likewise, found by a probe");
    }
}
