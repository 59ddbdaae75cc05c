//! Nothing is left behind: at a standing tick threads together get exactly the limit, for every limit from 1 to
//! 1000 in 1 to 16 shards or slots, and from a log; and after idling all of it is there again, but for what is
//! documented: fractions of a permit in shards, and what is lent.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyAlgorithm, ConfigError, FixedWindow, Gate, Gcra, Intervals, LeakyBucket, Leases, Limiter,
    ManualClock, Quota, Rounding, Sharded, SlidingLog, SlidingWindow, SlottedWindow, Split, Tick,
    TokenBucket,
};

const THREADS: usize = 4;

/// A number that all numbers up to 16 divide, so that it can be so many slots.
const SLOT_NS: u64 = 720_720;

/// In the middle of a period, whichever it is.
const START: Tick = Tick::from_nanos(1_000_000 * SLOT_NS + SLOT_NS / 3);

fn clock() -> ManualClock {
    ManualClock::at(START)
}

const PERIOD: Duration = Duration::from_nanos(SLOT_NS * 1000);

/// So many permits in a window.
fn quota(limit: u64) -> Quota {
    Quota::per(limit, PERIOD)
}

const INTERVAL: Duration = Duration::from_micros(1);

/// So many permits at once, and one more every interval of whole nanoseconds, so that none is rounded.
fn burst(limit: u64) -> Quota {
    Quota::per(1, INTERVAL).burst(limit)
}

fn bucket(limit: u64) -> TokenBucket {
    TokenBucket::new(burst(limit)).expect("a quota")
}

/// What threads that ask until they are denied get of each of these limiters, all together.
fn together(gates: &[impl Gate<Clock = ManualClock> + Sync]) -> Vec<u64> {
    let start = Barrier::new(THREADS);
    let all: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    gates.iter().map(drain).collect()
                })
            })
            .collect();
        let counts = threads.into_iter().map(|thread| thread.join());
        counts.map(|counts| counts.expect("no panic")).collect()
    });
    let sum = |gate: usize| all.iter().map(|counts| counts[gate]).sum();
    (0..gates.len()).map(sum).collect()
}

/// One permit after the other, until there is none.
fn drain(gate: &impl Gate<Clock = ManualClock>) -> u64 {
    let mut taken = 0;
    while gate.try_acquire().is_ok() {
        taken += 1;
    }
    taken
}

/// In so many shards, or in as many as the quota bears, which the error tells.
fn sharded<A: Split + Copy>(algorithm: A, shards: usize) -> Sharded<A, ManualClock> {
    match Sharded::with_shards(algorithm, shards, clock()) {
        Err(ConfigError::TooManyShards { shards: told, max }) => {
            assert_eq!(told, shards);
            assert!(max < shards);
            let gate = Sharded::with_shards(algorithm, max, clock()).expect("the most");
            assert_eq!(gate.shards(), max);
            gate
        }
        gate => gate.expect("as many as that"),
    }
}

/// Threads get exactly the limit of it in 1 to 16 shards, and it is there again after two periods.
fn is_exact<A: Split + Copy + Send + Sync>(algorithm: A, limit: u64) {
    let gates: Vec<_> = (1..=16).map(|shards| sharded(algorithm, shards)).collect();
    for (gate, shards) in gates.iter().zip(1..) {
        // Each part has a permit.
        assert_eq!(
            gate.shards(),
            usize::try_from(limit).unwrap_or(16).min(shards)
        );
    }
    assert_eq!(together(&gates), vec![limit; gates.len()]);
    for gate in &gates {
        assert_eq!(gate.available(), 0);
        gate.clock().advance(2 * PERIOD);
        assert_eq!(gate.available(), limit);
        assert_eq!(gate.take_up_to(u64::MAX).n(), limit);
    }
}

#[test]
fn of_every_limit_in_every_number_of_shards() {
    for limit in 1..=1000 {
        is_exact(bucket(limit), limit);
    }
}

#[test]
fn of_each_algorithm_in_shards() {
    for limit in (1..=40).chain([97, 128, 1000]) {
        let (quota, windows) = (
            quota(limit),
            FixedWindow::new(quota(limit)).expect("a quota"),
        );
        let sliding = SlidingWindow::new(quota).expect("a quota");
        let intervals = Intervals::new(quota).expect("a quota");
        is_exact(Gcra::new(burst(limit)).expect("a quota"), limit);
        is_exact(LeakyBucket::meter(burst(limit)).expect("a quota"), limit);
        is_exact(windows, limit);
        is_exact(windows.opened_by_first_hit().expect("it fits"), limit);
        is_exact(sliding, limit);
        is_exact(sliding.rounding(Rounding::Down), limit);
        is_exact(intervals, limit);
        is_exact(intervals.greedy().expect("it fits"), limit);
        is_exact(AnyAlgorithm::from(sliding), limit);
    }
}

/// Where the rate is not exact, the last permit of each part may come a nanosecond later, as that of one word.
#[test]
fn but_for_a_nanosecond_in_shards() {
    for limit in (1..=1000).step_by(11) {
        for shards in 1..=16 {
            let gate = sharded(TokenBucket::new(quota(limit)).expect("a quota"), shards);
            let at_once = drain(&gate);
            assert!(at_once + gate.shards() as u64 >= limit);
            gate.clock().advance(Duration::from_nanos(1));
            assert_eq!(at_once + drain(&gate), limit);
        }
    }
}

