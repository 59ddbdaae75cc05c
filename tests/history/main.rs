//! The bound holds over every interval, whatever threads do: 2 to 8 of them with skewed ticks,
//! millions of operations, give-backs, charges and resets among them. And the check can find a
//! single permit too many.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, History, Log, Summary};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{
    Algorithm, Clock, Debt, Denied, Gcra, GiveBack, Granted, Limiter, ManualClock, Quota, Tick,
    TokenBucket,
};

/// splitmix64, so that each thread has its own repeatable stream.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// What the threads do besides taking permits.
#[derive(Clone, Copy)]
struct Mix {
    undo: bool,
    refund: bool,
    charge: bool,
    reset: bool,
}

const TAKING: Mix = Mix {
    undo: false,
    refund: false,
    charge: false,
    reset: false,
};

const EVERYTHING: Mix = Mix {
    undo: true,
    refund: true,
    charge: true,
    reset: true,
};

/// One thread's work: time moves on by a few nanoseconds a turn, and this thread's idea of it is
/// up to `skew` behind or ahead.
fn work<A: GiveBack + Debt>(
    gate: &Limiter<A, ManualClock>,
    turns: u64,
    skew: u64,
    mix: Mix,
    random: &mut Random,
) -> Log {
    let mut log = Log::with_capacity(turns as usize);
    for _ in 0..turns {
        gate.clock().advance(Duration::from_nanos(random.below(4)));
        let begun = gate.now();
        let now = begun.as_nanos() + random.below(2 * skew + 1);
        let at = gate.at(Tick::from_nanos(now.saturating_sub(skew)));
        match random.below(64) {
            0 if mix.reset && random.below(500) == 0 => {
                at.reset();
                log.reset(at.now()).during(begun, gate.now());
            }
            1 if mix.charge => {
                let charged = at.charge(random.below(6));
                log.charged(&charged).during(begun, gate.now());
            }
            2 | 3 if mix.refund => {
                let n = at.refund(random.below(3));
                log.gave_back(at.now(), n).during(begun, gate.now());
            }
            4..=20 => {
                let granted = at.take_up_to(random.below(5));
                log.granted(&granted).during(begun, gate.now());
            }
            choice => {
                let n = random.below(4);
                if let Ok(granted) = at.try_acquire_n(n) {
                    assert_eq!(granted.n(), n);
                    log.granted(&granted).during(begun, gate.now());
                    if mix.undo && choice % 4 == 0 {
                        let n = at.undo(granted);
                        log.gave_back(at.now(), n).during(begun, gate.now());
                    }
                }
            }
        }
    }
    log
}

fn record<A: GiveBack + Debt + Send + Sync>(
    algorithm: A,
    threads: u64,
    turns: u64,
    mix: Mix,
) -> History {
    let gate = Limiter::with_clock(algorithm, ManualClock::at(Tick::from_nanos(1_000_000)));
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let (gate, start) = (&gate, &start);
                scope.spawn(move || {
                    start.wait();
                    work(gate, turns, 200 * id, mix, &mut Random(id))
                })
            })
            .collect();
        let logs = workers.into_iter().map(|worker| worker.join());
        logs.map(|log| log.expect("a worker panicked")).collect()
    })
}

fn kept(history: &History, bound: &Bound) -> Summary {
    match history.check(bound) {
        Ok(summary) => summary,
        Err(excess) => panic!("{excess}"),
    }
}

/// Rates at which a few nanoseconds matter: whole intervals, thirds, a prime, and a large burst.
fn quotas() -> [Quota; 4] {
    [
        Quota::per(1, Duration::from_nanos(10)).burst(7),
        Quota::per(3, Duration::from_nanos(40)).burst(20),
        Quota::per(104_729, Duration::from_micros(900)).burst(50),
        Quota::per(1, Duration::from_nanos(3)).burst(10_000),
    ]
}

#[test]
fn two_to_eight_threads_take_what_was_promised() {
    let mut operations = 0;
    for quota in quotas() {
        let bound = Bound::of_quota(quota).expect("a quota");
        for threads in [2, 3, 4, 8] {
            let bucket = TokenBucket::new(quota).expect("a quota");
            let summary = kept(&record(bucket, threads, 60_000, TAKING), &bound);
            assert!(summary.granted > u128::from(quota.burst_size()));
            operations += threads * 60_000;
        }
    }
    assert!(operations > 4_000_000, "{operations}");
}

