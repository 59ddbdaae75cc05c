//! Any key will do: those with odd hashes, those that are in each other's way, and those that panic.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::keyed::{KeyHasher, Seeded};
use tollgate::{Denied, Keyed, ManualClock, Overflow, Quota, TokenBucket};

use crate::{Chosen, in_sixteen_slots};

fn table(capacity: usize) -> Keyed<TokenBucket, ManualClock> {
    let bucket = TokenBucket::new(Quota::per_hour(3)).expect("a bucket");
    let table = Keyed::with_clock(bucket, capacity, ManualClock::new()).expect("a table");
    table.with_overflow(Overflow::Deny)
}

/// Hashes that could mean something else, all of them different in their last 60 bits.
fn odd_hashes() -> Vec<u64> {
    let mut hashes = vec![
        0,
        (1 << 60) - 1,
        0x0FFF_0000_0000_0000,
        0xAAA_AAAA_AAAA_AAAA,
    ];
    // One bit, all but one, all from one bit on, and all below it.
    for bit in 0..60 {
        let all = (1_u64 << 60) - 1;
        hashes.extend([1 << bit, all ^ (1 << bit), all << bit & all, all >> bit]);
    }
    // What in a slot says free, pending, live, banned.
    hashes.extend(0..64);
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

#[test]
fn keys_with_odd_hashes_are_as_others() {
    let gate = table(1).with_hasher(Chosen::default());
    let hashes = odd_hashes();
    for turn in 0..5 {
        for hash in &hashes {
            assert_eq!(gate.try_acquire(hash).is_ok(), turn < 3, "{hash:#x}");
        }
    }
    assert_eq!(gate.len(), hashes.len());
    assert_eq!(gate.stats().no_room, 0);
    for (turn, hash) in hashes.iter().enumerate() {
        assert!(gate.forget(hash) && !gate.forget(hash), "{hash:#x}");
        assert_eq!(gate.len(), hashes.len() - turn - 1);
    }
}

/// By 60 bits keys are told apart; what has the same, is the same.
#[test]
fn keys_with_one_hash_have_one_limit() {
    let gate = table(1).with_hasher(Chosen::default());
    let granted = (0..1000).filter(|_| gate.try_acquire(&77_u64).is_ok());
    assert_eq!((granted.count(), gate.len()), (3, 1));
    let other = 77_u64 | 1 << 63;
    assert_eq!(gate.key(&other).available(), 0);
    assert_eq!(gate.key(&(77_u64 | 1 << 59)).available(), 3);
}

#[test]
fn sixteen_keys_have_room_where_all_are_in_each_others_way() {
    let gate = table(1).with_hasher(Chosen::default());
    let keys = in_sixteen_slots(100);
    for turn in 0..4 {
        for (place, key) in keys.iter().enumerate() {
            let right = match (place < 16, turn < 3) {
                (true, true) => Ok(()),
                (true, false) => Err(false),
                (false, _) => Err(true),
            };
            let said = gate.try_acquire(key).map(|_| ());
            let said = said.map_err(|denied| matches!(denied, Denied::NoRoom { .. }));
            assert_eq!(said, right, "{place} {turn}");
        }
    }
    assert_eq!((gate.len(), gate.stats().no_room), (16, 4 * 84));
    // One leaves, and there is room for one.
    assert!(gate.forget(&keys[5]));
    assert!(gate.try_acquire(&keys[50]).is_ok());
    assert!(gate.try_acquire(&keys[51]).is_err());
}

/// A key that panics while it is hashed, if it is told to.
struct Fragile(u64, bool);

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        assert!(!self.1, "as it was told to");
    }
}

#[test]
fn a_key_that_panics_leaves_the_table_whole() {
    let gate = table(1000);
    let panics = |work: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    for key in 0..100 {
        let bad = Fragile(key, true);
        panics(&|| {
            let _ = gate.try_acquire(&bad);
        });
        panics(&|| {
            let _ = gate.key(&bad);
        });
        panics(&|| {
            let _ = gate.forget(&bad);
        });
        panics(&|| {
            let _ = gate.ban(&bad, tollgate::Tick::MAX);
        });
        assert!(gate.try_acquire(&Fragile(key, false)).is_ok());
    }
    // The last of a batch: whole groups before it may be decided on, and each key's limit holds.
    let batch: Vec<_> = (0..50).map(|key| Fragile(1000 + key, key == 49)).collect();
    let mut outcomes = vec![Err(Denied::busy(1)); 50];
    let many = AssertUnwindSafe(|| gate.check_many(&batch, &mut outcomes));
    assert!(catch_unwind(many).is_err());
    let decided = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(gate.len(), 100 + decided);
    for key in 0..50 {
        let had = u64::from(outcomes[key as usize].is_ok());
        let granted = (0..9).filter(|_| gate.try_acquire(&Fragile(1000 + key, false)).is_ok());
        assert_eq!(granted.count() as u64 + had, 3, "{key}");
    }
    assert_eq!(
        (gate.len(), gate.stats().tracked, gate.stats().no_room),
        (150, 150, 0)
    );
}

