//! A pool that deals out its work as it likes decides on one limiter: whatever the pool's size, exactly
//! the limit is admitted at a standing tick, and what [`Counted`] counts adds up.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tollgate::{
    Algorithm, Clock, Counted, Denied, FixedWindow, Gate, Granted, Limiter, ManualClock, NoClock,
    Quota, Sharded, SlidingLog, SlottedWindow, Split, Tick, TokenBucket,
};

const POOLS: [usize; 6] = [1, 2, 3, 4, 7, 16];

const LIMIT: u64 = 5000;

const REQUESTS: u64 = 20_000;

const NOW: Tick = Tick::from_nanos(86_400_000_000_000);

fn pool(threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads can be started")
}

fn quota() -> Quota {
    Quota::per_minute(LIMIT)
}

fn sharded<A: Split>(algorithm: A, shards: usize) -> Sharded<A, NoClock> {
    let gate = Sharded::starting_at(algorithm, shards, NoClock, NOW);
    gate.expect("a quota that can be split")
}

fn window() -> FixedWindow {
    FixedWindow::new(quota()).expect("a quota that fits")
}

fn bucket() -> TokenBucket {
    TokenBucket::new(quota()).expect("a quota that fits")
}

/// What came of many requests, each for so many permits.
#[derive(Debug, Default, PartialEq)]
struct Came {
    granted: u64,
    permits: u64,
    denied: u64,
}

impl Came {
    fn and(self, other: Self) -> Self {
        Self {
            granted: self.granted + other.granted,
            permits: self.permits + other.permits,
            denied: self.denied + other.denied,
        }
    }
}

impl From<Result<Granted, Denied>> for Came {
    fn from(outcome: Result<Granted, Denied>) -> Self {
        let (granted, permits, denied) = match outcome {
            Ok(granted) => (1, granted.n(), 0),
            Err(denied) => {
                assert!(denied.retry_after().is_some(), "{denied:?}");
                (0, 0, 1)
            }
        };
        Self {
            granted,
            permits,
            denied,
        }
    }
}

/// What a pool's requests come to, each of which is asked by its number.
fn ask(threads: usize, asked: impl Fn(u64) -> Result<Granted, Denied> + Sync) -> Came {
    pool(threads).install(|| {
        (0..REQUESTS)
            .into_par_iter()
            .map(|i| Came::from(asked(i)))
            .reduce(Came::default, Came::and)
    })
}

/// One at a time.
fn exactly_the_limit<G: Gate + Sync>(name: &str, make: impl Fn() -> G) {
    for threads in POOLS {
        let gate = make();
        let came = ask(threads, |_| gate.try_acquire_at(NOW));
        let expected = Came {
            granted: LIMIT,
            permits: LIMIT,
            denied: REQUESTS - LIMIT,
        };
        assert_eq!(came, expected, "{name}, {threads} threads");
        assert_eq!(gate.available_at(NOW), 0, "{name}, {threads} threads");
    }
}

#[test]
fn a_pool_gets_exactly_the_limit_of_shards() {
    for shards in [1, 2, 5, 16] {
        let name = format!("bucket in {shards} shards");
        exactly_the_limit(&name, || sharded(bucket(), shards));
        let name = format!("window in {shards} shards");
        exactly_the_limit(&name, || sharded(window(), shards));
    }
}

#[test]
fn a_pool_gets_exactly_the_limit_of_one_word_and_of_windows() {
    exactly_the_limit("one word", one_word);
    exactly_the_limit("slots", || {
        SlottedWindow::with_clock(quota(), 60, NoClock).expect("slots that fit")
    });
    exactly_the_limit("log", || {
        SlidingLog::with_clock(quota(), NoClock).expect("a log that fits")
    });
}

fn one_word() -> Limiter<TokenBucket, NoClock> {
    let gate = Limiter::unstarted(bucket(), NoClock);
    gate.at(NOW).start();
    gate
}

/// Through [`Counted`], requests for one permit to seven, on a clock that stands: the counts are those of
/// the answers, and what was not granted is there.
fn counts_add_up<G: Gate<Clock: Clock> + Sync>(name: &str, gate: G, threads: usize) {
    let gate = Counted::new(gate);
    let came = ask(threads, |i| gate.try_acquire_n(1 + i % 7));
    let counts = gate.counts();
    let counted = Came {
        granted: counts.granted,
        permits: counts.permits,
        denied: counts.denied,
    };
    assert_eq!(counted, came, "{name}, {threads} threads");
    assert_eq!(came.granted + came.denied, REQUESTS);
    assert_eq!((counts.returned, counts.charged), (0, 0));
    let left = gate.available();
    assert_eq!(came.permits + left, LIMIT, "{name}, {threads} threads");
}

#[test]
fn counts_of_a_pool_add_up() {
    for threads in POOLS {
        let clock = ManualClock::new();
        let gate = Limiter::with_clock(bucket(), clock.clone());
        counts_add_up("one word", gate, threads);
        let gate = Sharded::with_shards(bucket(), 4, clock.clone());
        counts_add_up("bucket in shards", gate.expect("four shards"), threads);
        let gate = Sharded::with_shards(window(), 3, clock.clone());
        counts_add_up("window in shards", gate.expect("three shards"), threads);
        let gate = SlottedWindow::with_clock(quota(), 60, clock.clone());
        counts_add_up("slots", gate.expect("slots that fit"), threads);
        let gate = SlidingLog::with_clock(quota(), clock);
        counts_add_up("log", gate.expect("a log that fits"), threads);
    }
}

/// The algorithm alone, on one thread, says what there is to get: so that the limit above is not the
/// limiter's own word for it.
#[test]
fn the_limit_is_what_one_word_grants_one_by_one() {
    let (bucket, mut granted) = (bucket(), 0);
    let mut word = bucket.initial_word(NOW);
    while let Ok((next, _)) = bucket.step(word, NOW, 1) {
        (word, granted) = (next, granted + 1);
    }
    assert_eq!(granted, LIMIT);
}
