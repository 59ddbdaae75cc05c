//! Keys with their own algorithms: how many there may be, what they keep through bans, plans,
//! evictions and changes, and that no permits are gained. (`exact.rs` compares every answer with a
//! model, and `churn.rs` the evictions.)

use tollgate::error::{LimiterError, QuotaError};
use tollgate::keyed::SeededHasher;

use crate::support::model::Said;
use crate::support::*;

fn of_bucket(quota: &str, overrides: usize) -> Keyed<TokenBucket, ManualClock> {
    let table = table(bucket(quota)).with_overrides(overrides);
    table.expect("one plan")
}

fn left<A: ChangeQuota>(limiter: &Keyed<A, ManualClock>, key: &str) -> u64 {
    limiter.key(key).available()
}

#[test]
fn a_table_without_overrides_refuses_them_by_name() {
    let limiter = table(bucket("5/h"));
    let refused = limiter.key("alice").set_override(bucket("100/h"));
    let error = refused.expect_err("it has none");
    let expected = (LimiterError::NoOverrides, "overrides");
    assert_eq!((error, error.field()), expected);
    assert!(error.to_string().contains("with_overrides"), "{error}");
    let refused = limiter.key("alice").set_quota(Quota::per_hour(100));
    assert_eq!(refused, Err(LimiterError::NoOverrides));
    assert!(
        !limiter.key("alice").remove_override()
            && limiter.key("alice").override_algorithm().is_none()
    );
    assert_eq!((limiter.overrides(), limiter.max_overrides()), (0, 0));
    assert_eq!(left(&limiter, "alice"), 5);
}

#[test]
fn impossible_numbers_of_overrides_are_errors() {
    let made = |n| table(bucket("5/h")).with_overrides(n).map(|_| ());
    assert_eq!(made(0), Err(LimiterError::ZeroOverrides));
    let max = 1 << 20;
    for overrides in [max + 1, usize::MAX / 2, usize::MAX] {
        let error = LimiterError::TooManyOverrides { overrides, max };
        assert_eq!((made(overrides), error.field()), (Err(error), "overrides"));
        assert!(
            error.to_string().contains(&overrides.to_string()),
            "{error}"
        );
    }
    assert_eq!(made(1000), Ok(()));
    let of_plans = |plans| with_plans(&vec![bucket("5/h"); plans]).with_overrides(1);
    assert_eq!(of_plans(7).expect("one is left").plans(), 7);
    let (plans, max) = (8, 7);
    let error = of_plans(8).map(|_| ()).expect_err("none is left");
    assert_eq!(error, LimiterError::TooManyPlans { plans, max });
}

#[test]
fn an_override_too_many_is_an_error_that_names_the_bound_and_changes_nothing() {
    let limiter = of_bucket("5/h", 3);
    for key in ["a", "b", "c"] {
        assert_eq!(limiter.key(key).set_override(bucket("100/h")), Ok(()));
    }
    let max = 3;
    let error = limiter
        .key("d")
        .set_override(bucket("100/h"))
        .expect_err("one too many");
    assert_eq!(error, LimiterError::OverridesInUse { max });
    assert!(error.to_string().contains("at most 3 keys"), "{error}");
    assert_eq!((left(&limiter, "d"), limiter.overrides()), (5, 3));
    // A key with an override may get another one, and a removed override is free for another key.
    assert_eq!(limiter.key("a").set_override(bucket("50/h")), Ok(()));
    assert!(limiter.key("b").remove_override());
    assert_eq!(limiter.key("d").set_override(bucket("70/h")), Ok(()));
    let all = ["a", "b", "c", "d"].map(|key| left(&limiter, key));
    assert_eq!(all, [50, 5, 100, 70]);
    let quota = Quota::per_hour(7).burst(0);
    let refused = limiter.key("a").set_quota(quota);
    assert_eq!(refused, Err(QuotaError::ZeroBurst.into()));
    let refused = limiter.key("a").with_plan(1).set_quota(Quota::per_hour(7));
    assert_eq!(refused, Err(LimiterError::NoSuchPlan { plan: 1, plans: 1 }));
    assert_eq!(left(&limiter, "a"), 50);
}

