//! Failures of other keyed limiters, each as a regression test.

use crate::support::*;

/// Returns one algorithm of each kind, with `n` permits an hour.
fn hourly(n: u64) -> impl Iterator<Item = AnyAlgorithm> {
    let buckets = ["token-bucket", "gcra", "leaky-meter"];
    let windows = ["fixed-window", "sliding-window", "intervals"];
    let kinds = buckets.into_iter().chain(windows);
    kinds.map(move |kind| algorithm(&format!("{kind} {n}/h")))
}

/// gcra: a request larger than the burst deleted the key, which reset it: 5/h admitted 100.
#[test]
fn a_request_above_the_burst_deletes_no_key() {
    for algorithm in hourly(5) {
        let limiter = table(algorithm);
        let mut granted = 0;
        for _ in 0..100 {
            assert_eq!(limiter.try_acquire_n("key", 6), Err(Denied::never(6, 5)));
            granted += u64::from(limiter.try_acquire("key").is_ok());
        }
        assert_eq!((granted, limiter.len()), (5, 1), "{algorithm}");
    }
}

/// governor: a key that came once stays until a cleanup, so endless keys need endless memory.
#[test]
fn endless_new_keys_need_no_memory_and_no_cleanup() {
    let limiter = table(bucket("10/s burst 2"));
    for key in 0..10_000_u64 {
        assert!(limiter.try_acquire(&key).is_ok());
        limiter.clock().advance(Duration::from_micros(200));
    }
    let stats = limiter.stats();
    let counts = (stats.inserted, stats.evicted, stats.no_room);
    assert_eq!(counts, (10_000, 0, 0));
    assert_eq!((limiter.slots(), limiter.len() <= 2048), (2048, true));
}

/// limitador: check, then add: 1001 of 1000. Covers keys that all threads know and keys that are
/// new to all, on the fast path and on the path that all take after one change of the quota.
#[test]
fn threads_get_the_limit_of_each_key_and_not_one_more() {
    deadline("threads that ask for one key", || {
        for algorithm in hourly(100) {
            for changes in 0..8 {
                let limiter = table(algorithm);
                for _ in 0..changes / 2 {
                    let quota = limiter.quota();
                    limiter.set_quota(quota, Keep::Fresh).expect("a quota");
                }
                let ask = |_| {
                    (0..100)
                        .filter(|_| limiter.try_acquire("new").is_ok())
                        .count()
                };
                let granted: usize = on_threads(0..8, ask).into_iter().sum();
                assert_eq!((granted, limiter.len()), (100, 1), "{algorithm}");
                assert_eq!(limiter.key("new").available(), 0);
            }
        }
    });
}

/// Spring Cloud Gateway: a key's time to live was rounded down to 0 s and nothing was written, so
/// nothing was ever limited.
#[test]
fn keys_that_live_for_less_than_a_second_are_limited() {
    for (text, right) in [("gcra 1000/s burst 3", 3), ("fixed-window 7/10ms", 7)] {
        let limiter = table(algorithm(text));
        limiter.clock().set(tick(1_000 * SECOND));
        for _ in 0..50 {
            let granted = (0..100).filter(|_| limiter.try_acquire("key").is_ok());
            assert_eq!(granted.count(), right, "{text}");
            limiter.clock().advance(Duration::from_millis(10));
        }
    }
}

/// axum_gcra: N at first, N + 1 after idling. throttlecrab: 17 of 10 after idling. Here the key may
/// have been evicted in between.
#[test]
fn a_key_that_comes_back_has_no_more_than_a_new_key() {
    let limiter = table(algorithm("gcra 10/s burst 10"));
    for idle in [0, 1, 99, 100, 101, 1000, 100_000] {
        limiter.clock().advance(Duration::from_millis(1000 + idle));
        // Other keys take the slots of idle ones.
        for other in 0..2_000_u64 {
            assert!(limiter.try_acquire(&(idle, other)).is_ok());
            limiter.clock().advance(Duration::from_micros(200));
        }
        limiter.clock().advance(Duration::from_secs(1));
        let granted = (0..30).filter(|_| limiter.try_acquire("key").is_ok());
        assert_eq!(granted.count(), 10, "after {idle}");
    }
    let stats = limiter.stats();
    // About 500 of 2048 slots are in use at a time.
    assert!(stats.expired > 5_000 && stats.evicted == 0, "{stats:?}");
}

/// x/time/rate: an older caller moves the time back: 1000 grants where 110 are right. Here the key
/// has left in between, so the older caller would find it fresh.
#[test]
fn a_late_caller_gets_no_second_burst_from_an_evicted_key() {
    let limiter = table(bucket("10/s burst 100"));
    let second = |n: u64| tick(n * SECOND);
    let all = |now| limiter.key("key").at(now).take_up_to(1000).n();
    assert_eq!(all(second(100)), 100);
    // Ten seconds later it is idle, and other keys come until it has left.
    let mut others = 0_u64;
    while limiter.key("key").at(second(100)).available() == 0 {
        let _ = limiter
            .key(&others)
            .at(second(110 + others / 1000))
            .try_acquire();
        others += 1;
        assert!(others < 1_000_000, "it never leaves");
    }
    assert_eq!(limiter.stats().evicted, 0);
    let came = second(110 + others / 1000);
    let granted = limiter.key("key").at(second(100)).take_up_to(1000);
    // It counts at the tick at which the key had left, when no more are available.
    assert_eq!((granted.n(), granted.at() >= second(110)), (100, true));
    // Exactly what the bucket has refilled since then.
    assert!(all(second(100)) + all(came) <= 10 * (1 + others / 1000));
}

/// A word equal to a fresh one does not store its tick, so a grant that leaves it so inserts no
/// key.
#[test]
fn a_grant_that_leaves_the_word_fresh_inserts_no_key() {
    /// Grants everything and records nothing, as in hours without a limit.
    #[derive(Debug, Clone)]
    struct Unlimited;

    impl Algorithm for Unlimited {
        fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
            Ok((word, Granted::new(n, now)))
        }

        fn available(&self, _word: u64, _now: Tick) -> u64 {
            u64::MAX
        }

        fn is_idle(&self, word: u64, _now: Tick) -> bool {
            word == 0
        }
    }

    let limiter = table(Unlimited);
    for key in 0..100_u64 {
        assert!(limiter.try_acquire(&key).is_ok());
    }
    assert_eq!((limiter.len(), limiter.stats().inserted), (0, 0));
}

/// ShenYu: a failing script admits everything. Here a request that can't be recorded is denied if
/// so configured, and counted.
#[test]
fn unrecorded_requests_are_denied_or_counted() {
    const KEYS: u64 = 3_000;
    let limiter = table(bucket("5/h")).with_overflow(Overflow::Deny);
    let granted = (0..KEYS).map(|key| u64::from(limiter.try_acquire(&key).is_ok()));
    let granted: u64 = granted.sum();
    let taken = (0..KEYS).map(|key| limiter.key(&(key, 1)).take_up_to(5).n());
    let taken: u64 = taken.sum();
    let stats = limiter.stats();
    assert_eq!(granted + taken / 5, stats.tracked);
    assert_eq!(stats.no_room, 2 * KEYS - stats.tracked);
    assert!(limiter.len() <= limiter.slots());
}
