//! Restores into tables of another capacity, with another hasher, or with existing contents.

use std::hash::{BuildHasherDefault, DefaultHasher, Hasher, RandomState};
use std::io;

use tollgate::error::RestoreError;
use tollgate::keyed::{KeyHasher, SeededHasher};

use super::{next_table, read, restarted, table, ticks, whole, written};
use crate::support::*;

fn of_capacity(capacity: usize) -> Keyed<TokenBucket, ManualClock> {
    crate::support::of_capacity(capacity, bucket("1/h burst 100"))
}

/// Returns a table with `keys` keys. Each has as many permits left as its number says, from 0 to
/// 99.
fn filled(capacity: usize, keys: u64) -> Keyed<TokenBucket, ManualClock> {
    let limiter = of_capacity(capacity);
    for key in 0..keys {
        let _ = limiter.try_acquire_n(&key, 100 - key % 100).expect("fresh");
    }
    limiter
}

/// Keys are restored in another order than they were inserted, and still find room.
#[test]
fn a_table_of_any_size_has_room_for_each_key_and_finds_it() {
    for (old, new, keys) in [
        (1000, 1000, 1000),
        (1000, 100_000, 1000),
        (100_000, 1000, 1000),
        (3000, 2999, 1000),
        (20_000, 16_000, 10_000),
        (10_000, 10_000, 10_000),
    ] {
        let limiter = filled(old, keys);
        let there = limiter.len() as u64;
        assert_eq!(there + limiter.stats().evicted, keys, "{old}");
        assert!(there == keys || old == 10_000, "{old} has room");
        let mut next = of_capacity(new);
        let actual = read(&mut next, &written(&limiter)).expect("whole").keys;
        assert_eq!(actual, there);
        for key in (0..keys).step_by(7) {
            let views = [next.key(&key), limiter.key(&key)];
            let [has, had] = views.map(|key| key.available());
            assert_eq!(has, had, "{key}, {old} to {new}");
        }
        let stats = next.stats();
        assert_eq!([stats.tracked, stats.inserted], [there; 2]);
        assert_eq!((stats.no_room, stats.evicted), (0, 0));
        // New keys find a slot as in any table.
        if keys < 10_000 {
            for key in keys..keys + 200 {
                let _ = next.try_acquire(&key).expect("fresh");
            }
            assert_eq!((next.len() as u64, next.stats().evicted), (keys + 200, 0));
        }
    }
}

#[test]
fn keys_nearest_to_idle_are_dropped_when_there_is_no_room() {
    let keys = 10_000;
    let limiter = filled(20_000, keys);
    let (next, restored) = whole(of_capacity(1), &written(&limiter));
    assert_eq!(restored.keys + restored.no_room, keys);
    assert_eq!(restored.keys, next.len() as u64);
    // Nearly every slot is used.
    let slots = next.slots() as u64;
    assert!(restored.keys > slots * 99 / 100, "{restored:?}");
    let stats = next.stats();
    assert_eq!(stats.tracked, restored.keys);
    assert_eq!(stats.evicted, restored.no_room);
    assert_eq!(stats.inserted, stats.tracked + stats.evicted);
    let (mut spent, mut others) = (0, 0);
    for key in 0..keys {
        let (available, was) = (next.key(&key).available(), key % 100);
        assert!(available == was || available == 100, "{key}: {available}");
        spent += u64::from(available == was && was < 10);
        others += u64::from(available == was && was >= 50);
    }
    // A fifth of all keys finds room: nearly all of those that have spent the most, and hardly any
    // others.
    assert!(spent > keys / 10 * 95 / 100, "{spent}");
    assert!(others < keys / 2 / 100, "{others}");
}

#[test]
fn restored_keys_replace_the_contents_of_the_table() {
    let limiter = table(bucket("1/h burst 9"), ticks(1.0));
    let _ = limiter.try_acquire_n("alice", 4).expect("fresh");
    let mut next = next_table(bucket("1/h burst 9"), ticks(7.0));
    let _ = next.try_acquire_n("alice", 1).expect("fresh");
    let _ = next.try_acquire_n("bob", 9).expect("fresh");
    assert_eq!(read(&mut next, &written(&limiter)).expect("whole").keys, 1);
    let left = [next.key("alice").available(), next.key("bob").available()];
    assert_eq!((left, next.len()), ([5, 9], 1));
    let stats = next.stats();
    assert_eq!((stats.tracked, stats.inserted, stats.removed), (1, 3, 2));
    let empty = table(bucket("1/h"), ticks(1.0));
    assert!(restarted(&empty, bucket("1/h"), ticks(0.0), Duration::ZERO).is_empty());
}

/// Hashes the length of a slice in 32 bits or in 64, as platforms differ.
#[derive(Default)]
struct Addresses<const OF_32_BITS: bool>(DefaultHasher);

impl<const OF_32_BITS: bool> Hasher for Addresses<OF_32_BITS> {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_usize(&mut self, n: usize) {
        match OF_32_BITS {
            true => self.0.write_u32(n as u32),
            false => self.0.write_u64(n as u64),
        }
    }
}

#[test]
fn a_hasher_adopts_the_seed_or_must_be_the_same() {
    fn spent<S: KeyHasher>(hasher: S) -> Vec<u8> {
        let limiter = table(bucket("1/h burst 9"), ticks(1.0)).with_hasher(hasher);
        let _ = limiter.try_acquire_n("alice", 4).expect("fresh");
        written(&limiter)
    }
    /// Returns what the key has left, and the seed if the hasher has one.
    fn left<S: KeyHasher>(hasher: S, bytes: &[u8]) -> Option<(u64, Option<[u64; 2]>)> {
        let mut next = table(bucket("1/h burst 9"), ticks(1.0)).with_hasher(hasher);
        match read(&mut next, bytes) {
            Ok(_) => Some((next.key("alice").available(), next.hasher().seed())),
            Err(RestoreError::OtherHasher) => None,
            Err(other) => panic!("{other}"),
        }
    }
    let seeded = spent(SeededHasher::new([3, 4]));
    let expected = Some((5, Some([3, 4])));
    assert_eq!(left(SeededHasher::random(), &seeded), expected);
    assert_eq!(left(RandomState::new(), &seeded), None);
    let long = BuildHasherDefault::<Addresses<false>>::default;
    let short = BuildHasherDefault::<Addresses<true>>::default;
    assert_eq!(left(long(), &seeded), None);
    assert_eq!(left(long(), &spent(long())), Some((5, None)));
    assert_eq!(left(short(), &spent(short())), Some((5, None)));
    assert_eq!(left(RandomState::new(), &spent(long())), None);
    // Keys such as addresses would not be found.
    assert_eq!(left(long(), &spent(short())), None);
    assert_eq!(left(short(), &spent(long())), None);
    // A seeded table can match the hashes of an unseeded one only by chance.
    assert_eq!(left(SeededHasher::random(), &spent(long())), None);
}

/// Includes trait objects.
#[test]
fn any_writer_and_reader_works() {
    let limiter = filled(10, 3);
    let mut bytes = Vec::new();
    let writer: &mut dyn io::Write = &mut bytes;
    assert_eq!(limiter.snapshot(writer).expect("written"), 3);
    let mut whole = bytes.as_slice();
    let reader: &mut dyn io::Read = &mut whole;
    let restored = of_capacity(10).restore_after(reader, Duration::ZERO);
    assert_eq!(restored.expect("whole").keys, 3);
}
