//! A snapshot records which keys are protected. If there is no room for all, the others are dropped
//! first.

use tollgate::keyed::Restored;

use super::{whole, written};
use crate::keyed::spent_keys_stay::{are_protected, each, half_protected};
use crate::support::*;

/// Restores sixteen keys into a table of this quota, and checks how many of them are protected.
pub(super) fn are_restored(quota: &str, bytes: &[u8], protected: u64) {
    let (next, restored) = whole(crowded(bucket(quota)), bytes);
    assert_eq!(restored.keys, 16);
    are_protected(&next, protected);
}

/// Covers another quota, another plan, and a later time.
#[test]
fn protected_keys_stay_protected_after_a_restore() {
    let limiter = crowded(bucket("100/min"));
    half_protected(&limiter);
    let bytes = written(&limiter);
    for quota in ["100/min", "90/min", "1000/d"] {
        are_restored(quota, &bytes, 8);
        let mut next = crowded(bucket(quota));
        let elapsed = Duration::from_secs(3);
        assert!(next.restore_after(&mut &*bytes, elapsed).is_ok());
        // Saved and restored again.
        are_restored(quota, &written(&next), 8);
    }
    // Banned keys stay protected too.
    let until = tick(NOW + SECOND);
    each(&limiter, |key| assert!(key.ban(until).is_ok()));
    for quota in ["100/min", "90/min"] {
        are_restored(quota, &written(&limiter), 8);
    }
    // Keys of a plan that no longer exists continue in the first one.
    let plans = [bucket("100/min"), bucket("100/min")];
    let limiter = with_plans(&plans).with_hasher(IdentityState::default());
    half_protected(&limiter);
    each(&limiter, |key| assert_eq!(key.with_plan(1).refund(1), 1));
    are_restored("100/min", &written(&limiter), 8);
}

/// A change of the quota separates keys of the old version from keys of the new one.
#[test]
fn protected_keys_stay_protected_after_a_restore_and_a_change() {
    let limiter = crowded(bucket("100/min"));
    half_protected(&limiter);
    let quota = Quota::per_minute(90).burst(100);
    assert!(limiter.set_quota(quota, Keep::AsIs).is_ok());
    let next = bucket("100/min").with_quota(quota).expect("a quota");
    let (next, _) = whole(crowded(next), &written(&limiter));
    are_protected(&next, 8);
}

type Table = Keyed<TokenBucket, ManualClock>;

const KEYS: u64 = 5_000;

/// Fills a table with five thousand keys and restores its snapshot into one of 2048 slots. Every
/// `one_in`th key takes two permits in two grants, and the others spend everything at once.
fn into_a_smaller_one(one_in: u64) -> (Table, Restored) {
    let limiter = of_capacity(10_000, bucket("100/min"));
    for key in 0..KEYS {
        let parts: &[u64] = if key % one_in == 0 { &[1, 1] } else { &[100] };
        for part in parts {
            assert!(limiter.try_acquire_n(&key, *part).is_ok());
        }
    }
    assert_eq!((limiter.len() as u64, limiter.stats().evicted), (KEYS, 0));
    let (next, restored) = whole(of_capacity(1, bucket("100/min")), &written(&limiter));
    let stats = next.stats();
    assert_eq!(restored.keys + restored.no_room, KEYS);
    let expected = [restored.keys, restored.no_room];
    assert_eq!([stats.tracked, stats.evicted], expected);
    assert_eq!((stats.inserted, stats.no_room), (KEYS, 0));
    (next, restored)
}

/// Returns how many of the protected keys have exactly what they had.
fn kept(limiter: &Table, one_in: u64) -> u64 {
    let keys = (0..KEYS).step_by(one_in as usize);
    let left = keys.map(|key| limiter.key(&key).available());
    left.filter(|left| *left == 98).count() as u64
}

/// Each of many blocks marks its own protected keys.
#[test]
fn protected_keys_are_dropped_last_when_there_is_no_room() {
    // If one key is protected, or a tenth of all keys, all protected keys have room.
    for one_in in [KEYS, 10] {
        let (limiter, _) = into_a_smaller_one(one_in);
        assert_eq!(kept(&limiter, one_in), KEYS / one_in);
        assert_eq!(limiter.stats().evicted_protected, 0);
    }
    // If half of the keys are protected, or all, some protected keys are dropped too.
    for one_in in [2, 1] {
        let (limiter, restored) = into_a_smaller_one(one_in);
        let (protected, kept) = (KEYS / one_in, kept(&limiter, one_in));
        assert_eq!(limiter.stats().evicted_protected, protected - kept);
        // Unprotected keys stay only in slots that no protected key can use.
        let least = restored.keys * if one_in == 1 { 100 } else { 95 } / 100;
        assert!(kept >= least, "{kept} of {restored:?}");
    }
}