#[test]
fn giving_back_and_charging_and_resetting_keep_the_promise() {
    for quota in quotas() {
        let bound = Bound::of_quota(quota).expect("a quota");
        let bucket = TokenBucket::new(quota).expect("a quota");
        let summary = kept(&record(bucket, 4, 60_000, EVERYTHING), &bound);
        assert!(summary.granted > 1000, "{summary:?}");
        assert!(summary.gave_back > 100, "{summary:?}");
        assert!(summary.charged > 100, "{summary:?}");
        assert!(summary.resets > 0, "{summary:?}");
    }
}

#[test]
fn a_tolerance_that_is_no_multiple_of_the_interval_is_kept() {
    let (interval, tolerance) = (Duration::from_nanos(70), Duration::from_nanos(333));
    let gcra = Gcra::from_interval(interval, tolerance).expect("it fits");
    let bound = Bound::of_interval(interval, tolerance).expect("it fits");
    assert_eq!(bound.allows(Duration::ZERO), 5);
    for threads in [2, 8] {
        kept(&record(gcra, threads, 60_000, TAKING), &bound);
    }
}

#[test]
fn threads_at_one_standing_tick_get_exactly_the_burst() {
    for burst in [1, 2, 63, 1000] {
        let quota = Quota::per_second(1).burst(burst);
        let gate = Limiter::with_clock(
            TokenBucket::new(quota).expect("a quota"),
            ManualClock::new(),
        );
        let granted = AtomicU64::new(0);
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let mine = (0..500).filter(|_| gate.try_acquire().is_ok()).count();
                    // ORDERING: Relaxed. The scope joins before it is read.
                    granted.fetch_add(mine as u64, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(granted.into_inner(), burst);
    }
}

/// A bucket that lets its `slip`th request through for nothing.
struct Slips {
    bucket: TokenBucket,
    slip: u64,
    asked: AtomicU64,
}

impl Algorithm for Slips {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        // ORDERING: Relaxed. A count for a test; it publishes nothing.
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let decided = self.bucket.step(word, now, n);
        if decided.is_err() && asked >= self.slip {
            // Once: from then on it asks for more than there will be.
            self.asked.swap(0, Ordering::Relaxed);
            return Ok((word, Granted::new(n, now)));
        }
        decided
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.bucket.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.bucket.is_idle(word, now)
    }
}

#[test]
fn a_single_permit_too_many_is_found() {
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(50);
    let bound = Bound::of_quota(quota).expect("a quota");
    let slips = Slips {
        bucket: TokenBucket::new(quota).expect("a quota"),
        slip: 200_000,
        asked: AtomicU64::new(0),
    };
    let clock = ManualClock::new();
    let gate = Limiter::with_clock(slips, clock.clone());
    let mut logs = [Log::new(), Log::new(), Log::new()];
    // More than the rate is asked for, so that the bucket is always about empty.
    for turn in 0..300_000_usize {
        clock.advance(Duration::from_nanos(7));
        if let Ok(granted) = gate.try_acquire() {
            logs[turn % 3].granted(&granted);
        }
    }
    let history: History = logs.into_iter().collect();
    let excess = history.check(&bound).expect_err("one permit too many");
    assert_eq!(excess.granted as u128, excess.allowed + 1);
}

#[test]
fn clocks_of_a_history_are_the_limiters_own() {
    // A caller from the past is counted at its own tick and answered conservatively.
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(5);
    let gate = Limiter::with_clock(
        TokenBucket::new(quota).expect("a quota"),
        ManualClock::at(Tick::from_nanos(1000)),
    );
    assert_eq!(gate.clock().now(), Tick::from_nanos(1000));
    let granted = gate.try_acquire_n(3).expect("it is full");
    assert_eq!(granted.at(), Tick::from_nanos(1000));
    assert!(gate.try_acquire_at(Tick::from_nanos(900)).is_err());
    let granted = gate
        .try_acquire_at(Tick::from_nanos(990))
        .expect("one is left");
    assert_eq!(granted.at(), Tick::from_nanos(990));
}