/// How many of these keys find no room in a table of this seed.
fn without_room(capacity: usize, seed: [u64; 2], keys: &[u64]) -> u64 {
    let gate = table(capacity).with_hasher(Seeded::new(seed));
    for key in keys {
        let _ = gate.try_acquire(key);
    }
    assert_eq!(gate.len() as u64 + gate.stats().no_room, keys.len() as u64);
    gate.stats().no_room
}

/// How many of these keys have each first pair of lines, of the 256 of the smallest table.
fn first_pairs(seed: [u64; 2], keys: &[u64]) -> [u64; 256] {
    let (hasher, mut pairs) = (Seeded::new(seed), [0; 256]);
    for key in keys {
        pairs[(hasher.hash_key(key) >> 52 & 0xFF) as usize] += 1;
    }
    pairs
}

/// Keys that were chosen to be in each other's way, by somebody who knows the seed.
#[test]
fn keys_that_share_a_bucket_under_one_seed_spread_under_another() {
    let known = Seeded::new([3, 4]);
    let chosen = |key: &u64| known.hash_key(key) >> 52 & 0xFF == 9;
    let keys: Vec<u64> = (0..).filter(chosen).take(10_000).collect();
    assert_eq!(first_pairs([3, 4], &keys)[9], 10_000);
    let with = without_room(10_000, [3, 4], &keys);
    assert!(with > 150, "{with}");
    for seed in [[3, 5], [4, 4], [0, 0], [u64::MAX, 1], [1 << 40, 3]] {
        // 39 in each, and chance.
        let most = first_pairs(seed, &keys).into_iter().max();
        assert!(most < Some(75), "{most:?} with {seed:?}");
        let none = without_room(10_000, seed, &keys);
        assert!(none < 50, "{none} with {seed:?}");
    }
}

/// In both their pairs: sixteen of them have room.
#[test]
fn keys_that_share_all_their_slots_under_one_seed_do_not_under_another() {
    let known = Seeded::new([3, 4]);
    let pairs = |key: &u64| {
        let hash = known.hash_key(key);
        let tag = hash << 12;
        let apart = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 52 & 0xFF, (hash << 4).wrapping_add(apart) >> 56)
    };
    let keys: Vec<u64> = (0..)
        .filter(|key| pairs(key) == (9, 200))
        .take(24)
        .collect();
    assert_eq!(without_room(1, [3, 4], &keys), 8);
    for seed in [[3, 5], [4, 4], [0, 0]] {
        assert_eq!(without_room(1, seed, &keys), 0);
    }
}

/// Keys that differ little have hashes that differ in every part of them: the sum of squares over 256 parts is what
/// chance makes it.
#[test]
fn keys_spread_evenly() {
    const KEYS: u64 = 64 * 256;
    let kinds: [fn(u64) -> u64; 4] = [
        |key| key,
        |key| key << 32,
        |key| key << 48,
        |key| key * 1000,
    ];
    for seed in [[0, 0], [1, 2], [u64::MAX, 77]] {
        let hasher = Seeded::new(seed);
        for kind in kinds {
            // The first pair, the home lines, and the first bits of a tag.
            for shift in [52, 44, 0, 28] {
                let mut parts = [0_u64; 256];
                for key in 0..KEYS {
                    let hash = hasher.hash_key(&kind(key));
                    parts[(hash >> shift & 0xFF) as usize] += 1;
                }
                let square = |count: &u64| count.abs_diff(64).pow(2);
                let sum = parts.iter().map(square).sum::<u64>() / 64;
                // Of 255 degrees of freedom; a part with all keys of its neighbour would make it thrice as much.
                assert!(sum < 510, "{sum} {seed:?} {shift}");
            }
        }
    }
}

#[test]
fn borrowed_keys_are_the_same_as_owned_ones() {
    let gate = table(10);
    assert!(gate.try_acquire("alice").is_ok());
    assert!(gate.try_acquire(&String::from("alice")).is_ok());
    assert!(gate.try_acquire(&&&"alice").is_ok());
    assert_eq!((gate.key("alice").available(), gate.len()), (0, 1));
    assert!(gate.try_acquire(&[1_u8, 2][..]).is_ok());
    assert!(gate.try_acquire(&vec![1_u8, 2]).is_ok());
    assert_eq!((gate.key(&[1_u8, 2][..]).available(), gate.len()), (1, 2));
}
