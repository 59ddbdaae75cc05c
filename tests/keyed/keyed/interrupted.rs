//! Decisions that are interrupted between their read and their write, on one thread. Meanwhile
//! others decide on the same key, take its slot or change the quota. Or the decision never
//! continues, and its claim holds a slot until another key needs the slot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::support::hooks::{Call, Hooked, at_call, unhook};
use crate::support::*;

/// Returns a table in which a new key with a tick before `NOW` counts at `NOW`. Its word is
/// computed twice: before its slot is claimed and afterwards.
fn table_of_latecomers(overflow: Overflow) -> Keyed<Hooked, ManualClock, IdentityState> {
    let mut limiter = table(Hooked(bucket("1/h"))).with_overflow(overflow);
    let mut bytes = Vec::new();
    limiter.snapshot(&mut bytes).expect("there is memory");
    // A key that is not in a snapshot was idle when it was written, so this raises the horizon.
    let restored = limiter.restore_after(&mut bytes.as_slice(), Duration::ZERO);
    assert_eq!(restored.expect("whole").keys, 0);
    limiter.with_hasher(IdentityState::default())
}

#[test]
fn abandoned_claims_are_reused_before_a_key_is_evicted() {
    let (evict, deny) = (Overflow::Evict, Overflow::Deny);
    for (overflow, stopped) in [(evict, 15), (evict, 1), (deny, 9)] {
        let limiter = table_of_latecomers(overflow);
        let (dead, others) = in_sixteen_slots(16 + stopped).split_at(stopped);
        for key in dead {
            // The first operation is on a fresh word, the second on the claim.
            at_call(Call::Step, 1, || panic!("it stops"));
            let decision = catch_unwind(AssertUnwindSafe(|| {
                limiter.key(key).at(tick(NOW - 1)).try_acquire()
            }));
            assert!(decision.is_err(), "{decision:?}");
            assert!(!unhook());
        }
        for key in others {
            assert!(limiter.try_acquire(key).is_ok(), "there is room");
        }
        let stats = limiter.stats();
        let counts = (stats.tracked, stats.evicted, stats.no_room);
        assert_eq!(counts, (16, 0, 0), "{overflow:?}, {stopped}");
    }
}

/// One of two permits is taken. A decision on the other one is interrupted after it has computed
/// its result. Returns whether that decision grants the permit, and how many are left.
#[test]
fn a_decision_counts_the_decisions_that_interrupted_it() {
    for (meanwhile, is_granted, left) in [
        ("taken", false, 0),
        ("forgotten", true, 1),
        ("forgotten and taken", false, 0),
        ("reset", true, 1),
        ("banned", false, 0),
        ("under a smaller burst", true, 0),
    ] {
        for changes in [0, 1] {
            let limiter = Rc::new(crowded(Hooked(bucket("2/h"))));
            for _ in 0..changes {
                let quota = Quota::per_hour(2);
                limiter.set_quota(quota, Keep::Fresh).expect("a quota");
            }
            let (key, others) = (limiter.key(&1_u64), Rc::clone(&limiter));
            assert!(key.try_acquire().is_ok());
            at_call(Call::Step, 0, move || {
                let key = others.key(&1_u64);
                let done = match meanwhile {
                    "taken" => key.take_up_to(1).n() == 1,
                    "forgotten" => key.remove(),
                    "forgotten and taken" => key.remove() && key.take_up_to(2).n() == 2,
                    "banned" => key.ban(tick(NOW + SECOND)).is_ok(),
                    "reset" => (key.reset(), true).1,
                    _ => others.set_quota(Quota::per_hour(1), Keep::AsIs).is_ok(),
                };
                assert!(done, "{meanwhile}");
            });
            assert_eq!(key.try_acquire().is_ok(), is_granted, "{meanwhile}");
            assert!(!unhook(), "the decision was not interrupted");
            assert_eq!(key.available(), left, "{meanwhile}");
        }
    }
}

#[test]
fn a_key_that_is_banned_during_a_refund_gets_nothing_back() {
    let limiter = Rc::new(crowded(Hooked(bucket("2/h"))));
    let (key, others) = (limiter.key(&1_u64), Rc::clone(&limiter));
    let granted = key.take_up_to(2);
    at_call(Call::Step, 0, move || {
        assert!(others.key(&1_u64).ban(tick(NOW + SECOND)).is_ok());
    });
    assert_eq!((key.undo(granted), unhook()), (0, false));
    assert_eq!((key.refund(1), key.available()), (0, 0));
}

/// Returns such a table with these keys, each of which was granted once.
fn full_of(keys: &[u64]) -> Rc<Keyed<Hooked, ManualClock, IdentityState>> {
    let limiter = table_of_latecomers(Overflow::Deny);
    assert!(keys.iter().all(|key| limiter.try_acquire(key).is_ok()));
    Rc::new(limiter)
}

/// While a new key looks for a slot, another slot becomes free, and another caller inserts the same
/// key there. The key has one slot and one burst.
#[test]
fn a_key_that_another_caller_inserts_meanwhile_has_one_slot() {
    let (there, new) = in_sixteen_slots(17).split_at(16);
    for free in there.iter().step_by(3) {
        for freed in there.iter().filter(|key| *key != free) {
            // Before the slot is claimed, and before the claim is established.
            for step in [0, 1] {
                let limiter = full_of(there);
                assert!(limiter.key(free).remove());
                let others = Rc::clone(&limiter);
                at_call(Call::Step, step, move || {
                    assert!(others.key(freed).remove());
                    assert!(others.try_acquire(&new[0]).is_ok());
                });
                let decision = limiter.key(&new[0]).at(tick(NOW - 1)).try_acquire();
                assert!(decision.is_err(), "{free} {freed} {step}");
                assert!(!unhook(), "the decision was not interrupted");
                assert!(limiter.key(&new[0]).remove() && !limiter.key(&new[0]).remove());
                assert_eq!((limiter.len(), limiter.stats().inserted), (14, 17));
            }
        }
    }
}

/// While a new key finds all its slots taken, one becomes free, and another caller inserts the same
/// key there. The key is found then: the decision is its own, and not one without room.
#[test]
fn a_key_that_another_caller_inserts_into_the_last_slot_has_room() {
    let (there, new) = in_sixteen_slots(17).split_at(16);
    for freed in there {
        let limiter = full_of(there);
        let others = Rc::clone(&limiter);
        at_call(Call::Step, 0, move || {
            assert!(others.key(freed).remove());
            assert!(others.try_acquire(&new[0]).is_ok());
        });
        let denied = limiter.try_acquire(&new[0]).expect_err("one an hour");
        assert!(denied.retry_after().is_some(), "{freed}: {denied}");
        assert!(!unhook(), "the decision was not interrupted");
        assert_eq!((limiter.len(), limiter.stats().no_room), (16, 0));
    }
}
