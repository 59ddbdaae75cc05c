//! A table is as large as it says, and has room for nearly as many keys as it was made for.

use tollgate::keyed::Seeded;
use tollgate::{Keyed, ManualClock, Overflow, Quota, TokenBucket};

use crate::Random;

fn table(capacity: usize, seed: [u64; 2]) -> Keyed<TokenBucket, ManualClock> {
    let bucket = TokenBucket::new(Quota::per_hour(3)).expect("a bucket");
    let table = Keyed::with_clock(bucket, capacity, ManualClock::new()).expect("a table");
    let table = table.with_hasher(Seeded::new(seed));
    table.with_overflow(Overflow::Deny)
}

#[test]
fn twenty_four_bytes_a_key_whatever_the_key_is() {
    for capacity in [10_000, 12_345, 100_000, 1_000_000, 7_654_321] {
        let slots = table(capacity, [1, 1]).slots();
        assert!(slots * 16 <= 24 * capacity, "{slots} of {capacity}");
        assert!(slots * 10 >= 14 * capacity, "{slots} of {capacity}");
    }
    for capacity in [1, 1300] {
        assert_eq!(table(capacity, [1, 1]).slots(), 2048);
    }
}

/// New keys until there are as many as there should be room for, none of them idle; and then others for some of them.
/// How many in ten thousand of both find no room.
fn without_room(capacity: usize, seed: [u64; 2]) -> [u64; 2] {
    let gate = table(capacity, seed);
    let mut there = Vec::with_capacity(capacity);
    for key in 0..capacity as u64 {
        if gate.try_acquire(&key).is_ok() {
            there.push(key);
        }
    }
    let filling = gate.stats().no_room;
    assert_eq!(gate.len(), there.len());
    let mut random = Random(seed[0]);
    let turns = 1 + capacity as u64 / 2;
    for key in 0..turns {
        let place = random.below(there.len() as u64) as usize;
        assert!(gate.forget(&there.swap_remove(place)));
        // As many as before, whoever found no room.
        for attempt in 0..10 {
            let new = 1 << 40 | attempt << 32 | key;
            if gate.try_acquire(&new).is_ok() {
                there.push(new);
                break;
            }
        }
    }
    let later = gate.stats().no_room - filling;
    [filling * 10_000 / capacity as u64, later * 10_000 / turns]
}

#[test]
fn fewer_than_one_new_key_in_two_hundred_finds_no_room() {
    for (capacity, seed) in [
        (10_000, [1, 2]),
        (10_000, [3, 4]),
        (30_000, [5, 6]),
        (65_000, [7, 8]),
    ] {
        let [filling, later] = without_room(capacity, seed);
        assert!(
            filling < 50 && later < 50,
            "{filling}, {later} of {capacity}"
        );
    }
}

#[test]
fn small_tables_have_room_for_all() {
    for seed in 0..10 {
        for capacity in [1, 10, 300, 1000] {
            assert_eq!(
                without_room(capacity, [seed, 1]),
                [0, 0],
                "{capacity} {seed}"
            );
        }
    }
}

/// What threads do, and keys that come and go, leaves it as large as it was.
#[test]
fn slots_are_as_many_as_before_whoever_came() {
    let gate = table(1, [1, 2]).with_overflow(Overflow::Evict);
    for key in 0..30_000 {
        assert!(gate.try_acquire(&key).is_ok());
        assert!(gate.len() <= gate.slots());
    }
    assert_eq!(gate.slots(), 2048);
    let stats = gate.stats();
    assert_eq!((stats.inserted, stats.no_room), (30_000, 0));
    assert_eq!(stats.evicted, 30_000 - stats.tracked);
}
