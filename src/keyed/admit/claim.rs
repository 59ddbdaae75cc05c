//! How a key is inserted.
//!
//! - A thread first *claims* a slot for the key, with a number that no other claim has.
//! - It then looks again at all other slots where the key may be, to *confirm* that the key is in
//!   none of them.
//! - Only then does it *publish* the key: the claim becomes a live slot, with the word after the
//!   first decision.
//!
//! If a key has several claims, the first one in the key's probe order stays, and the thread that
//! publishes it releases the others. A thread that wants the key and finds it claimed publishes the
//! claim itself, so no thread waits for the one that made the claim. A fence between claim and
//! second look ensures that of two threads that claim at the same time, at least one sees the
//! other.

use super::Keys;
use super::choose::Candidate;
use super::events::Event;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::find::{ProbeSeq, SlotIndex, SlotState};
use crate::keyed::plans::AlgorithmId;
use crate::sync::inject_fault;

/// A claimed slot, with the claim that it has.
pub(crate) struct Claim {
    at: SlotIndex,
    held: SlotState,
    /// Whether the calling thread made the claim, in this round.
    is_own: bool,
}

impl Claim {
    /// Returns a claim that another thread made, or this one in an earlier round.
    pub(crate) const fn found(at: SlotIndex, held: SlotState) -> Self {
        let is_own = false;
        Self { at, held, is_own }
    }
}

impl<A: Algorithm> Keys<A> {
    /// Claims a slot for a key. Returns `None` if the slot has changed.
    pub(crate) fn claim(&self, probe_seq: &ProbeSeq, candidate: &Candidate) -> Option<Claim> {
        let afterwards = inject_fault!(RaisesAfterwards); // FAULT
        if !afterwards {
            self.raise(candidate.since);
        }
        let nonce = inject_fault!(NumbersAlike => 0, else self.events.nonce()); // FAULT
        let ((at, held), tag) = (candidate.slot, probe_seq.tag());
        let is_idle = matches!(candidate.leaves, Some(Event::Expired));
        let claim = match candidate.leaves {
            Some(_) => self.table.evict(at, (held, is_idle), tag, nonce),
            None => self.table.claim(at, held, tag, nonce),
        };
        let (held, is_own) = (claim.ok()?, true);
        if afterwards {
            self.raise(candidate.since);
        }
        if let Some(event) = candidate.leaves {
            self.events.count(event);
        }
        Some(Claim { at, held, is_own })
    }

    /// Checks whether a claim may be published: the key is in no other slot, and its other claims
    /// have been released. If so, returns the earliest tick at which the key may start.
    pub(crate) fn confirm(&self, probe_seq: &ProbeSeq, claim: &Claim) -> Option<Tick> {
        // ORDERING: SeqCst. It pairs with itself, and with the fence of `reach`. If two threads
        // claim slots for the same key, or find them claimed, at least one of them sees what the
        // other saw. Whether to skip the neighbors is also decided after the fence.
        // Model: keyed::two_insert_the_same_key
        self.table.fence_after_claim(claim.is_own);
        let is_unique =
            self.table.has_only(probe_seq, claim.at) || self.end_other_claims(probe_seq, claim.at);
        is_unique.then(|| self.horizon())
    }

    /// Releases the key's claims that come after this one, and returns whether the key is then in
    /// no other slot.
    #[cold]
    #[inline(never)]
    fn end_other_claims(&self, probe_seq: &ProbeSeq, claim: SlotIndex) -> bool {
        let mut is_after = false;
        let probe = self.table.look(probe_seq);
        let mut others = probe.all_of(probe_seq.tag()).filter(|(at, held)| {
            if *at == claim {
                is_after = true;
                return false;
            }
            let looks_once = inject_fault!(LooksOnce); // FAULT
            if looks_once {
                return false;
            }
            // Release a claim that comes after this one in the probe order. (If this claim has
            // itself been released, it is not seen here, and no other claim counts as coming after
            // it.)
            let ends = held.is_pending() && is_after;
            !ends || self.table.release(*at, *held).is_err()
        });
        others.next().is_none()
    }

    /// Publishes a confirmed claim as the live slot of its key, with a word of this algorithm.
    /// Returns `None` if the claim has been released.
    pub(crate) fn publish(
        &self,
        claim: &Claim,
        id: AlgorithmId,
        word: u64,
        is_banned: bool,
    ) -> Option<()> {
        let (at, held) = (claim.at, claim.held);
        let live = SlotState::live(held.tag(), at.is_second(), id.plan(), id.version(), word);
        let live = match is_banned {
            true => live.banned_if(true),
            false => live.newcomer_if(held.has_evicted()),
        };
        self.table.establish(at, held, live).ok()?;
        self.events.count(Event::Inserted);
        Some(())
    }

    /// Releases a claim, if it is still there.
    pub(crate) fn release(&self, claim: &Claim) {
        let _ = self.table.release(claim.at, claim.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjustable::Keep;
    use crate::algorithm::TokenBucket;
    use crate::keyed::decide::Request;
    use crate::keyed::find::Table;
    use crate::keyed::plans::Plans;
    use crate::quota::Quota;
    use crate::store::operations::Acquire;

    /// Returns hashes that have the same two pairs of buckets.
    fn all_in_one_bucket_pair(table: &Table) -> impl Iterator<Item = u64> + '_ {
        let pairs = |hash| {
            let probe_seq = table.probe_seq(hash);
            (probe_seq.first() / 2, probe_seq.second() / 2)
        };
        let hashes = (1_u64..).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        hashes.filter(move |hash| pairs(*hash) == (77, 200))
    }

    #[test]
    fn an_eviction_during_a_quota_change_raises_the_horizon_no_further() {
        let second = |n: u64| Tick::from_nanos(n * 1_000_000_000);
        let bucket = TokenBucket::new(Quota::per_second(1)).expect("a bucket");
        let table = Table::with_capacity(1).expect("enough memory");
        let keys = Keys::new(table, Plans::one(bucket));
        let mut hashes = all_in_one_bucket_pair(keys.table());
        for hash in hashes.by_ref().take(16) {
            let request = Request::new(&keys, keys.table().probe_seq(hash), 0, second(1));
            assert!(request.run(Acquire { n: 1 }).is_ok());
        }
        let new = hashes.next().expect("hashes never end");
        let probe_seq = keys.table().probe_seq(new);
        let slot = keys.choose(&keys.table().look(&probe_seq), second(100), true);
        let slot = slot.expect("all are idle");
        assert!(matches!(slot.leaves, Some(Event::Expired)));
        // Under this quota each key has 1 of 1000 permits, and needs almost a year for the rest.
        let slow = Quota::per_day(3).burst(1000);
        keys.set_quota(0, slow, Keep::AsIs, second(101))
            .expect("the quota is valid");
        assert!(keys.claim(&probe_seq, &slot).is_some());
        assert_eq!(keys.horizon(), second(2));
    }
}
