//! What went wrong in other limiters of many keys, each as a test that it does not go wrong here.

use std::time::Duration;

use tollgate::{AnyAlgorithm, Denied, Keyed, ManualClock, Overflow, Quota, Tick, TokenBucket};

use crate::threads::on_threads;

fn table(text: &str) -> Keyed<AnyAlgorithm, ManualClock> {
    let clock = ManualClock::at(Tick::from_nanos(1_000_000_000_000));
    Keyed::with_clock(text.parse().expect(text), 1, clock).expect("a table")
}

const HOURLY: [&str; 6] = [
    "token-bucket 5/h",
    "gcra 5/h",
    "leaky-meter 5/h",
    "fixed-window 5/h",
    "sliding-window 5/h",
    "intervals 5/h",
];

/// gcra: a request larger than the burst deleted the key, which made it fresh: 5/h admitted 100.
#[test]
fn a_request_above_the_burst_deletes_no_key() {
    for text in HOURLY {
        let gate = table(text);
        let mut granted = 0;
        for _ in 0..100 {
            assert_eq!(gate.try_acquire_n("key", 6), Err(Denied::never(6, 5)));
            granted += u64::from(gate.try_acquire("key").is_ok());
        }
        assert_eq!((granted, gate.len()), (5, 1), "{text}");
    }
}

/// governor: a key that came once stays until somebody cleans up, so that keys without end are memory without end.
#[test]
fn keys_without_end_need_no_memory_and_no_cleaning_up() {
    let gate = table("token-bucket 10/s burst 2");
    for key in 0..50_000_u64 {
        assert!(gate.try_acquire(&key).is_ok());
        gate.clock().advance(Duration::from_micros(200));
    }
    let stats = gate.stats();
    assert_eq!(
        (stats.inserted, stats.evicted, stats.no_room),
        (50_000, 0, 0)
    );
    assert!(
        gate.len() <= gate.slots() && gate.slots() == 2048,
        "{stats:?}"
    );
}

/// limitador: check, then add: 1001 of 1000. Of keys that all know, and of keys that nobody has seen yet.
#[test]
fn threads_get_the_limit_of_each_key_and_not_one_more() {
    for text in HOURLY {
        for turn in 0..10 {
            let gate = table(&text.replace("5/h", "100/h"));
            let granted = on_threads(8, |_| {
                let key = (turn, "new");
                (0..100).filter(|_| gate.try_acquire(&key).is_ok()).count()
            });
            assert_eq!(granted.iter().sum::<usize>(), 100, "{text}");
            assert_eq!(gate.len(), 1);
        }
    }
}

/// Spring Cloud Gateway: a key's time to live was rounded down to 0 s, nothing was written, and so nothing was ever
/// limited.
#[test]
fn keys_that_live_for_less_than_a_second_are_limited() {
    for (text, right) in [
        ("token-bucket 1000/s burst 3", 3),
        ("fixed-window 7/10ms", 7),
    ] {
        let gate = table(text);
        for _ in 0..50 {
            let granted = (0..100).filter(|_| gate.try_acquire("key").is_ok());
            assert_eq!(granted.count(), right, "{text}");
            gate.clock().advance(Duration::from_millis(10));
        }
    }
}

/// axum_gcra: N at first, N + 1 after idling; throttlecrab: 17 of 10 after it. Here the key may have left meanwhile.
#[test]
fn who_comes_back_has_no_more_than_who_comes_first() {
    let gate = table("gcra 10/s burst 10");
    for idle in [0, 1, 99, 100, 101, 1000, 100_000] {
        gate.clock().advance(Duration::from_millis(1000 + idle));
        // Others take the places of those who are idle.
        for other in 0..4_000_u64 {
            assert!(gate.try_acquire(&(idle, other)).is_ok());
            gate.clock().advance(Duration::from_micros(100));
        }
        gate.clock().advance(Duration::from_secs(1));
        let granted = (0..30).filter(|_| gate.try_acquire("key").is_ok());
        assert_eq!(granted.count(), 10, "after {idle}");
    }
    let stats = gate.stats();
    // About a thousand of 2048 places are in use at a time; seldom all sixteen of one key.
    assert!(stats.taken_over > 10_000 && stats.evicted < 20, "{stats:?}");
}

/// x/time/rate: an older caller moves the time back: 1000 grants where 110 are right. Here the key has left in between,
/// and the older caller would find it fresh.
#[test]
fn an_older_caller_has_no_second_burst_of_a_key_that_has_left() {
    let bucket = TokenBucket::new(Quota::per_second(10).burst(100)).expect("a bucket");
    let gate = Keyed::with_clock(bucket, 1, ManualClock::new()).expect("a table");
    let second = |n: u64| Tick::from_nanos(n * 1_000_000_000);
    let all = |now| {
        (0..1000)
            .filter(|_| gate.try_acquire_at("key", now).is_ok())
            .count()
    };
    assert_eq!(all(second(100)), 100);
    // Ten seconds later it is idle, and others come until it has left.
    let mut others = 0_u64;
    while gate.key("key").at(second(100)).available() == 0 {
        let _ = gate.try_acquire_at(&others, second(110 + others / 1000));
        others += 1;
        assert!(others < 1_000_000, "it never leaves");
    }
    assert_eq!(gate.stats().evicted, 0);
    let came = second(110 + others / 1000);
    let granted = gate.key("key").at(second(100)).take_up_to(1000);
    // It is counted when it had left, so that no more are there then.
    assert!(
        granted.n() == 100 && granted.at() >= second(110),
        "{granted:?}"
    );
    // What the bucket has made since, and not one permit more.
    assert!((all(second(100)) + all(came)) as u64 <= 10 * (1 + others / 1000));
}

/// ShenYu: a script that fails fails open, and everything is admitted. Here what can't be recorded is denied if so
/// told, and counted.
#[test]
fn what_can_not_be_recorded_is_not_admitted_unawares() {
    let gate = table("token-bucket 5/h").with_overflow(Overflow::Deny);
    let granted = (0..20_000)
        .filter(|key| gate.try_acquire(key).is_ok())
        .count();
    let taken: u64 = (0..20_000)
        .map(|key| gate.key(&(key, 1)).take_up_to(5).n())
        .sum();
    let stats = gate.stats();
    assert_eq!(granted as u64 + taken / 5, stats.tracked);
    assert_eq!(stats.no_room, 40_000 - stats.tracked);
    assert!(gate.len() <= gate.slots());
}
