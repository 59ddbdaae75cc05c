//! A snapshot that is written while threads decide holds each key as it was at one moment.

use std::thread;
use std::time::Duration;
use tollgate::primitive::{AtomicU64, Ordering};

use tollgate::{Keep, Quota};

use crate::{Random, bucket, table, ticks};

/// Says that it is over, also if that is because something went wrong.
struct SaysOver<'a>(&'a AtomicU64);

impl Drop for SaysOver<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

const KEYS: u64 = 500;
const ROUNDS: u64 = 10;

/// What a key has taken is between what it had when the snapshot was begun and when it was over.
#[test]
fn a_key_is_as_it_was_meanwhile() {
    let gate = table(bucket("1/h burst 1000000"), ticks(1.0));
    let taken = |gate: &tollgate::Keyed<_, _>| -> Vec<u64> {
        (0..KEYS)
            .map(|key| 1_000_000 - gate.key(&key).available())
            .collect()
    };
    let is_over = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (gate, is_over) = (&gate, &is_over);
            scope.spawn(move || {
                let mut random = Random(seed);
                while is_over.load(Ordering::Relaxed) == 0 {
                    let _ = gate.try_acquire(&random.below(KEYS));
                }
            });
        }
        let _says_over = SaysOver(&is_over);
        for _ in 0..ROUNDS {
            let before = taken(&gate);
            let mut bytes = Vec::new();
            gate.snapshot(&mut bytes).expect("nothing fails");
            let after = taken(&gate);
            let mut next = table(bucket("1/h burst 1000000"), ticks(1.0));
            next.restore_after(&mut bytes.as_slice(), Duration::ZERO)
                .expect("whole");
            for (key, took) in taken(&next).into_iter().enumerate() {
                assert!(before[key] <= took && took <= after[key], "{key}");
            }
        }
    });
}

/// A word is never taken for one of another quota.
#[test]
fn the_quota_may_change_meanwhile() {
    let gate = table(bucket("1/h burst 1000"), ticks(1.0));
    for key in 0..KEYS {
        let _ = gate.try_acquire_n(&key, 100).expect("fresh");
    }
    let is_over = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // 900 are left by each quota, of which one has a hundred times as many units a permit.
            for turn in 0.. {
                let hours = if turn % 2 == 0 { 100 } else { 1 };
                let quota = Quota::per(1, Duration::from_secs(3600 * hours)).burst(1000);
                gate.set_quota(quota, Keep::AsIs).expect("a quota");
                if is_over.load(Ordering::Relaxed) != 0 {
                    break;
                }
            }
        });
        scope.spawn(|| {
            let mut random = Random(2);
            while is_over.load(Ordering::Relaxed) == 0 {
                let _ = gate.try_acquire_n(&random.below(KEYS), 0);
                let _ = gate.key(&random.below(KEYS)).take_up_to(0);
            }
        });
        let _says_over = SaysOver(&is_over);
        for _ in 0..ROUNDS {
            let mut bytes = Vec::new();
            assert_eq!(gate.snapshot(&mut bytes).expect("nothing fails"), KEYS);
            let mut next = table(bucket("1/min burst 1000"), ticks(1.0));
            next.restore_after(&mut bytes.as_slice(), Duration::ZERO)
                .expect("whole");
            for key in 0..KEYS {
                assert_eq!(next.key(&key).available(), 900, "{key}");
            }
        }
    });
}
