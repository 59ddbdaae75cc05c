//! Late owners on real threads: keys leave, are removed and are evicted while other threads decide
//! on them and pause in the middle. Each key keeps its bound, plus one burst for each removal.

use std::thread;

use tollgate::audit::Log;
use tollgate::clock::NoClock;
use tollgate::sync::{AtomicU64, Ordering};
use tollgate::{KeyedMap, Overflow, Tick};

use super::{bucket_of, of};
use crate::support::histories::{bursts_more, of_each};
use crate::support::hooks::{Call, Hooked, on_calls};
use crate::support::{Random, deadline, often, on_threads, tick};

const KEYS: usize = 4;

type Map = KeyedMap<u64, Hooked, NoClock>;

/// Another action of a thread. Returns whether it gave this key an extra burst.
type Aside = fn(&Map, u64, Tick) -> bool;

/// Threads whose ticks differ by about ten decide, and sometimes do the other action, until each
/// kind of event has occurred.
fn keeps_the_bound(map: &Map, aside: Aside, enough: impl Fn() -> bool) {
    let ticks = AtomicU64::new(1_000);
    let mut all = Vec::new();
    while !enough() {
        let seed = all.len() as u64;
        all.extend(on_threads(4, |id| work(map, aside, &ticks, seed + id)));
    }
    bursts_more(&of_each(&all), "token-bucket 1/10ns burst 2", 0);
}

fn work(map: &Map, aside: Aside, ticks: &AtomicU64, seed: u64) -> Vec<Log> {
    let mut random = Random(seed);
    let mut logs = vec![Log::new(); KEYS];
    // ORDERING: Relaxed. Ticks need only differ and advance.
    let clock = || ticks.fetch_add(1, Ordering::Relaxed);
    // Some decisions pause between their read and their write.
    let mut steps = 0;
    on_calls(move |call| {
        steps += u64::from(call == Call::Step);
        if steps % 3 == 0 {
            thread::yield_now();
        }
        true
    });
    for _ in 0..often(2_000) {
        if random.one_in(64) {
            // Keys become idle, however many cores decide on them.
            ticks.fetch_add(100, Ordering::Relaxed);
        }
        let begun = clock();
        let now = tick(begun - random.below(20));
        let key = random.below(KEYS as u64);
        let log = &mut logs[key as usize];
        if random.one_in(4) {
            if aside(map, key, now) {
                log.reset(now).during(tick(begun), tick(clock()));
            }
        } else if let Ok(granted) = map.try_acquire_n_at(&key, 1 + random.below(2), now) {
            log.granted(&granted).during(tick(begun), tick(clock()));
        }
    }
    logs
}

/// Keys leave only when idle, and there is not room for all. The bound is the algorithm's own.
#[test]
fn idle_keys_that_leave_keep_their_bounds() {
    deadline("keys that leave as idle", || {
        for capacity in [1, 2, 3] {
            let map: Map = of(Hooked(bucket_of(2)), capacity);
            let map = map.with_overflow(Overflow::Deny);
            let aside: Aside = |map, _, now| {
                map.purge_idle_at(now, 2);
                false
            };
            keeps_the_bound(&map, aside, || map.stats().expired > 100);
            let stats = map.stats();
            assert_eq!((stats.evicted, stats.removed), (0, 0));
        }
    });
}

#[test]
fn each_removal_allows_one_extra_burst() {
    deadline("keys that are removed", || {
        let map: Map = of(Hooked(bucket_of(2)), 10);
        let aside: Aside = |map, key, _| map.remove(&key);
        keeps_the_bound(&map, aside, || map.stats().removed > 100);
    });
}
