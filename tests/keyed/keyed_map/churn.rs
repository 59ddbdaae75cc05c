//! The bound of each key while keys come and go all the time, on ticks that go forwards and back:
//! exactly that of its algorithm, plus one burst for each eviction.

use std::collections::BTreeSet;

use tollgate::audit::Log;
use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, KeyedMap, Overflow};

use super::of;
use crate::support::histories::{bursts_more, of_each};
use crate::support::{Random, algorithm, often, tick};

type Map = KeyedMap<u64, AnyAlgorithm, NoClock>;

const CAPACITY: u64 = 20;

fn busy(map: &Map) -> BTreeSet<u64> {
    let pinned = map.pin();
    let busy = pinned.iter_at(tick(0)).filter(|tracked| !tracked.is_idle());
    busy.map(|tracked| *tracked.key()).collect()
}

/// Ten times as many keys as there is room for, with a late tick now and then, until the present
/// keys have been replaced many times. Returns what each key got.
fn churned(map: &Map, seed: u64) -> Vec<Log> {
    let mut logs = vec![Log::new(); 10 * CAPACITY as usize];
    let (mut random, mut now) = (Random(seed), 1_000);
    let mut before = map.stats();
    while before.expired + before.evicted < often(20) * CAPACITY {
        now += random.below(3);
        let late = if random.one_in(4) {
            random.below(200)
        } else {
            0
        };
        let then = tick(now - late);
        let key = random.skewed(10 * CAPACITY);
        let there = match map.overflow() {
            Overflow::Evict => busy(map),
            _ => BTreeSet::new(),
        };
        let granted = map.try_acquire_n_at(&key, 1 + random.below(2), then);
        let after = map.stats();
        if after.evicted > before.evicted {
            // The key that was evicted: it has gone without having been idle.
            for gone in there.difference(&busy(map)) {
                logs[*gone as usize].reset(then);
            }
        }
        if let Ok(granted) = granted {
            logs[key as usize].granted(&granted);
        }
        before = after;
        assert!(now < 1_000_000, "{before:?}");
    }
    logs
}

#[test]
fn each_key_keeps_its_bound_except_for_evictions() {
    for (text, overflow) in [
        ("token-bucket 1/10ns burst 2", Overflow::Deny),
        ("token-bucket 1/10ns burst 2", Overflow::Evict),
        ("token-bucket 3/7ns burst 4", Overflow::Deny),
        ("gcra 1/10ns tolerance 15ns", Overflow::Deny),
        ("fixed-window 3/40ns", Overflow::Deny),
        ("sliding-window 3/40ns", Overflow::Deny),
        ("intervals 2/30ns burst 4 initial 1", Overflow::Deny),
    ] {
        let map: Map = of(algorithm(text), CAPACITY as usize);
        let map = map.with_overflow(overflow);
        let logs = churned(&map, text.len() as u64);
        let most = logs.iter().map(Log::len).max();
        bursts_more(&of_each(&[logs]), text, 0);
        let stats = map.stats();
        assert_eq!(stats.evicted > 0, overflow == Overflow::Evict, "{stats:?}");
        assert!(stats.expired > 0 && stats.removed == 0, "{stats:?}");
        assert!(most > Some(10), "{most:?}, {text}");
    }
}