/// Each of many keys has its own algorithm, and all others the plan's, after any history of
/// overrides.
#[test]
fn overrides_are_found_by_their_own_keys_only_and_entries_are_reused() {
    let limiter = of_bucket("5/h", 100);
    let (mut random, mut owned) = (Random(11), std::collections::HashMap::new());
    for turn in 0..20_000_u64 {
        let key = random.below(300);
        if owned.contains_key(&key) && random.one_in(3) {
            assert!(limiter.key(&key).remove_override());
            owned.remove(&key);
        } else if owned.contains_key(&key) || owned.len() < 100 {
            let n = 10 + turn % 1000;
            assert_eq!(limiter.key(&key).set_quota(Quota::per_hour(n)), Ok(()));
            owned.insert(key, n);
        }
        let key = random.below(300);
        let right = owned.get(&key).copied().unwrap_or(5);
        assert_eq!(limiter.key(&key).available(), right, "{turn} {key}");
    }
    assert!(owned.len() > 50 && limiter.overrides() == owned.len());
    assert!(limiter.is_empty());
}

#[test]
fn an_evicted_removed_or_idle_key_comes_back_with_its_own_algorithm() {
    let limiter = crowded(bucket("1/s burst 5")).with_overrides(1);
    let limiter = limiter.expect("one plan");
    let keys = in_sixteen_slots(120);
    let (alice, others) = keys.split_first().expect("many");
    let actual = limiter.key(alice).set_override(bucket("2/s burst 20"));
    assert_eq!(actual, Ok(()));
    let fresh = || assert_eq!(limiter.key(alice).available(), 20);
    fresh();
    assert!(limiter.try_acquire_n(alice, 10).is_ok());
    assert!(limiter.key(alice).remove());
    fresh();
    // This key has spent half of its burst, and all others more of theirs, so it is evicted first.
    assert!(limiter.try_acquire_n(alice, 10).is_ok());
    for key in &others[..60] {
        assert!(limiter.try_acquire_n(key, 5).is_ok());
    }
    assert!(limiter.stats().evicted >= 45);
    fresh();
    // It is idle after ten seconds, and not before.
    limiter.clock().advance(Duration::from_secs(100));
    assert!(limiter.try_acquire_n(alice, 20).is_ok());
    limiter
        .clock()
        .advance(Duration::from_nanos(10 * SECOND - 1));
    assert!(!limiter.key(alice).at(limiter.key(alice).now()).is_idle());
    limiter.clock().advance(Duration::from_nanos(1));
    let expired = limiter.stats().expired;
    for key in &others[60..90] {
        assert!(limiter.try_acquire_n(key, 5).is_ok());
    }
    assert!(limiter.stats().expired >= expired + 16);
    fresh();
}

/// The verbs of every plan use the key's own algorithm. Without it the key moves to the plan that
/// is named.
#[test]
fn a_key_uses_its_own_algorithm_in_every_plan_and_then_the_plan_that_is_named() {
    let plans = [bucket("5/h"), bucket("50/h")];
    let limiter = with_plans(&plans).with_overrides(2).expect("two plans");
    let alice = limiter.key("alice");
    assert!(alice.with_plan(1).try_acquire_n(10).is_ok());
    assert_eq!(alice.set_override(bucket("1000/h")), Ok(()));
    let of = |plan: usize| alice.with_plan(plan).available();
    assert_eq!([of(0), of(1)], [40, 40]);
    let mut outcomes = [const { Err(Denied::busy(1)) }; 3];
    let many = limiter.try_acquire_batch(&["alice", "bob", "alice"], &mut outcomes);
    assert!(many.is_ok() && outcomes.iter().all(Result::is_ok));
    assert_eq!((of(1), limiter.key("bob").available()), (38, 4));
    // An unknown plan is unknown for this key too.
    let is_refused = || {
        for plan in [2, 6, 7, 8, 255, usize::MAX] {
            let denied = alice.with_plan(plan).try_acquire();
            assert!(matches!(denied, Err(Denied::NoSuchPlan { .. })), "{plan}");
        }
    };
    is_refused();
    // Changes of the plans' quotas do not affect it.
    let set = limiter.set_plan_quota(1, Quota::per_hour(60), Keep::Fresh);
    assert_eq!((set, of(1)), (Ok(()), 38));
    is_refused();
    assert!(alice.with_plan(1).remove_override());
    assert_eq!(of(1), 38);
    assert_eq!(alice.with_plan(1).set_quota(Quota::per_hour(90)), Ok(()));
    let actual = (of(1), alice.remove_override(), of(1));
    assert_eq!(actual, (38, true, 5));
}

