//! Tables of another capacity, with another hasher, or that hold something already.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher, RandomState};
use std::io;
use std::time::Duration;

use tollgate::keyed::{KeyHasher, RestoreError, Seeded};
use tollgate::{Keyed, ManualClock, TokenBucket};

use crate::{Random, bucket, restarted, table, ticks, written};

fn of_capacity(capacity: usize) -> Keyed<TokenBucket, ManualClock> {
    Keyed::with_clock(bucket("1/h burst 100"), capacity, ManualClock::new()).expect("room")
}

/// So many keys, of which each has so many permits left as its number says, from 0 to 99.
fn filled(capacity: usize, keys: u64) -> Keyed<TokenBucket, ManualClock> {
    let gate = of_capacity(capacity);
    for key in 0..keys {
        let _ = gate.try_acquire_n(&key, 100 - key % 100).expect("fresh");
    }
    assert_eq!(gate.stats().evicted, 0);
    gate
}

#[test]
fn a_table_of_any_size_finds_each_key() {
    for (old, new) in [(1000, 1000), (1000, 100_000), (100_000, 1000), (3000, 2999)] {
        let gate = filled(old, 1000);
        let mut next = of_capacity(new);
        let restored = next.restore_after(&mut written(&gate).as_slice(), Duration::ZERO);
        assert_eq!(restored.expect("whole").keys, 1000);
        for key in 0..1000_u64 {
            assert_eq!(next.key(&key).available(), key % 100, "{old} to {new}");
        }
        let stats = next.stats();
        assert_eq!(
            (stats.tracked, stats.inserted, stats.no_room),
            (1000, 1000, 0)
        );
        // What comes next finds its place as in any table.
        for key in 1000..1200_u64 {
            let _ = next.try_acquire(&key).expect("fresh");
        }
        assert_eq!((next.len(), next.stats().evicted), (1200, 0));
    }
}

#[test]
fn where_there_is_no_room_those_nearest_to_idle_give_way() {
    let keys = 20_000;
    let gate = filled(40_000, keys);
    let mut next = of_capacity(1);
    let restored = next.restore_after(&mut written(&gate).as_slice(), Duration::ZERO);
    let restored = restored.expect("whole");
    assert_eq!(restored.keys + restored.no_room, keys);
    assert_eq!(restored.keys, next.len() as u64);
    // Nearly every slot is used.
    assert!(
        restored.keys > next.slots() as u64 * 99 / 100,
        "{restored:?}"
    );
    let stats = next.stats();
    assert_eq!(
        (stats.tracked, stats.evicted),
        (restored.keys, restored.no_room)
    );
    assert_eq!(stats.inserted, stats.tracked + stats.evicted);
    let (mut kept_spent, mut kept_others) = (0, 0);
    for key in 0..keys {
        let available = next.key(&key).available();
        let is_kept = available == key % 100;
        assert!(is_kept || available == 100, "{key}: {available}");
        match key % 100 {
            0..5 => kept_spent += u64::from(is_kept),
            50.. => kept_others += u64::from(is_kept),
            _ => {}
        }
    }
    // A tenth of all finds room: nearly all of those who have spent the most, and hardly one of the others.
    assert!(kept_spent > keys / 20 * 95 / 100, "{kept_spent}");
    assert!(kept_others < keys / 2 / 100, "{kept_others}");
}

#[test]
fn more_than_a_few_thousand_keys_come_in_several_blocks() {
    let (gate, mut random) = (filled(60_000, 30_000), Random(1));
    let mut next = of_capacity(50_000);
    let restored = next.restore_after(&mut written(&gate).as_slice(), Duration::ZERO);
    assert_eq!(restored.expect("whole").keys, 30_000);
    for key in (0..3000).map(|_| random.below(30_000)) {
        assert_eq!(next.key(&key).available(), key % 100);
    }
}

/// They come in another order than that in which they were put into the table, and find room all the same.
#[test]
fn a_table_of_the_same_capacity_has_room_for_all() {
    let (capacity, keys) = (100_000, 100_000_u64);
    let gate = of_capacity(capacity);
    for key in 0..keys {
        let _ = gate.try_acquire_n(&key, 100 - key % 100).expect("fresh");
    }
    let mut next = of_capacity(capacity);
    let restored = next.restore_after(&mut written(&gate).as_slice(), Duration::ZERO);
    let restored = restored.expect("whole");
    assert_eq!((restored.keys, restored.no_room), (gate.len() as u64, 0));
    for key in 0..keys {
        assert_eq!(next.key(&key).available(), gate.key(&key).available());
    }
}

