//! The bound of each key while keys come and go all the time, on ticks that go forwards and back: exactly that of its
//! algorithm, but for those that were evicted, each of which allows a burst more.

use std::collections::{BTreeMap, BTreeSet};

use tollgate::history::{Bounded, History, Log};
use tollgate::{AnyAlgorithm, KeyedMap, NoClock, Overflow, Tick};

use crate::{Random, tick};

const ALGORITHMS: [&str; 6] = [
    "token-bucket 1/10ns burst 2",
    "token-bucket 3/7ns burst 4",
    "gcra 1/10ns tolerance 15ns",
    "fixed-window 3/40ns",
    "sliding-window 3/40ns",
    "intervals 2/30ns burst 4 initial 1",
];

type Map = KeyedMap<u64, AnyAlgorithm, NoClock>;

fn there(map: &Map, now: Tick) -> BTreeSet<u64> {
    let pinned = map.pin();
    let busy = pinned.iter_at(now).filter(|tracked| !tracked.is_idle());
    busy.map(|tracked| *tracked.key()).collect()
}

/// Ten times as many keys as there is room for; a late tick now and then. What the logs say of each key, and how
/// often keys that were there have been replaced.
fn churned(map: &Map, capacity: u64, seed: u64) -> (BTreeMap<u64, Log>, u64) {
    let mut logs: BTreeMap<u64, Log> = BTreeMap::new();
    let mut random = Random(seed);
    let mut now = 1_000;
    let mut turnover = 0;
    while turnover < 100 * capacity {
        now += random.below(3);
        let then = tick(match random.below(4) {
            0 => now - random.below(200),
            _ => now,
        });
        let key = random.zipf(10 * capacity);
        let before = map.stats();
        let busy = match map.overflow() {
            Overflow::Evict => there(map, Tick::ZERO),
            _ => BTreeSet::new(),
        };
        let granted = map.try_acquire_n_at(&key, 1 + random.below(2), then);
        if map.stats().evicted > before.evicted {
            // Whoever is no longer there, although nobody saw it idle.
            for gone in busy.difference(&there(map, Tick::ZERO)) {
                logs.entry(*gone).or_default().reset(then);
            }
        }
        if let Ok(granted) = granted {
            logs.entry(key).or_default().granted(&granted);
        }
        let after = map.stats();
        turnover += after.left + after.evicted - before.left - before.evicted;
    }
    (logs, turnover)
}

#[test]
fn each_key_keeps_its_bound() {
    for (seed, text) in ALGORITHMS.into_iter().enumerate() {
        let algorithm: AnyAlgorithm = text.parse().expect(text);
        let map = Map::with_clock(algorithm, 20, NoClock).expect("a map");
        let map = map.with_overflow(Overflow::Deny);
        let (logs, _) = churned(&map, 20, seed as u64);
        let mut most = 0;
        for (key, log) in logs {
            let history: History = [log].into_iter().collect();
            match history.check(&algorithm.bound()) {
                Ok(summary) => most = most.max(summary.granted),
                Err(excess) => panic!("{text}, key {key}: {excess}"),
            }
        }
        let stats = map.stats();
        assert_eq!((stats.evicted, stats.removed), (0, 0));
        assert!(
            most > 10 && stats.left >= 2_000,
            "{text}: {most}, {stats:?}"
        );
    }
}

#[test]
fn but_for_evictions() {
    let algorithm: AnyAlgorithm = ALGORITHMS[0].parse().expect("an algorithm");
    let map = Map::with_clock(algorithm, 20, NoClock).expect("a map");
    let (logs, _) = churned(&map, 20, 7);
    let stats = map.stats();
    for (key, log) in logs {
        let history: History = [log].into_iter().collect();
        if let Err(excess) = history.check(&algorithm.bound()) {
            panic!("key {key}: {excess}");
        }
    }
    assert!(stats.evicted > 50, "{stats:?}");
}
