//! Files that nobody wrote, with the right checksum: what is absurd in them has a name, and nothing panics.

use std::time::Duration;

use tollgate::keyed::RestoreError;
use tollgate::{AnyAlgorithm, Keyed, ManualClock, Settings, Tick};

use crate::{Random, all, bucket, table, ticks, written};

/// CRC-64/XZ, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc: u64, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 * (crc & 1))
        })
    })
}

/// With the checksum that it should have.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The same with another number in this place, which counts as one of those that follow each other.
pub(crate) fn with_number(bytes: &[u8], place: usize, number: u64) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len() - 8].to_vec();
    bytes[8 * place..8 * place + 8].copy_from_slice(&number.to_le_bytes());
    sealed(bytes)
}

/// A file of these numbers after the head of another one, of a token bucket.
fn with_blocks(numbers: &[u64]) -> Vec<u8> {
    let gate = table(bucket("10/s"), ticks(1.0));
    let mut bytes = written(&gate)[..HEAD].to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    sealed(bytes)
}

/// Magic, version, tick, time of day, seed, known hash, and the name.
const HEAD: usize = 9 * 8 + "token-bucket".len();

fn error_of(bytes: &[u8]) -> RestoreError {
    let mut gate = table(bucket("10/s"), ticks(1.0));
    let _ = gate.try_acquire_n("alice", 3).expect("fresh");
    let before = written(&gate);
    let error = gate.restore_after(&mut &*bytes, Duration::ZERO);
    let error = error.expect_err("it is absurd");
    // Nothing has changed.
    assert_eq!(gate.key("alice").available(), 7);
    assert_eq!(numbers(&before)[4..], numbers(&written(&gate))[4..]);
    error
}

/// All but the time of day, which goes on.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    let bytes = &bytes[..bytes.len() - 8];
    bytes
        .chunks(8)
        .map(|number| {
            number
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        })
        .collect()
}

#[test]
fn what_is_absurd_has_a_name() {
    let head = written(&table(bucket("10/s"), ticks(1.0)));
    let field = |bytes: &[u8]| match error_of(bytes) {
        RestoreError::Invalid { field, .. } => field,
        other => panic!("{other}"),
    };
    let is_version = |found| move |error| matches!(error, RestoreError::Version { found: f, known: 1 } if f == found);
    assert!(is_version(2)(error_of(&with_number(&head, 1, 2))));
    assert!(is_version(0)(error_of(&with_number(&head, 1, 0))));
    assert!(matches!(
        error_of(&with_number(&head, 0, 0)),
        RestoreError::NotASnapshot
    ));
    assert_eq!(field(&with_number(&head, 4, 2)), "whether there is a seed");
    // Another seed has not the same hash of the known key.
    assert!(matches!(
        error_of(&with_number(&head, 5, 99)),
        RestoreError::OtherHasher
    ));
    assert!(matches!(
        error_of(&with_number(&head, 7, 99)),
        RestoreError::OtherHasher
    ));
    assert_eq!(
        field(&with_number(&head, 8, u64::MAX)),
        "length of the name"
    );
    match error_of(&with_number(&head, 8, 5)) {
        RestoreError::OtherAlgorithm { found, expected } => {
            assert_eq!((found.as_str(), expected), ("token", "token-bucket"));
        }
        other => panic!("{other}"),
    }
    let good = parameters("10/s");
    let plans = |count: u64, more: &[u64]| {
        let mut numbers = vec![1, count, good.len() as u64];
        numbers.extend(&good);
        numbers.extend(more);
        with_blocks(&numbers)
    };
    assert_eq!(field(&with_blocks(&[0, 0, 0])), "kind of the block");
    assert_eq!(field(&with_blocks(&[2, 1, 0, 0])), "kind of the block");
    assert_eq!(field(&with_blocks(&[7])), "kind of the block");
    for count in [0, 9, u64::MAX] {
        assert_eq!(field(&with_blocks(&[1, count])), "number of plans");
    }
    for count in [16, u64::MAX] {
        assert_eq!(field(&with_blocks(&[1, 1, count])), "number of parameters");
    }
    assert_eq!(field(&plans(1, &[1, 2])), "number of plans");
    for count in [0, 4097, 1 << 40, u64::MAX] {
        assert_eq!(field(&plans(1, &[2, count])), "number of keys");
    }
    assert!(matches!(
        error_of(&plans(1, &[2, 4096, 0])),
        RestoreError::Truncated
    ));
    assert_eq!(field(&plans(1, &[2, 1, 0b10, 5])), "plan of a key");
    assert_eq!(field(&plans(1, &[2, 1, 0, u64::MAX])), "word of a key");
    assert_eq!(field(&plans(1, &[0, 0, 1])), "number of keys in all");
    assert_eq!(
        field(&plans(1, &[2, 1, 0, 5, 0, 0, 0])),
        "number of keys in all"
    );
}

/// Which of a bucket's parameters follow from the others: the horizon, the inverse and the burst.
const DERIVED: [usize; 3] = [1, 2, 6];

fn parameters(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    bucket(text).save(&mut |number| numbers.push(number));
    numbers
}

