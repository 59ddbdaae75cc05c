//! The check finds a single permit too many also of what goes past one word: shards, leases, slots, logs.

use std::sync::Arc;
use std::time::Duration;

use tollgate::history::{Bound, Bounded, History, Log};
use tollgate::{
    FixedWindow, Gate, Gcra, Intervals, LeakyBucket, Leases, ManualClock, NoClock, Quota, Rounding,
    Sharded, SlidingLog, SlidingWindow, SlottedWindow, Split, Tick, TokenBucket,
};

const TICKS: u64 = 20_000;

/// All that is there is taken, one permit after the other, at each of the ticks `from`, `from + step` and so
/// on; and at the tick `slip` one more is said to be had than was.
fn history(
    (from, step): (u64, u64),
    slip: Option<u64>,
    mut take: impl FnMut(Tick) -> Option<Tick>,
) -> History {
    let mut logs = [Log::new(), Log::new(), Log::new()];
    for turn in 0..TICKS {
        let now = from + turn * step;
        let log = &mut logs[turn as usize % 3];
        while let Some(at) = take(Tick::from_nanos(now)) {
            log.grant(at, 1);
        }
        if slip == Some(now) {
            log.grant(Tick::from_nanos(now), 1);
        }
    }
    logs.into_iter().collect()
}

fn is_found<T: FnMut(Tick) -> Option<Tick>>(
    bound: Bound,
    (from, step, slip): (u64, u64, u64),
    fresh: impl Fn() -> T,
) {
    let kept = history((from, step), None, fresh()).check(&bound);
    let summary = kept.unwrap_or_else(|excess| panic!("{bound:?}: {excess}"));
    let wrong = history((from, step), Some(from + slip), fresh());
    match wrong.check(&bound) {
        Ok(wrong) => panic!("{bound:?}: {summary:?}, {wrong:?}"),
        Err(excess) => assert_eq!(excess.granted as u128, excess.allowed + 1, "{excess}"),
    }
}

fn of(gate: impl Gate) -> impl FnMut(Tick) -> Option<Tick> {
    move |now| Some(gate.try_acquire_at(now).ok()?.at())
}

/// The slip is at a tick at which no part has a fraction of a permit.
fn is_found_in_shards<A: Bounded + Split + Copy>(
    algorithm: A,
    shards: usize,
    ticks: (u64, u64, u64),
) {
    is_found(algorithm.bound(), ticks, || {
        of(Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO).expect("it splits"))
    });
}

fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

#[test]
fn of_buckets_in_shards() {
    let quota = per(1, 10).burst(50);
    for shards in [1, 4, 16] {
        let ticks = (3, 8, 80_000);
        is_found_in_shards(TokenBucket::new(quota).expect("a quota"), shards, ticks);
        is_found_in_shards(Gcra::new(quota).expect("a quota"), shards, ticks);
        is_found_in_shards(LeakyBucket::meter(quota).expect("a quota"), shards, ticks);
    }
}

#[test]
fn of_windows_in_shards() {
    let windows = FixedWindow::new(per(100, 1000)).expect("a quota");
    is_found_in_shards(windows.offset(Duration::from_nanos(5)), 8, (3, 7, 70_000));
    let hit = FixedWindow::new(per(3, 4096)).expect("a quota");
    let hit = hit.opened_by_first_hit().expect("it fits");
    is_found_in_shards(hit, 3, (64, 4096, 4096 * 5000));
}

/// Full at a window's end, and asked for the next one's permits from the beginning.
#[test]
fn of_sliding_windows_in_shards() {
    let windows = SlidingWindow::new(per(1000, 1_000_000)).expect("a quota");
    is_found_in_shards(windows, 8, (999_999, 1, 16_001));
    let down = windows.rounding(Rounding::Down);
    is_found_in_shards(down, 8, (999_999, 1, 16_002));
}

#[test]
fn of_intervals_in_shards() {
    let intervals = Intervals::new(per(3, 4096).burst(10)).expect("a quota");
    is_found_in_shards(intervals, 3, (5, 64, 640_000));
    let greedy = intervals.greedy().expect("it fits");
    is_found_in_shards(greedy, 3, (64, 4096, 4096 * 5000));
}

/// Leases that were full before, and one who has none.
#[test]
fn of_leases() {
    let bucket = TokenBucket::new(per(1, 10).burst(50)).expect("a quota");
    is_found(bucket.bound(), (1000, 7, 70_000), || {
        let clock = ManualClock::new();
        let gate = Leases::with_clock(bucket, 20, clock.clone()).expect("it lends");
        let gate = Arc::new(gate);
        let mut leases = [8, 12].map(|size| gate.lease_owned(size));
        for lease in &mut leases {
            // Who asks for too many holds what there was.
            assert!(lease.try_acquire_n(1000).is_err());
            assert_eq!(lease.held(), lease.size());
        }
        move |now| {
            clock.set(now);
            let mut by_lease = leases.iter_mut().map(|lease| lease.try_acquire().is_ok());
            (by_lease.any(|taken| taken) || gate.try_acquire().is_ok()).then_some(now)
        }
    });
}

#[test]
fn of_slots_and_logs() {
    let quota = per(100, 100_000);
    for slots in [1, 4, 10, 100] {
        let bound = Bound::of_slots(quota, slots).expect("a quota");
        is_found(bound, (3, 70, 700_000), || {
            of(SlottedWindow::with_clock(quota, slots, NoClock).expect("a quota"))
        });
    }
    let bound = Bound::of_log(quota).expect("a quota");
    is_found(bound, (3, 70, 700_000), || {
        of(SlidingLog::with_clock(quota, NoClock).expect("a quota"))
    });
}
