//! A table has the documented size, and slots for nearly as many keys as its capacity.

use tollgate::keyed::{KeyHasher, SeededHasher};

use crate::support::*;

fn seeded(capacity: usize, seed: [u64; 2]) -> Keyed<TokenBucket, ManualClock> {
    let table = of_capacity(capacity, bucket("3/h")).with_hasher(SeededHasher::new(seed));
    table.with_overflow(Overflow::Deny)
}

#[test]
fn each_slot_takes_twenty_four_bytes_for_any_key_type() {
    for capacity in [10_000, 12_345, 100_000, 1_000_000, 7_654_321] {
        let slots = seeded(capacity, [1, 1]).slots();
        assert!(slots * 16 <= 24 * capacity, "{slots} of {capacity}");
        assert!(slots * 10 >= 14 * capacity, "{slots} of {capacity}");
    }
    for capacity in [1, 1300] {
        assert_eq!(seeded(capacity, [1, 1]).slots(), 2048);
    }
}

/// With the feature `huge-pages` only the larger one asks for huge pages.
#[test]
fn a_key_gets_the_same_answers_in_tables_of_any_size() {
    let tables = [2000, 1_000_000].map(|capacity| seeded(capacity, [3, 4]));
    for turn in 0..4_u64 {
        for key in 0..1000_u64 {
            let [small, large] = tables
                .each_ref()
                .map(|table| table.try_acquire(&key).is_ok());
            assert_eq!((small, large), (turn < 3, turn < 3), "turn {turn} of {key}");
        }
    }
    let [mut small, large] = tables.map(|table| table.stats());
    assert!(small.slots < large.slots);
    small.slots = large.slots;
    assert_eq!(small, large);
}

/// Inserts these keys, and returns how many find no slot.
fn fill(limiter: &Keyed<TokenBucket, ManualClock>, keys: &mut Vec<u64>) -> usize {
    let all = keys.len();
    keys.retain(|key| limiter.try_acquire(key).is_ok());
    assert_eq!(limiter.len(), keys.len());
    assert_eq!(limiter.stats().no_room as usize, all - keys.len());
    all - keys.len()
}

/// Inserts new keys, numbers that are `apart` from each other: first as many as should fit, none of
/// them idle, and then others in place of half of them. Returns, for both, how many in ten thousand
/// find no slot.
fn without_room(capacity: usize, seed: [u64; 2], apart: u64) -> [usize; 2] {
    let limiter = seeded(capacity, seed);
    let mut there = (0..capacity as u64).map(|key| key * apart).collect();
    let filling = fill(&limiter, &mut there);
    let (mut random, turns) = (Random(seed[0]), 1 + capacity / 2);
    for key in 0..turns as u64 {
        let place = random.below(there.len() as u64) as usize;
        assert!(limiter.key(&there.swap_remove(place)).remove());
        // As many as before, regardless of which found no slot.
        let mut new = (1..11).map(|attempt| (attempt << 60) + key * apart);
        there.extend(new.find(|key| limiter.try_acquire(key).is_ok()));
    }
    let later = limiter.stats().no_room as usize - filling;
    [filling * 10_000 / capacity, later * 10_000 / turns]
}

#[test]
fn fewer_than_one_new_key_in_two_hundred_finds_no_room() {
    for (capacity, seed, apart) in [
        (10_000, [0, 0], 1),
        (10_000, [1, 2], 1 << 32),
        (10_000, [u64::MAX, 77], 1 << 46),
        (often(10_000) as usize, [5, 6], 1000),
    ] {
        let without = without_room(capacity, seed, apart);
        let is_right = without.iter().all(|keys| *keys < 50);
        assert!(is_right, "{without:?} of {capacity}, {apart}");
    }
    for seed in 0..5 {
        for capacity in [1, 10, 300, 1000] {
            let none = without_room(capacity, [seed, 1], 1);
            assert_eq!(none, [0, 0], "{capacity} {seed}");
        }
    }
}

/// Keys chosen to collide by a caller that knows the seed: in their first pair of lines, or in
/// both.
#[test]
fn keys_that_collide_under_one_seed_spread_under_another() {
    let places = |key: &u64| pairs(SeededHasher::new([3, 4]).hash_key(key));
    let in_one = (0..).filter(|key| places(key).0 == 9).take(3_000);
    let in_both = (0..).filter(|key| places(key) == (9, 200)).take(24);
    let (in_one, in_both) = (Vec::from_iter(in_one), Vec::from_iter(in_both));
    assert!(fill(&seeded(3_000, [3, 4]), &mut in_one.clone()) > 50);
    assert_eq!(fill(&seeded(1, [3, 4]), &mut in_both.clone()), 8);
    for seed in [[3, 5], [4, 4], [0, 0], [u64::MAX, 1], [1 << 40, 3]] {
        let none = fill(&seeded(3_000, seed), &mut in_one.clone());
        assert!(none < 15, "{none} with {seed:?}");
        assert_eq!(fill(&seeded(1, seed), &mut in_both.clone()), 0);
    }
}

/// The sum of squares over 256 parts is as random as expected.
#[test]
fn similar_keys_have_hashes_that_differ_in_every_part() {
    for seed in [[0, 0], [1, 2], [u64::MAX, 77]] {
        let hasher = SeededHasher::new(seed);
        for apart in [1, 1 << 32, 1 << 48, 1000] {
            // The first pair, the primary buckets, and bits of a tag.
            for shift in [52, 44, 28, 0] {
                let mut parts = [0_u64; 256];
                for key in 0..64 * 256_u64 {
                    parts[(hasher.hash_key(&(key * apart)) >> shift & 0xFF) as usize] += 1;
                }
                let sum: u64 = parts.iter().map(|count| count.abs_diff(64).pow(2)).sum();
                assert!(sum / 64 < 510, "{sum} {seed:?} {apart} {shift}");
            }
        }
    }
}
