//! Files that no table wrote, with a valid checksum: each invalid field is named, and nothing
//! panics.

use tollgate::algorithm::Settings;
use tollgate::error::RestoreError;

use super::{next_table, read, table, ticks, written};
use crate::support::*;

/// CRC-64/XZ, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc: u64, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 * (crc & 1))
        })
    })
}

/// Corrects the checksum.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Replaces the eight bytes at `at` with a number, and corrects the checksum.
pub(super) fn with_number(bytes: &[u8], at: usize, number: u64) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len() - 8].to_vec();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    sealed(bytes)
}

/// Returns a file with the head of a token bucket's file and these numbers after it.
pub(super) fn with_blocks(numbers: &[u64]) -> Vec<u8> {
    let limiter = table(bucket("10/s"), ticks(1.0));
    let mut bytes = written(&limiter)[..HEAD].to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    sealed(bytes)
}

/// Magic, version, tick, time of day, seed, known hash, and the name.
const HEAD: usize = 9 * 8 + "token-bucket".len();

pub(super) fn error_of(bytes: &[u8]) -> RestoreError {
    let mut limiter = table(bucket("10/s"), ticks(1.0));
    let _ = limiter.try_acquire_n("alice", 3).expect("fresh");
    // Everything except the time of day, which advances.
    let state = |bytes: &[u8]| bytes[4 * 8..bytes.len() - 8].to_vec();
    let before = state(&written(&limiter));
    let error = read(&mut limiter, bytes).expect_err("it is invalid");
    // Nothing has changed.
    assert_eq!(limiter.key("alice").available(), 7);
    assert_eq!(before, state(&written(&limiter)));
    error
}

#[test]
fn each_invalid_field_is_named() {
    let head = written(&table(bucket("10/s"), ticks(1.0)));
    let said = |bytes: &[u8]| match error_of(bytes) {
        RestoreError::Invalid { field, .. } => field.to_string(),
        RestoreError::Version { found, known: 4 } => format!("version {found}"),
        RestoreError::OtherAlgorithm {
            found, expected, ..
        } => format!("{found}, {expected}"),
        other => format!("{other:?}"),
    };
    for (place, number, right) in [
        (0, 0, "NotASnapshot"),
        (1, 5, "version 5"),
        (1, 0, "version 0"),
        (4, 2, "whether there is a seed"),
        // Another seed gives the known key another hash.
        (5, 99, "OtherHasher"),
        (7, 99, "OtherHasher"),
        (8, u64::MAX, "length of the name"),
        (8, 5, "token, token-bucket"),
    ] {
        assert_eq!(said(&with_number(&head, 8 * place, number)), right);
    }
    let good = parameters("10/s");
    let plan = [&[1, 1, good.len() as u64], good.as_slice()].concat();
    let mut cases = vec![
        (vec![0, 0, 0], "kind of the block"),
        (vec![2, 1, 0, 0], "kind of the block"),
        (vec![7], "kind of the block"),
        (vec![4, 0], "number of plans"),
        (vec![4, 9], "number of plans"),
        (vec![4, 1, 0], "length of a plan's name"),
        (vec![4, 1, 65], "length of a plan's name"),
        // A name of eight bytes.
        (vec![4, 1, 8, 77, 4, 1, 8, 77], "kind of the block"),
        (vec![4, 1, 8, 77, 2], "kind of the block"),
        (vec![4, 1, 8, 77, 1, 2], "number of plans"),
        (vec![1, 1, 16], "number of parameters"),
        (vec![1, 1, u64::MAX], "number of parameters"),
        ([plan.as_slice(), &[1, 2]].concat(), "number of plans"),
    ];
    cases.extend([0, 9, u64::MAX].map(|count| (vec![1, count], "number of plans")));
    for (more, right) in [
        (&[2, 0][..], "number of keys"),
        (&[2, 4097], "number of keys"),
        (&[2, 1 << 40], "number of keys"),
        (&[2, u64::MAX], "number of keys"),
        (&[2, 4096, 0], "Truncated"),
        (&[2, 1, 0b10, 5], "plan of a key"),
        (&[2, 1, 0, u64::MAX], "word of a key"),
        (&[0, 0, 1], "number of keys in all"),
        (&[2, 1, 0, 5, 0, 0, 0], "number of keys in all"),
        (&[3, 0], "number of keys"),
        (&[3, 1, 0b10], "protected keys"),
        (&[3, 65, u64::MAX, 0b10], "protected keys"),
        (&[3, 64, u64::MAX], "Truncated"),
        (&[3, 1, 1, 0b10, 5], "plan of a key"),
        (&[4, 1, 8, 77], "kind of the block"),
        (&[5, 1, 1, 0, 5], "kind of the block"),
    ] {
        cases.push(([plan.as_slice(), more].concat(), right));
    }
    for (numbers, right) in cases {
        assert_eq!(said(&with_blocks(&numbers)), right, "{numbers:?}");
    }
}

/// The parameters of a bucket that follow from the others: the horizon, the inverse and the burst.
const DERIVED: [usize; 3] = [1, 2, 5];

pub(super) fn parameters(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    bucket(text).save(&mut |number| numbers.push(number));
    numbers
}

