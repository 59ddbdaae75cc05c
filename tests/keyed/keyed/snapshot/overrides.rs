//! A snapshot holds the words of keys with their own algorithms, and the parameters of these, but
//! no overrides. Each key uses the override that is set in the table, and the report says how many
//! overrides are the same, changed, removed or new.

use tollgate::error::RestoreError;
use tollgate::keyed::Restored;

use super::protected::are_restored;
use super::{next_table, read, table, ticks, whole, written};
use crate::keyed::spent_keys_stay::{are_protected, each, half_protected};
use crate::support::*;

/// Creates a table in which keys always have the same slots.
fn of(quota: &str, overrides: &[(&str, &str)]) -> Keyed<TokenBucket, ManualClock> {
    let limiter = table(bucket(quota), ticks(1.0)).with_overrides(10);
    let limiter = limiter.expect("one plan");
    for (key, quota) in overrides {
        assert_eq!(limiter.key(key).set_override(bucket(quota)), Ok(()));
    }
    limiter
}

/// Returns the numbers of keys whose own algorithm is the same, another, removed, or new.
fn found(restored: &Restored) -> [u64; 4] {
    let found = restored.overrides;
    [found.same, found.changed, found.missing, found.new]
}

#[test]
fn a_key_uses_the_override_of_the_table_and_the_report_says_so() {
    let overrides = [("alice", "1000/h"), ("bob", "500/h"), ("carol", "300/h")];
    let old = of("100/h", &overrides);
    for (key, n) in [("alice", 60), ("bob", 450), ("carol", 290), ("dave", 30)] {
        assert!(old.try_acquire_n(key, n).is_ok());
    }
    let bytes = written(&old);
    let overrides = [("alice", "1000/h"), ("bob", "70/h"), ("dave", "700/h")];
    let (next, restored) = whole(of("100/h", &overrides), &bytes);
    assert_eq!((restored.keys, found(&restored)), (4, [1; 4]));
    let left = ["alice", "bob", "carol", "dave"].map(|key| next.key(key).available());
    assert_eq!(left, [940, 50, 10, 70]);
    assert_eq!(next.overrides(), 3);
    // The current algorithm determines the refill.
    next.clock().advance(Duration::from_secs(36));
    let left = ["alice", "carol", "dave"].map(|key| next.key(key).available());
    assert_eq!(left, [950, 11, 77]);
    // The plan's quota does not affect it.
    let (next, restored) = whole(of("50/h", &[("alice", "1000/h")]), &bytes);
    assert_eq!(found(&restored), [1, 0, 2, 0]);
    // Bob had the maximum.
    assert_eq!((restored.keys, restored.idle), (2, 2));
    let left = ["alice", "bob", "carol", "dave"].map(|key| next.key(key).available());
    assert_eq!(left, [940, 50, 10, 50]);
}

/// A table with a random seed adopts that of the snapshot, so overrides must be set afterwards.
#[test]
fn overrides_set_before_a_restore_with_another_seed_are_refused() {
    let old = of("100/h", &[("alice", "1000/h")]);
    assert!(old.try_acquire_n("alice", 950).is_ok());
    let bytes = written(&old);
    let mut next = next_table(bucket("100/h"), ticks(1.0))
        .with_overrides(10)
        .expect("one plan");
    assert_eq!(next.key("alice").set_override(bucket("1000/h")), Ok(()));
    assert!(next.try_acquire_n("alice", 1).is_ok());
    let error = read(&mut next, &bytes).expect_err("of another seed");
    let is_it = matches!(error, RestoreError::OverridesOfAnotherSeed { overrides: 1 });
    assert!(
        is_it && error.to_string().contains("set them after the restore"),
        "{error}"
    );
    assert_eq!((next.key("alice").available(), next.overrides()), (999, 1));
    assert!(next.key("alice").remove_override());
    let restored = read(&mut next, &bytes).expect("whole");
    assert_eq!(found(&restored), [0, 0, 1, 0]);
    assert_eq!(next.key("alice").available(), 50);
    assert_eq!(next.key("alice").set_override(bucket("1000/h")), Ok(()));
    assert_eq!(next.key("alice").available(), 50);
    // A table without overrides reads it too.
    let (next, restored) = whole(next_table(bucket("100/h"), ticks(1.0)), &bytes);
    let actual = (found(&restored), next.key("alice").available());
    assert_eq!(actual, ([0, 0, 1, 0], 50));
    let (_, again) = whole(old.with_overrides(1).expect("one plan"), &written(&next));
    assert_eq!(found(&again), [0; 4]);
}

