//! A claim whose owner has stopped holds a place until that is needed, and then nobody has to leave for it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::{
    Algorithm, Denied, Granted, Keyed, ManualClock, Overflow, Quota, Tick, TokenBucket,
};

use crate::{Chosen, in_sixteen_slots};

/// After so many steps it panics, in the middle of a decision.
struct Stops<'s> {
    bucket: TokenBucket,
    steps: &'s Cell<u64>,
}

impl Algorithm for Stops<'_> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let left = self.steps.get();
        self.steps.set(left.wrapping_sub(1));
        assert!(left != 0, "it stops");
        self.bucket.step(word, now, n)
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.bucket.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.bucket.is_idle(word, now)
    }
}

#[test]
fn nobody_is_evicted_while_there_are_claims_of_those_who_have_stopped() {
    for (overflow, stopped) in [
        (Overflow::Evict, 15),
        (Overflow::Evict, 1),
        (Overflow::Deny, 9),
    ] {
        let steps = &Cell::new(u64::MAX);
        let bucket = TokenBucket::new(Quota::per_hour(1)).expect("a bucket");
        let stops = Stops { bucket, steps };
        let gate = Keyed::with_clock(stops, 1, ManualClock::new()).expect("a table");
        let gate = gate.with_hasher(Chosen::default()).with_overflow(overflow);
        let keys = in_sixteen_slots(16 + stopped);
        let (dead, others) = keys.split_at(stopped);
        for key in dead {
            // The first step is of a fresh word, and the second that of the claim.
            steps.set(1);
            let decision = catch_unwind(AssertUnwindSafe(|| gate.try_acquire(key)));
            assert!(decision.is_err(), "{decision:?}");
        }
        steps.set(u64::MAX);
        for key in others {
            assert!(gate.try_acquire(key).is_ok(), "there is room");
        }
        let stats = gate.stats();
        assert_eq!(
            (stats.tracked, stats.evicted, stats.no_room),
            (16, 0, 0),
            "{overflow:?}, {stopped}"
        );
    }
}