/// The key keeps its permits, up to what the new algorithm holds. Repeated changes gain nothing.
#[test]
fn changes_gain_no_permits_and_forgive_no_debt() {
    let limiter = of_bucket("5/h", 1);
    let [alice, bob] = ["alice", "bob"].map(|key| limiter.key(key));
    assert_eq!(alice.charge(12).debt(), 7);
    for turn in 0..100_u64 {
        let own = bucket(&format!("{}/h", 1 + turn * 7 % 200));
        assert_eq!(alice.set_override(own), Ok(()));
        if turn % 3 == 0 {
            assert!(alice.remove_override());
        }
        assert_eq!(alice.available(), 0);
    }
    alice.remove_override();
    let due = alice.time_until(1).expect("in time");
    assert!(due >= Duration::from_secs(8 * 720), "{due:?}");
    // A grant from before returns nothing under another algorithm.
    let granted = limiter.try_acquire_n("bob", 3).expect("fresh");
    assert_eq!(bob.set_override(bucket("100/h")), Ok(()));
    let actual = (bob.undo(granted), bob.available());
    assert_eq!(actual, (0, 2));
    let granted = limiter.try_acquire_n("bob", 2).expect("there");
    assert_eq!(bob.set_override(bucket("100/h")), Ok(()));
    let actual = (bob.undo(granted), bob.available());
    assert_eq!(actual, (0, 0));
    let granted = bob.at(tick(NOW + 3600 * SECOND)).take_up_to(9);
    assert_eq!(bob.undo(granted), 9);
}

#[test]
fn a_ban_ends_at_its_tick_after_any_change_of_the_algorithm() {
    for (one, other) in every().into_iter().zip(every().into_iter().rev()) {
        let limiter = table(one).with_overrides(1).expect("one plan");
        let long = 40 * 60 * SECOND;
        let mallory = limiter.key("mallory");
        mallory.ban(tick(NOW + long)).expect("there is room");
        let over = mallory.banned_until().expect("banned");
        for own in [Some(other), Some(one), Some(other), None] {
            match own {
                Some(own) => assert_eq!(mallory.set_override(own), Ok(())),
                None => assert!(mallory.remove_override()),
            }
            let until = mallory.banned_until().expect("still");
            // A window can't begin in the middle of another, so the ban may end later.
            assert!(until >= over, "{one} {other}");
            let denied = limiter.try_acquire("mallory");
            assert!(matches!(denied, Err(Denied::Banned { .. })), "{denied:?}");
        }
    }
    // This also holds for a key that a ban inserted.
    let limiter = of_bucket("5/h", 1);
    let mallory = limiter.key("mallory");
    assert_eq!(mallory.set_override(bucket("100/s")), Ok(()));
    let minute = Duration::from_secs(60);
    mallory.ban_for(minute).expect("there is room");
    let expected = Some(tick(NOW + 60 * SECOND + SECOND / 100));
    assert_eq!(mallory.banned_until(), expected);
    mallory.reset();
    assert_eq!(left(&limiter, "mallory"), 100);
}

/// Keys with equal tags in different pairs of buckets, which a slot alone does not distinguish, and
/// keys with equal 60 bits.
#[test]
fn keys_with_nearly_equal_hashes_have_their_own_algorithms() {
    let limiter = crowded(algorithm("token-bucket 36/h burst 5"));
    let limiter = limiter.with_overrides(256).expect("one plan");
    let alike = || (1..=256_u64).map(|n| (n, (n - 1) << 52 | 0x1234_5678_9ABC));
    for (n, key) in alike() {
        // After 32 changes the override number in a slot repeats. The earlier algorithm with that
        // number is a window if the current one is a bucket.
        let own = match (n - 1) / 32 % 2 {
            0 => format!("fixed-window {n}/h"),
            _ => format!("token-bucket 36/h burst {n}"),
        };
        assert_eq!(limiter.key(&key).set_override(algorithm(&own)), Ok(()));
        assert!(limiter.try_acquire(&key).is_ok());
    }
    // No busy key is mistaken for an idle one.
    assert_eq!(limiter.stats().idle, 0);
    for (n, key) in alike() {
        assert_eq!(limiter.key(&key).available(), n - 1);
        assert_eq!(limiter.key(&(key | 1 << 60)).available(), n - 1);
        assert!(limiter.try_acquire_n(&key, n).is_err());
    }
    limiter.clock().advance(Duration::from_secs(100 * 300));
    for (_, key) in alike() {
        assert!(limiter.key(&key).remove_override());
    }
    // Four of them had fewer permits than the plan gives.
    assert_eq!((limiter.overrides(), limiter.stats().idle), (0, 252));
}