#[test]
fn what_was_there_gives_way() {
    let gate = table(bucket("1/h burst 9"), ticks(1.0));
    let _ = gate.try_acquire_n("alice", 4).expect("fresh");
    let mut next = table(bucket("1/h burst 9"), ticks(7.0));
    let _ = next.try_acquire_n("alice", 1).expect("fresh");
    let _ = next.try_acquire_n("bob", 9).expect("fresh");
    let restored = next.restore_after(&mut written(&gate).as_slice(), Duration::ZERO);
    assert_eq!(restored.expect("whole").keys, 1);
    assert_eq!(next.key("alice").available(), 5);
    assert_eq!(next.key("bob").available(), 9);
    let stats = next.stats();
    assert_eq!((stats.tracked, stats.inserted, stats.forgotten), (1, 3, 2));
    assert_eq!(next.len(), 1);
}

#[test]
fn an_empty_table_goes_round() {
    let gate = table(bucket("1/h"), ticks(1.0));
    assert!(restarted(&gate, bucket("1/h"), ticks(0.0), Duration::ZERO).is_empty());
}

#[test]
fn a_hasher_takes_over_the_seed_or_must_be_the_same() {
    let gate = table(bucket("1/h burst 9"), ticks(1.0)).with_hasher(Seeded::new([3, 4]));
    let _ = gate.try_acquire_n("alice", 4).expect("fresh");
    let mut bytes = Vec::new();
    gate.snapshot(&mut bytes).expect("nothing fails");
    let mut next = table(bucket("1/h burst 9"), ticks(1.0));
    next.restore_after(&mut bytes.as_slice(), Duration::ZERO)
        .expect("whole");
    assert_eq!(next.key("alice").available(), 5);
    assert_eq!(next.hasher().seed(), Some([3, 4]));

    type Fixed = BuildHasherDefault<DefaultHasher>;
    let fixed = || table(bucket("1/h burst 9"), ticks(1.0)).with_hasher(Fixed::default());
    let random = || table(bucket("1/h burst 9"), ticks(1.0)).with_hasher(RandomState::new());
    let is_other = |error| matches!(error, Err(RestoreError::OtherHasher));
    assert!(is_other(fixed().restore(&mut bytes.as_slice())));
    assert!(is_other(random().restore(&mut bytes.as_slice())));

    let gate = fixed();
    let _ = gate.try_acquire_n("alice", 4).expect("fresh");
    let mut bytes = Vec::new();
    gate.snapshot(&mut bytes).expect("nothing fails");
    let mut next = fixed();
    next.restore_after(&mut bytes.as_slice(), Duration::ZERO)
        .expect("whole");
    assert_eq!(next.key("alice").available(), 5);
    assert!(is_other(random().restore(&mut bytes.as_slice())));
    // A table that has a seed can have the hashes of one that has none by chance only.
    let mut seeded = table(bucket("1/h burst 9"), ticks(1.0));
    assert!(is_other(seeded.restore(&mut bytes.as_slice())));
}

/// It hashes how long a slice is, as addresses have it: in 32 bits or in 64.
#[derive(Clone, Copy)]
struct Addresses {
    of_32_bits: bool,
}

struct Of32Bits(DefaultHasher, bool);

impl BuildHasher for Addresses {
    type Hasher = Of32Bits;

    fn build_hasher(&self) -> Of32Bits {
        Of32Bits(DefaultHasher::new(), self.of_32_bits)
    }
}

impl Hasher for Of32Bits {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_usize(&mut self, n: usize) {
        match self.1 {
            true => self.0.write_u32(n as u32),
            false => self.0.write_u64(n as u64),
        }
    }
}

/// Keys such as addresses would not be found.
#[test]
fn a_hasher_that_only_has_other_hashes_of_slices_is_another_one() {
    let of = |of_32_bits| of_capacity(10).with_hasher(Addresses { of_32_bits });
    for (from, to) in [(false, false), (true, true), (false, true), (true, false)] {
        let (gate, mut next) = (of(from), of(to));
        let _ = gate.try_acquire(&[10_u8, 0, 0, 7]).expect("fresh");
        let mut bytes = Vec::new();
        gate.snapshot(&mut bytes).expect("written");
        let restored = next.restore_after(&mut bytes.as_slice(), Duration::ZERO);
        match from == to {
            true => assert_eq!(restored.expect("the same").keys, 1),
            false => assert!(matches!(restored, Err(RestoreError::OtherHasher))),
        }
    }
}

/// Also those of which nobody knows the type.
#[test]
fn any_writer_and_reader_will_do() {
    let gate = filled(10, 3);
    let mut bytes = Vec::new();
    let writer: &mut dyn io::Write = &mut bytes;
    assert_eq!(gate.snapshot(writer).expect("written"), 3);
    let mut whole = bytes.as_slice();
    let reader: &mut dyn io::Read = &mut whole;
    let restored = of_capacity(10).restore_after(reader, Duration::ZERO);
    assert_eq!(restored.expect("whole").keys, 3);
}