/// At each tick after all was taken, the shards have what one word would have, but for less than a permit each.
#[test]
fn but_for_fractions_in_shards() {
    for limit in (1..=1000).step_by(7) {
        for shards in [2, 3, 7, 16] {
            let bucket = bucket(limit);
            let (whole, parts) = (
                Limiter::with_clock(bucket, clock()),
                sharded(bucket, shards),
            );
            assert_eq!(drain(&whole), drain(&parts));
            let mut short = 0;
            for step in 1..=16 {
                let wait = INTERVAL * limit as u32 / 16 + Duration::from_nanos(step * 7);
                whole.clock().advance(wait);
                parts.clock().advance(wait);
                assert!(parts.available() <= whole.available());
                short = short.max(whole.available() - parts.available());
            }
            assert!(short < parts.shards() as u64, "{limit}, {shards}: {short}");
        }
    }
}

/// A request for several takes them from whatever parts have them.
#[test]
fn of_requests_for_several_from_shards() {
    for limit in (1..=1000_u64).step_by(13) {
        for shards in 1..=16 {
            for n in [1, 2, 5, limit.div_ceil(3), limit] {
                let n = n.min(limit);
                let gate = sharded(bucket(limit), shards);
                for _ in 0..limit / n {
                    assert_eq!(gate.try_acquire_n(n).map(|granted| granted.n()), Ok(n));
                }
                assert!(gate.try_acquire_n(n).is_err());
                assert_eq!(gate.take_up_to(n).n(), limit % n);
                assert_eq!(drain(&gate), 0);
            }
        }
    }
}

/// Where requests for several stand in each other's way, some permits may come only with time; but they come.
#[test]
fn of_requests_for_several_by_many_threads() {
    for limit in [5, 16, 100, 1000] {
        for shards in [2, 5, 16] {
            let gate = sharded(bucket(limit), shards);
            for most in [3, limit.div_ceil(4).max(2)] {
                let take = |id: u64| {
                    let asked = (0..200).map(|turn| (id + turn) % most + 1);
                    let granted = asked.filter_map(|n| gate.try_acquire_n(n).ok());
                    granted.map(|granted| granted.n()).sum::<u64>()
                };
                let granted: u64 = thread::scope(|scope| {
                    let threads: Vec<_> = (0..4).map(|id| scope.spawn(move || take(id))).collect();
                    threads
                        .into_iter()
                        .map(|thread| thread.join().expect("no panic"))
                        .sum()
                });
                let rest = drain(&gate);
                assert!(granted + rest <= limit, "{granted} and {rest} of {limit}");
                gate.clock().advance(2 * PERIOD);
                assert_eq!(gate.available(), limit);
            }
        }
    }
}

#[test]
fn of_every_limit_in_every_number_of_slots() {
    for limit in 1..=1000 {
        let window = |slots| SlottedWindow::with_clock(quota(limit), slots, clock());
        let gates: Vec<_> = (1..=16)
            .map(|slots| window(slots).expect("a quota"))
            .collect();
        for _ in 0..2 {
            assert_eq!(together(&gates), [limit; 16]);
            for gate in &gates {
                // The slot leaves the window when another window has gone by since its beginning.
                let wait = gate.time_until(limit).expect("in time");
                assert!(wait <= PERIOD);
                gate.clock().advance(wait - Duration::from_nanos(1));
                assert_eq!(gate.available(), 0);
                gate.clock().advance(Duration::from_nanos(1));
                assert_eq!(gate.available(), limit);
            }
        }
    }
}

#[test]
fn of_every_limit_from_a_log() {
    for limit in 1..=1000 {
        let gate = SlidingLog::with_clock(quota(limit), clock()).expect("a quota");
        for _ in 0..3 {
            assert_eq!(together(&[&gate]), [limit]);
            gate.clock().advance(PERIOD - Duration::from_nanos(1));
            assert_eq!(gate.available(), 0);
            gate.clock().advance(Duration::from_nanos(1));
            assert_eq!(gate.available(), limit);
        }
    }
}

/// Half of the threads by leases, half without: what they draw at a tick is all but what is lent; and what the
/// leases held when the tick came is there besides.
fn with_leases(gate: &Leases<TokenBucket, ManualClock>, are_full: bool) -> u64 {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|id| {
                let mut lease = gate.lease(gate.total().div_ceil(2) * (id % 2));
                let start = &start;
                scope.spawn(move || {
                    if are_full {
                        // Who asks for too many holds what there was.
                        assert!(lease.try_acquire_n(u64::MAX).is_err());
                    }
                    if start.wait().is_leader() {
                        gate.limiter().clock().advance(2 * PERIOD);
                    }
                    start.wait();
                    let mut taken = 0;
                    while lease.try_acquire().is_ok() || gate.try_acquire().is_ok() {
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    })
}

#[test]
fn but_for_what_is_lent() {
    for limit in 2..=1000 {
        for total in [1, limit / 2, limit - 1] {
            let gate = Leases::with_clock(bucket(limit), total, clock()).expect("it lends");
            for _ in 0..2 {
                assert_eq!(with_leases(&gate, false), limit - total);
                assert_eq!(gate.lent(), 0);
            }
            gate.limiter().clock().advance(2 * PERIOD);
            // The first lease may find less than it wants, if not as much is left as is lent.
            let held = total.min(limit - total);
            assert_eq!(with_leases(&gate, true), limit - total + held);
            gate.limiter().clock().advance(2 * PERIOD);
            assert_eq!(gate.limiter().available(), limit - total);
            let mut lease = gate.lease(total);
            assert!(lease.try_acquire_n(u64::MAX).is_err());
            assert_eq!(gate.limiter().available(), limit - total - held);
            drop(lease);
            assert_eq!(gate.limiter().available(), limit - total);
        }
    }
}
