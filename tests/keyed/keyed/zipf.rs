//! Zipf-distributed keys, ten times as many as slots, with some late callers. By the ticks at which
//! its grants count, each key stays within its bound, plus one burst for each eviction or admission
//! without room.

use tollgate::stats::KeyedStats;
use tollgate_audit::{Audit, Log};

use crate::support::histories::{bursts_more, of_each};
use crate::support::*;

/// The slots of the smallest table.
const SLOTS: u64 = 2048;

/// Returns what each key got, and the statistics, after this many turnovers of all slots.
fn churned(text: &str, overflow: Overflow, turnovers: u64) -> (Vec<Audit>, KeyedStats) {
    let table = table(algorithm(text)).with_overflow(overflow);
    assert_eq!(table.slots() as u64, SLOTS);
    let mut logs = vec![Log::new(); 10 * SLOTS as usize];
    let (mut random, mut now) = (Random(1), 10 * SECOND);
    for turn in 0.. {
        now += random.below(30_000);
        let key = random.skewed(10 * SLOTS);
        // Some callers are late by at least the time that a key takes to become idle.
        let late = match random.below(8) {
            0 => random.below(3 * SECOND),
            1 => random.below(30_000_000),
            _ => 0,
        };
        let at = table.key(&key).at(tick(now - late));
        let granted = at.take_up_to(1 + random.below(3));
        logs[key as usize].granted(&granted);
        if turn % SLOTS == 0 {
            let stats = table.stats();
            if stats.expired + stats.evicted > turnovers * SLOTS {
                break;
            }
            assert!(turn < 100 * turnovers * SLOTS, "{stats:?}");
        }
    }
    (of_each(&[logs]), table.stats())
}

#[test]
fn a_key_gets_extra_permits_only_by_eviction_or_admission_without_room() {
    let bucket = "token-bucket 20/s burst 5";
    for (text, overflow, turnovers) in [
        (bucket, Overflow::Evict, often(6)),
        (bucket, Overflow::Admit, often(2)),
        (bucket, Overflow::Deny, often(2)),
        ("fixed-window 5/250ms", Overflow::Deny, often(2)),
        ("sliding-window 5/250ms", Overflow::Deny, often(2)),
    ] {
        let (histories, stats) = churned(text, overflow, turnovers);
        let (evicted, no_room) = (stats.evicted, stats.no_room);
        let (allowed, none) = match overflow {
            Overflow::Evict => (evicted, no_room),
            Overflow::Admit => (no_room, evicted),
            Overflow::Deny => (0, evicted),
        };
        assert!(none == 0 && stats.expired > SLOTS, "{stats:?} {text}");
        let more = bursts_more(&histories, text, allowed);
        assert_eq!(more > 0, overflow != Overflow::Deny, "{stats:?} {text}");
    }
}