#[test]
fn impossible_parameters_are_refused() {
    let good = parameters("11/s burst 30");
    let with = |numbers: &[u64]| {
        let head = [1, 1, numbers.len() as u64];
        with_blocks(&[&head, numbers, &[2, 1, 0x10, 1 << 62, 0, 0, 1]].concat())
    };
    let is_other = |error| matches!(error, RestoreError::OtherParameters { plan: Some(0) });
    let mut limiter = next_table(bucket("10/s"), ticks(1.0));
    let restored = read(&mut limiter, &with(&good));
    assert_eq!(restored.expect("they are usual").keys, 1);
    let mut refused = 0;
    for place in 0..good.len() {
        for bit in 0..64 {
            let mut numbers = good.clone();
            numbers[place] ^= 1 << bit;
            match read(&mut limiter, &with(&numbers)) {
                // A slightly different parameter may belong to another bucket.
                Ok(_) => assert!(!DERIVED.contains(&place), "{place} {bit}"),
                Err(error) => {
                    assert!(is_other(error), "{place} {bit}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 5 * 64, "{refused}");
    for length in 0..good.len() {
        assert!(is_other(error_of(&with(&good[..length]))));
    }
    let longer = [&*good, &[0]].concat();
    assert!(is_other(error_of(&with(&longer))));
}

/// How many forged files were restored, and how many refused.
pub(super) struct Tally {
    random: Random,
    restored: u64,
    refused: u64,
}

impl Tally {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            restored: 0,
            refused: 0,
        }
    }

    /// Restores files in which the number at one of these places is replaced by others.
    pub(super) fn forge(
        &mut self,
        bytes: &[u8],
        places: impl Iterator<Item = usize>,
        mut restore: impl FnMut(&[u8], &mut Random) -> Result<(), RestoreError>,
    ) {
        let random = &mut self.random;
        for at in places {
            let old = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
            let bit = old ^ (1 << random.below(64));
            let turned = old.rotate_left(random.below(64) as u32);
            let mut numbers = vec![0, u64::MAX - 1, u64::MAX, old.wrapping_add(1), bit, turned];
            numbers.extend((1..often(1)).map(|_| random.next()));
            for number in numbers {
                match restore(&with_number(bytes, at, number), random) {
                    Ok(()) => self.restored += 1,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        self.refused += 1;
                    }
                }
            }
        }
    }

    /// Checks that more than these numbers were restored and refused.
    pub(super) fn check(&self, restored: u64, refused: u64) {
        let is_enough = self.restored > restored && self.refused > refused;
        assert!(is_enough, "{} {}", self.restored, self.refused);
    }
}

/// Each number of a whole snapshot of each algorithm is replaced by others. There may be an error
/// or not, but no panic, and a restored table answers any request.
#[test]
fn forged_numbers_never_panic() {
    let mut tally = Tally::new(5);
    for algorithm in all() {
        let limiter = table(algorithm, ticks(100.0));
        for key in 0..8_u64 {
            let _ = limiter.try_acquire_n(&key, 1 + key % 3);
        }
        let mallory = limiter.key("mallory");
        assert!(mallory.ban_for(Duration::from_secs(5)).is_ok());
        let bytes = written(&limiter);
        // The name has three letters. Whole numbers follow it.
        let head = (0..9).map(|place| 8 * place);
        let places = head.chain((75..bytes.len() - 8).step_by(8));
        tally.forge(&bytes, places, |forged, random| {
            let to = tick(random.next() >> random.below(64));
            let mut next = next_table(all()[random.below(13) as usize], to);
            next.restore_after(&mut &*forged, Duration::from_nanos(to.as_nanos() / 3))?;
            asked(&next);
            Ok(())
        });
    }
    tally.check(1000, 300);
}

pub(super) fn asked(limiter: &Keyed<AnyAlgorithm, ManualClock>) {
    for key in 0..8_u64 {
        let key = limiter.key(&key);
        let _ = (key.available(), key.time_until(1), key.level());
        let _ = (key.try_acquire(), key.charge(3), key.refund(2));
    }
    let _ = limiter.key("mallory").try_acquire();
    written(limiter);
}

/// As if the key had left and come back while the snapshot was written.
#[test]
fn the_second_entry_of_a_key_counts_even_if_it_is_idle() {
    let limiter = table(bucket("10/h"), ticks(1.0));
    for key in 0..2_u64 {
        let _ = limiter.try_acquire_n(&key, 10).expect("fresh");
    }
    let bytes = written(&limiter);
    // The block's start comes before it, and the plans before that. The end, in four numbers, comes
    // after it.
    let body = bytes[HEAD..].chunks_exact(8);
    let body = body.map(|number| u64::from_le_bytes(number.try_into().expect("eight")));
    let body: Vec<u64> = body.collect();
    let (blocks, keys) = body[..body.len() - 4].split_at(body.len() - 8);
    let [label, word, ..] = *keys else {
        unreachable!("two keys")
    };
    for (second, there) in [(word, 1), (0, 0)] {
        let keys = [label, word, label, second, 0, 0, 2];
        let twice = with_blocks(&[blocks, keys.as_slice()].concat());
        let mut next = table(bucket("10/h"), ticks(1.0));
        assert_eq!(read(&mut next, &twice).expect("whole").keys, there);
        assert_eq!((next.len() as u64, next.stats().tracked), (there, there));
    }
}