#[test]
fn bans_and_protection_are_restored_with_a_key_s_own_algorithm() {
    let old = of("100/h", &[("mallory", "1000/h"), ("trudy", "1000/h")]);
    for key in ["mallory", "trudy"] {
        assert!(old.key(key).ban_for(Duration::from_secs(60)).is_ok());
    }
    let until = old.key("mallory").banned_until().expect("banned");
    let bytes = written(&old);
    for overrides in [&[("mallory", "1000/h")][..], &[("mallory", "7/h")], &[]] {
        let (next, _) = whole(of("100/h", overrides), &bytes);
        for key in ["mallory", "trudy"] {
            let denied = next.try_acquire(key);
            assert!(matches!(denied, Err(Denied::Banned { .. })), "{denied:?}");
        }
        let again = next.key("mallory").banned_until().expect("still");
        assert!(again == until, "{again:?} {until:?}");
    }
    let owned = || {
        let limiter = crowded(bucket("100/min"))
            .with_overrides(16)
            .expect("one plan");
        let own = bucket("100/min");
        each(&limiter, |key| assert_eq!(key.set_override(own), Ok(())));
        limiter
    };
    let limiter = owned();
    half_protected(&limiter);
    let bytes = written(&limiter);
    let (next, restored) = whole(owned(), &bytes);
    assert_eq!(restored.keys, 16);
    each(&next, |key| assert!(key.remove_override()));
    are_protected(&next, 8);
    are_restored("100/min", &bytes, 8);
}

/// Keys of every kind, some with their own algorithms, keep their state in the next table.
#[test]
fn a_table_with_overrides_is_the_same_after_a_restart() {
    for (seed, algorithm) in (0..).zip(all()) {
        let mut random = Random(seed);
        let own = |limiter: &Keyed<AnyAlgorithm, ManualClock>| {
            for (key, own) in (0..).step_by(3).zip(all()) {
                assert_eq!(limiter.key(&(key as u64)).set_override(own), Ok(()));
            }
        };
        let made = || {
            let limiter = table(algorithm, ticks(100.0)).with_overrides(13);
            let limiter = limiter.expect("one plan");
            own(&limiter);
            limiter
        };
        let limiter = made();
        for key in 0..40_u64 {
            let _ = limiter.key(&key).take_up_to(1 + random.below(9));
        }
        let (next, restored) = whole(made(), &written(&limiter));
        assert_eq!((restored.keys, found(&restored)), (40, [13, 0, 0, 0]));
        for turn in 0..often(200) {
            let step = Duration::from_nanos(random.below(SECOND / 20));
            limiter.clock().advance(step);
            next.clock().advance(step);
            let (key, n) = (random.below(40), random.below(4));
            let [right, said] = [&limiter, &next].map(|limiter| {
                let view = limiter.key(&key);
                (view.take_up_to(n).n(), view.available(), view.time_until(2))
            });
            assert_eq!(said, right, "{turn} {key} {algorithm}");
        }
    }
}

/// If a key is written twice, because it left and came back meanwhile, the second entry counts.
#[test]
fn keys_are_written_in_the_order_of_their_slots() {
    let limiter = crowded(bucket("10/s")).with_overrides(1).expect("one plan");
    // In the first pair of buckets, in the middle, and in the last.
    let keys = [0_u64, 128, 255].map(|pair| pair << 52 | 0x1234_5678_9ABC);
    let [_, own, _] = keys;
    assert_eq!(limiter.key(&own).set_override(bucket("20/s")), Ok(()));
    for key in keys {
        assert!(limiter.try_acquire(&key).is_ok());
    }
    let bytes = written(&limiter);
    // Returns the hash, and whether there are other bits beside the plan's.
    let place = |key: u64| {
        let mut numbers = bytes.windows(8);
        let is_it = |number: &[u8]| {
            let number = u64::from_le_bytes(number.try_into().expect("eight"));
            number & !0b1110 == key << 4
        };
        numbers.position(is_it).expect("it is there")
    };
    let places = keys.map(place);
    assert!(places.is_sorted(), "{places:?}");
}
