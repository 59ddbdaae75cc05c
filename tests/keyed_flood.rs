//! A flood of keys that nobody has seen before, each of which comes once, gives nobody who has spent all a fresh
//! burst, whatever becomes of those that find no room; and each key that leaves is counted.
#![cfg(feature = "keyed")]

use std::thread;
use std::time::Duration;

use tollgate::{Keyed, NoClock, Overflow, Quota, Tick, TokenBucket};

const CAPACITY: usize = 1400;

/// Those who have spent all.
const SPENT: u64 = 50;
const BURST: u64 = 100;
/// From one permit to the next: 100 a minute.
const INTERVAL: Duration = Duration::from_millis(600);

/// Ten tables full.
const FLOOD: u64 = 10 * CAPACITY as u64;

const START: Tick = Tick::from_nanos(86_400_000_000_000);

type Table = Keyed<TokenBucket, NoClock>;

fn table(overflow: Overflow) -> Table {
    let bucket = TokenBucket::new(Quota::per_minute(100).burst(BURST)).expect("a quota that fits");
    let table = Keyed::with_clock(bucket, CAPACITY, NoClock).expect("a capacity that can be had");
    table.with_overflow(overflow)
}

fn asks(table: &Table, key: u64, now: Tick) -> bool {
    table.try_acquire_at(&key, now).is_ok()
}

/// What a key gets that takes all it can.
fn drain(table: &Table, key: u64, now: Tick) -> u64 {
    (0..).take_while(|_: &u64| asks(table, key, now)).count() as u64
}

/// A table in which some have spent all.
fn with_spent(overflow: Overflow) -> Table {
    let table = table(overflow);
    for key in 0..SPENT {
        assert_eq!(drain(&table, key, START), BURST);
    }
    table
}

/// What was made since the start.
fn made(now: Tick) -> u64 {
    (now.saturating_since(START).as_nanos() / INTERVAL.as_nanos()) as u64
}

/// What each new key is answered, at ticks that are so far apart, while the spent ones ask now and then. Looks that
/// each of those gets what it is due, and not one permit more or less.
fn flood(table: &Table, apart: Duration) -> u64 {
    let (mut now, mut allowed) = (START, 0);
    let mut granted = [0; SPENT as usize];
    for new in SPENT..SPENT + FLOOD {
        now = now.saturating_add(apart);
        allowed += u64::from(asks(table, new, now));
        let asking = new % (3 * SPENT);
        if let Some(granted) = granted.get_mut(asking as usize) {
            *granted += u64::from(asks(table, asking, now));
        }
    }
    for (key, granted) in (0..).zip(granted) {
        let left = drain(table, key, now);
        assert_eq!(granted + left, made(now), "{key}: a burst was spent before");
    }
    allowed
}

/// So long that those who asked once are idle long before their place is needed, and so short that none is.
const APART: [Duration; 2] = [Duration::from_millis(1), Duration::from_micros(1)];

#[test]
fn those_who_have_spent_all_get_what_they_are_due() {
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        for apart in APART {
            flood(&with_spent(overflow), apart);
        }
    }
}

#[test]
fn in_a_slow_flood_everybody_is_served_and_the_idle_make_room() {
    let table = with_spent(Overflow::Deny);
    let [slow, _] = APART;
    assert_eq!(flood(&table, slow), FLOOD);
    let stats = table.stats_at(Tick::ZERO);
    assert_eq!((stats.evicted, stats.no_room), (0, 0), "{stats:?}");
    assert_eq!(stats.inserted, SPENT + FLOOD, "{stats:?}");
    assert_eq!(
        stats.inserted,
        stats.tracked + stats.taken_over,
        "{stats:?}"
    );
    assert!(stats.tracked <= 2 * CAPACITY as u64, "{stats:?}");
}

#[test]
fn in_a_fast_flood_the_overflow_decides_and_is_counted() {
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let table = with_spent(overflow);
        let [_, fast] = APART;
        let allowed = flood(&table, fast);
        let stats = table.stats_at(Tick::ZERO);
        let (came, left) = (stats.inserted, stats.taken_over + stats.evicted);
        assert_eq!(came, stats.tracked + left, "{overflow:?}: {stats:?}");
        assert_eq!(stats.taken_over, 0, "{overflow:?}: {stats:?}");
        let room = FLOOD + SPENT - stats.no_room;
        assert_eq!(came, room, "{overflow:?}: {stats:?}");
        match overflow {
            Overflow::Evict => assert_eq!((allowed, stats.no_room), (FLOOD, 0), "{stats:?}"),
            Overflow::Deny => assert_eq!(allowed, FLOOD - stats.no_room, "{stats:?}"),
            Overflow::Admit => assert_eq!(allowed, FLOOD, "{stats:?}"),
        }
        assert_eq!(stats.evicted > 0, overflow == Overflow::Evict, "{stats:?}");
        assert!(stats.tracked >= CAPACITY as u64, "{overflow:?}: {stats:?}");
    }
}

/// Several flood, and others ask for the spent keys, all at the same tick.
#[test]
fn a_flood_from_several_threads_gives_the_spent_nothing() {
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let table = with_spent(overflow);
        let later = START.saturating_add(3 * INTERVAL);
        let granted: u64 = thread::scope(|scope| {
            let flooding = |thread: u64| {
                let first = SPENT + thread * FLOOD;
                let table = &table;
                scope.spawn(move || {
                    for key in first..first + FLOOD / 2 {
                        let _ = asks(table, key, later);
                    }
                })
            };
            let asking = |_| {
                let asks = || (0..4000).filter(|turn| asks(&table, turn % SPENT, later));
                scope.spawn(move || asks().count() as u64)
            };
            let (floods, askers) = ([0, 1].map(flooding), [0, 1].map(asking));
            for flood in floods {
                flood.join().expect("it ends");
            }
            askers
                .map(|asker| asker.join().expect("it ends"))
                .iter()
                .sum()
        });
        assert_eq!(granted, 3 * SPENT, "{overflow:?}");
        let stats = table.stats_at(Tick::ZERO);
        assert_eq!(
            stats.inserted,
            stats.tracked + stats.evicted + stats.taken_over
        );
    }
}
