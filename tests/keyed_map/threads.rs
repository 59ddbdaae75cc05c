//! The late owner, on real threads: keys leave, are removed and evicted while others decide on them, and stop in the
//! middle of it. What each key got keeps its bound; each removal allows a burst more.

use std::sync::Barrier;
use std::thread;

use tollgate::history::{Bound, History, Log};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{
    Algorithm, Denied, Granted, KeyedMap, NoClock, Overflow, Requota, Tick, TokenBucket,
};

use crate::{Random, bucket, tick};

/// An algorithm whose decisions stop now and then between what they have read and what they will write.
#[derive(Debug, Clone, Copy)]
struct Stops(TokenBucket);

impl Algorithm for Stops {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if now.as_nanos().is_multiple_of(3) {
            thread::yield_now();
        }
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

const KEYS: u64 = 4;
const THREADS: u64 = 4;

type Map = KeyedMap<u64, Stops, NoClock>;

/// What a thread does beside deciding.
type Aside = fn(&Map, u64, Tick) -> bool;

/// Threads whose ticks are some ten apart decide, and do something else now and then; if that gave a key one burst
/// more, it says so. The logs of each key are then one history.
fn checked(map: &Map, aside: Aside) -> u64 {
    let ticks = AtomicU64::new(1_000);
    let ready = Barrier::new(THREADS as usize);
    let all: Vec<Vec<Log>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (ticks, ready) = (&ticks, &ready);
                scope.spawn(move || {
                    ready.wait();
                    work(map, aside, ticks, seed)
                })
            })
            .collect();
        let done = threads
            .into_iter()
            .map(|thread| thread.join().expect("done"));
        done.collect()
    });
    let bound = Bound::of_quota(bucket().quota()).expect("a quota");
    let mut granted = 0;
    for key in 0..KEYS as usize {
        let history: History = all.iter().map(|logs| logs[key].clone()).collect();
        match history.check(&bound) {
            Ok(summary) => granted += summary.granted,
            Err(excess) => panic!("key {key}: {excess}"),
        }
    }
    granted as u64
}

fn work(map: &Map, aside: Aside, ticks: &AtomicU64, seed: u64) -> Vec<Log> {
    let mut random = Random(seed);
    let mut logs = vec![Log::new(); KEYS as usize];
    // ORDERING: Relaxed. Ticks need only differ, and go forwards.
    let clock = || ticks.fetch_add(1, Ordering::Relaxed);
    for _ in 0..15_000 {
        let begun = clock();
        let now = tick(begun - random.below(20));
        let key = random.below(KEYS);
        let log = &mut logs[key as usize];
        if random.below(4) == 0 {
            if aside(map, key, now) {
                log.reset(now).during(tick(begun), tick(clock()));
            }
        } else if let Ok(granted) = map.try_acquire_n_at(&key, 1 + random.below(2), now) {
            log.granted(&granted).during(tick(begun), tick(clock()));
        }
    }
    logs
}

fn map(capacity: usize, overflow: Overflow) -> Map {
    let map = Map::with_clock(Stops(bucket()), capacity, NoClock).expect("a map");
    map.with_overflow(overflow)
}

/// Nothing but idleness makes a key leave, and there is not room for all: the bound is the algorithm's own.
#[test]
fn keys_leave_as_idle() {
    for capacity in [1, 2, 3] {
        let map = map(capacity, Overflow::Deny);
        let granted = checked(&map, |map, _, now| {
            map.purge_idle_at(now, 2);
            false
        });
        let stats = map.stats();
        assert_eq!((stats.evicted, stats.removed), (0, 0));
        assert!(granted > 0 && stats.left > 0, "{granted}, {stats:?}");
    }
}

#[test]
fn keys_are_removed() {
    let map = map(10, Overflow::Deny);
    let granted = checked(&map, |map, key, _| map.remove(&key));
    let stats = map.stats();
    assert!(granted > 0 && stats.removed > 0, "{granted}, {stats:?}");
}
