//! Keys as they come, ten times as many as there are slots, from callers of whom some are late: what each key got, on the
//! ticks at which it was counted, is within its bound, and one burst more for each eviction; until every slot has been
//! another's a hundred times.

use std::time::Duration;

use tollgate::history::{Bound, History, Log};
use tollgate::keyed::Seeded;
use tollgate::{
    FixedWindow, Keyed, KeyedStats, ManualClock, Overflow, Quota, SlidingWindow, Tick, TokenBucket,
};

use crate::Random;
use crate::own::Every;

/// Those of the smallest table.
const SLOTS: u64 = 2048;

/// What each key got, and the counts, after so many turnovers of all slots.
fn churn<A: Every>(
    algorithm: A,
    overflow: Overflow,
    step: u64,
    turnovers: u64,
) -> (Vec<Log>, KeyedStats) {
    let table = Keyed::with_clock(algorithm, 1, ManualClock::new()).expect("a table");
    let table = table
        .with_hasher(Seeded::new([7, 9]))
        .with_overflow(overflow);
    assert_eq!(table.slots() as u64, SLOTS);
    let mut logs = vec![Log::new(); 10 * SLOTS as usize];
    let (mut random, mut now, mut turned_over) = (Random(1), 10_000_000_000, 0);
    while turned_over < turnovers * SLOTS {
        for _ in 0..50_000 {
            now += random.below(step);
            let key = random.skewed(10 * SLOTS);
            // Some are late by as long as it takes to become idle, and more.
            let late = match random.below(8) {
                0 => random.below(3_000_000_000),
                1 => random.below(30_000_000),
                _ => 0,
            };
            let at = Tick::from_nanos(now - late);
            let granted = table.key(&key).at(at).take_up_to(1 + random.below(3));
            logs[key as usize].granted(&granted);
        }
        let stats = table.stats();
        turned_over = stats.taken_over + stats.evicted;
        assert!(now < 1 << 50, "{stats:?}");
    }
    (logs, table.stats())
}

/// How many bursts more than the bound each key got, in all.
fn bursts_more(logs: Vec<Log>, burst: u64, bound: impl Fn(u64) -> Bound) -> u64 {
    let more = |log: Log| {
        let history: History = [log].into_iter().collect();
        let kept = |bursts: &u64| history.check(&bound((bursts + 1) * burst)).is_ok();
        (0..1000).find(kept).expect("a thousand are enough")
    };
    logs.into_iter().map(more).sum()
}

const BUCKET: Quota = Quota::per_second(20).burst(5);

fn bucket_and_bound() -> (TokenBucket, impl Fn(u64) -> Bound) {
    let bound = |burst| Bound::of_quota(BUCKET.burst(burst)).expect("a quota");
    (TokenBucket::new(BUCKET).expect("a bucket"), bound)
}

#[test]
fn a_key_gets_a_burst_more_when_it_is_evicted_and_else_nothing() {
    let (bucket, bound) = bucket_and_bound();
    let (logs, stats) = churn(bucket, Overflow::Evict, 60_000, 105);
    let more = bursts_more(logs, 5, bound);
    println!("{stats:?} {more}");
    assert!(
        stats.taken_over > 50 * SLOTS && stats.no_room == 0,
        "{stats:?}"
    );
    assert!(more <= stats.evicted && more > 0, "{more} {stats:?}");
}

#[test]
fn who_is_late_gets_no_burst_of_a_key_that_has_left() {
    let (bucket, bound) = bucket_and_bound();
    let (logs, stats) = churn(bucket, Overflow::Deny, 60_000, 12);
    assert!(stats.evicted == 0 && stats.no_room > 50, "{stats:?}");
    assert_eq!(bursts_more(logs, 5, bound), 0);
}

#[test]
fn nor_of_windows() {
    let quota = Quota::per(5, Duration::from_millis(250));
    let windows = FixedWindow::new(quota).expect("windows");
    let (logs, stats) = churn(windows, Overflow::Deny, 60_000, 8);
    assert!(
        stats.evicted == 0 && stats.taken_over > 7 * SLOTS,
        "{stats:?}"
    );
    let bound = |_| Bound::of_windows(quota).expect("a quota");
    assert_eq!(bursts_more(logs, 5, bound), 0);
    let window = SlidingWindow::new(quota).expect("a window");
    let (logs, _) = churn(window, Overflow::Deny, 60_000, 4);
    let bound = |_| tollgate::history::Bounded::bound(&window);
    assert_eq!(bursts_more(logs, 5, bound), 0);
}

#[test]
fn who_is_admitted_without_room_gets_a_burst_each_time_at_most() {
    let (bucket, bound) = bucket_and_bound();
    let (logs, stats) = churn(bucket, Overflow::Admit, 60_000, 12);
    let more = bursts_more(logs, 5, bound);
    assert!(stats.evicted == 0 && stats.no_room > 50, "{stats:?}");
    assert!(more <= stats.no_room, "{more} {stats:?}");
}
