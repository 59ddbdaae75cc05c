//! A snapshot written while threads decide holds each key as it was at one moment.

use super::{next_table, table, ticks, whole, written};
use crate::support::*;

type Table = Keyed<TokenBucket, ManualClock>;

const KEYS: u64 = 500;

/// Two threads do this repeatedly, while one examines snapshots.
fn meanwhile(work: impl Fn(&mut Random, u64) + Sync, look: impl Fn() + Sync) {
    on_threads(0..3, |id| match id {
        0 => (0..5).for_each(|_| look()),
        _ => {
            let mut random = Random(id);
            let turns = (0..often(2_000)).map(|turn| 2 * turn + id);
            turns.for_each(|turn| work(&mut random, turn));
        }
    });
}

fn all(limiter: &Table) -> Vec<u64> {
    let keys = 0..KEYS;
    keys.map(|key| limiter.key(&key).available()).collect()
}

/// A key's permits are between what it had when the snapshot began and when it ended.
#[test]
fn a_snapshot_holds_each_key_as_it_was_at_one_moment() {
    deadline("threads that decide during a snapshot", || {
        let limiter = table(bucket("1/h burst 1000000"), ticks(1.0));
        let work = |random: &mut Random, _| {
            let _ = limiter.try_acquire(&random.below(KEYS));
        };
        meanwhile(work, || {
            let before = all(&limiter);
            let bytes = written(&limiter);
            let after = all(&limiter);
            let (next, _) = whole(next_table(bucket("1/h burst 1000000"), ticks(1.0)), &bytes);
            for (key, left) in all(&next).into_iter().enumerate() {
                assert!(before[key] >= left && left >= after[key], "{key}");
            }
        });
    });
}

/// A word is never read under another quota.
#[test]
fn a_snapshot_during_a_change_of_the_quota_is_consistent() {
    deadline("quotas that change during a snapshot", || {
        let limiter = table(bucket("1/h burst 1000"), ticks(1.0));
        for key in 0..KEYS {
            let _ = limiter.try_acquire_n(&key, 100).expect("fresh");
        }
        let work = |random: &mut Random, turn| {
            if turn % 8 == 0 {
                // 900 are left by each quota. One has a hundred times as many units a permit.
                let hours = if turn % 16 == 0 { 100 } else { 1 };
                let quota = Quota::per(1, Duration::from_secs(3600 * hours)).burst(1000);
                limiter.set_quota(quota, Keep::AsIs).expect("a quota");
            } else {
                let _ = limiter.try_acquire_n(&random.below(KEYS), 0);
                let _ = limiter.key(&random.below(KEYS)).take_up_to(0);
            }
        };
        meanwhile(work, || {
            let (next, restored) = whole(
                next_table(bucket("1/min burst 1000"), ticks(1.0)),
                &written(&limiter),
            );
            assert_eq!(restored.keys, KEYS);
            assert_eq!(all(&next), [900; KEYS as usize]);
        });
    });
}