/// Such a key is answered as a fresh key of its own algorithm.
#[test]
fn a_key_without_room_is_answered_by_its_own_algorithm() {
    for overflow in [Overflow::Deny, Overflow::Admit] {
        let limiter = crowded(bucket("5/h")).with_overflow(overflow);
        let limiter = limiter.with_overrides(1).expect("one plan");
        let keys = in_sixteen_slots(17);
        let (alice, others) = keys.split_first().expect("many");
        for key in others {
            assert!(limiter.try_acquire(key).is_ok());
        }
        assert_eq!(limiter.key(alice).set_override(bucket("100/h")), Ok(()));
        let said = limiter.try_acquire_n(alice, 50);
        match overflow {
            Overflow::Deny => assert_eq!(said, Err(Denied::no_room(50))),
            _ => assert_eq!(said.map(|granted| granted.remaining()), Ok(50)),
        }
        let said = (limiter.key(alice).available(), limiter.stats().no_room);
        assert_eq!(said, (100, 1));
    }
}

#[test]
fn a_new_hasher_or_bound_removes_all_overrides() {
    let limiter = of_bucket("5/h", 2);
    assert_eq!(limiter.key("alice").set_override(bucket("100/h")), Ok(()));
    assert!(limiter.try_acquire("alice").is_ok());
    let limiter = limiter.with_hasher(SeededHasher::new([1, 2]));
    assert_eq!((limiter.overrides(), limiter.max_overrides()), (0, 2));
    assert_eq!(left(&limiter, "alice"), 5);
    assert_eq!(limiter.key("alice").set_override(bucket("100/h")), Ok(()));
    assert!(limiter.try_acquire("alice").is_ok());
    let limiter = limiter.with_overrides(9).expect("one plan");
    let there = (limiter.overrides(), limiter.max_overrides(), limiter.len());
    assert_eq!((there, left(&limiter, "alice")), ((0, 9, 0), 5));
}

/// While threads decide at a standing clock, another thread changes the algorithms of their keys.
#[test]
fn threads_get_no_more_than_a_burst_while_algorithms_change() {
    deadline("threads and changes", || {
        const KEYS: u64 = 3;
        let limiter = of_bucket("10/s burst 1000", KEYS as usize - 1);
        let granted = on_threads(0..3, |id| {
            let mut granted = [0; KEYS as usize];
            if id == 0 {
                for turn in 0..2_000_u64 {
                    // An absent key would get another burst.
                    let key = turn % KEYS;
                    if limiter.key(&key).available() == 1000 {
                        continue;
                    }
                    match turn / KEYS % 4 {
                        3 => {
                            limiter.key(&key).remove_override();
                        }
                        n => {
                            // Intervals of whole nanoseconds, so that nothing is rounded.
                            let rate = [5, 20, 40][n as usize];
                            let own = bucket(&format!("{rate}/s burst {}", 1000 + n));
                            let _ = limiter.key(&key).set_override(own);
                        }
                    }
                }
            } else {
                for turn in 0..4_000 {
                    let key = turn % KEYS;
                    let took = limiter.try_acquire(&key).is_ok();
                    granted[key as usize] += u64::from(took);
                }
            }
            granted
        });
        for key in 0..KEYS {
            let taken: u64 = granted.iter().map(|of| of[key as usize]).sum();
            let all = taken + limiter.key(&key).available();
            assert_eq!(all, 1000, "{taken} of {key}");
        }
    });
}

/// Any algorithm may be a key's own in a table of any other kind.
#[test]
fn a_key_may_have_an_algorithm_of_another_kind() {
    let kinds = all();
    for (one, other) in kinds.iter().zip(kinds.iter().rev()) {
        let limiter: Keyed<AnyAlgorithm, _, IdentityState> = crowded(*one);
        let limiter = limiter.with_overrides(1).expect("one plan");
        let now = tick(NOW);
        assert_eq!(limiter.key(&7_u64).at(now).set_override(*other), Ok(()));
        let alone = table(*other);
        for n in [1, 2, 0, 3, 1, 1, 9] {
            let said = Said(limiter.key(&7_u64).at(now).try_acquire_n(n).into());
            let right = Said(alone.key(&7_u64).at(now).try_acquire_n(n).into());
            assert_eq!(said, right, "{one} {other}");
        }
        assert_eq!(limiter.key(&7_u64).override_algorithm(), Some(*other));
    }
}