#[test]
fn parameters_that_no_algorithm_has_are_refused() {
    let good = parameters("11/s burst 30");
    let with = |numbers: &[u64]| {
        let head = [1, 1, numbers.len() as u64];
        with_blocks(&[&head, numbers, &[2, 1, 0x10, 1 << 62, 0, 0, 1]].concat())
    };
    let mut gate = table(bucket("10/s"), ticks(1.0));
    let restored = gate.restore_after(&mut with(&good).as_slice(), Duration::ZERO);
    assert_eq!(restored.expect("they are usual").keys, 1);
    let mut refused = 0;
    for place in 0..good.len() {
        for bit in 0..64 {
            let mut numbers = good.clone();
            numbers[place] ^= 1 << bit;
            let bytes = with(&numbers);
            match gate.restore_after(&mut bytes.as_slice(), Duration::ZERO) {
                Err(RestoreError::OtherParameters { plan: 0 }) => {}
                // Slightly different ones may be those of another bucket.
                other => {
                    other.expect("its parameters are those of some bucket, or of none");
                    assert!(!DERIVED.contains(&place), "{place} {bit}");
                    continue;
                }
            }
            refused += 1;
        }
    }
    assert!(refused > 5 * 64, "{refused}");
    for length in 0..good.len() {
        let error = error_of(&with(&good[..length]));
        assert!(matches!(error, RestoreError::OtherParameters { plan: 0 }));
    }
    let longer = [&*good, &[0]].concat();
    let error = error_of(&with(&longer));
    assert!(matches!(error, RestoreError::OtherParameters { plan: 0 }));
}

/// Each number of a whole snapshot of each algorithm is replaced by others: there may be an error or not, but no panic,
/// and what is restored can be asked anything.
#[test]
fn whatever_the_numbers_are_nothing_panics() {
    let (mut restored, mut refused, mut random) = (0, 0, Random(5));
    for algorithm in all() {
        let gate = table(algorithm, ticks(100.0));
        for key in 0..20_u64 {
            let _ = gate.try_acquire_n(&key, 1 + key % 3);
        }
        gate.ban_for("mallory", Duration::from_secs(5))
            .expect("room");
        let bytes = written(&gate);
        // The name has three letters, and is followed by whole numbers.
        let numbers = (bytes.len() - 8 - 75) / 8;
        for place in 0..9 + numbers {
            for turn in 0..5 {
                let at = if place < 9 {
                    8 * place
                } else {
                    75 + 8 * (place - 9)
                };
                let mut changed = bytes[..bytes.len() - 8].to_vec();
                let old = u64::from_le_bytes(changed[at..at + 8].try_into().expect("8"));
                let number = match turn {
                    0 => 0,
                    1 => u64::MAX - 1,
                    2 => old.wrapping_add(1),
                    3 => old ^ (1 << random.below(64)),
                    4 => old.rotate_left(random.below(64) as u32),
                    _ => random.next(),
                };
                changed[at..at + 8].copy_from_slice(&number.to_le_bytes());
                let other = all()[random.below(15) as usize];
                let to = Tick::from_nanos(random.next() >> random.below(64));
                match asked_anything(&sealed(changed), other, to) {
                    Ok(()) => restored += 1,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(restored > 1000 && refused > 300, "{restored} {refused}");
}

fn asked_anything(bytes: &[u8], algorithm: AnyAlgorithm, to: Tick) -> Result<(), RestoreError> {
    let mut gate: Keyed<_, ManualClock> = table(algorithm, to);
    gate.restore_after(&mut &*bytes, Duration::from_nanos(to.as_nanos() / 3))?;
    for key in 0..20_u64 {
        let key = gate.key(&key);
        let _ = (key.available(), key.time_until(1), key.level());
        let _ = (key.try_acquire(), key.charge(3), key.refund(2));
    }
    let _ = gate.key("mallory").try_acquire();
    written(&gate);
    Ok(())
}

/// As if it had left and come again while the snapshot was written.
#[test]
fn of_a_key_that_is_there_twice_the_second_one_counts_also_if_it_is_idle() {
    let gate = table(bucket("10/h"), ticks(1.0));
    for key in 0..2_u64 {
        let _ = gate.try_acquire_n(&key, 10).expect("fresh");
    }
    let bytes = written(&gate);
    // Before it: what begins the block, and before that the plans. After it the end, in four numbers.
    let body = bytes[HEAD..].chunks_exact(8);
    let body: Vec<_> = body
        .map(|number| u64::from_le_bytes(number.try_into().expect("eight")))
        .collect();
    let (blocks, keys) = body[..body.len() - 4].split_at(body.len() - 8);
    let [label, word, ..] = *keys else {
        unreachable!("two keys")
    };
    for (second, there) in [(word, 1), (0, 0)] {
        let keys = [label, word, label, second, 0, 0, 2];
        let twice = with_blocks(&[blocks, keys.as_slice()].concat());
        let mut next = table(bucket("10/h"), ticks(1.0));
        let restored = next.restore_after(&mut twice.as_slice(), Duration::ZERO);
        assert_eq!(restored.expect("whole").keys, there);
        assert_eq!((next.len() as u64, next.stats().tracked), (there, there));
    }
}
