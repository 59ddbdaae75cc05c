//! Files that no table wrote, with a valid checksum: each invalid field is named, and nothing
//! panics.

use tollgate::algorithm::Settings;
use tollgate::error::RestoreError;
use tollgate::keyed::SeededHasher;

use super::{next_table, read, table, ticks, written};
use crate::support::forged::{sealed, with_number};
use crate::support::*;

/// Returns a file with the head of a token bucket's file and these numbers after it.
pub(super) fn with_blocks(numbers: &[u64]) -> Vec<u8> {
    let limiter = table(bucket("10/s"), ticks(1.0));
    let mut bytes = written(&limiter)[..HEAD].to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    sealed(bytes)
}

/// The bytes of the beginning: eight numbers, and a name in nine.
const HEAD: usize = 17 * 8;

/// Returns a block of one plan with these parameters.
pub(super) fn plan(parameters: &[u64]) -> Vec<u64> {
    let mut block = vec![2, 1, parameters.len() as u64];
    block.extend(parameters);
    block.resize(3 + 15, 0);
    block
}

fn error_of(bytes: &[u8]) -> RestoreError {
    let mut limiter = table(bucket("10/s"), ticks(1.0));
    let _ = limiter.try_acquire_n("alice", 3).expect("fresh");
    // Everything except the time of day, which advances.
    let state = |bytes: &[u8]| bytes[5 * 8..bytes.len() - 8].to_vec();
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
        RestoreError::OtherAlgorithm {
            found, expected, ..
        } => format!("{found}, {expected}"),
        other => format!("{other:?}"),
    };
    for (place, number, right) in [
        (0, 0, "NotASnapshot"),
        (1, 2, "version"),
        (1, 0, "version"),
        (2, 0, "OtherKind { is_of_table: false }"),
        (2, 3, "kind"),
        // Another seed gives the known key another hash.
        (5, 99, "OtherHasher"),
        (7, 99, "OtherHasher"),
        (8, u64::MAX, "length of the name"),
        (8, 65, "length of the name"),
        (8, 5, "token, token-bucket"),
    ] {
        assert_eq!(said(&with_number(&head, 8 * place, number)), right);
    }
    let plan = plan(&parameters("10/s"));
    // A name of eight bytes, in nine numbers.
    let named = [&[3, 1], &plan[2..], &[8, 77], &[0; 7]].concat();
    let mut cases = vec![
        (vec![0, 0, 0], "kind of the block"),
        (vec![1, 1, 0, 0], "kind of the block"),
        (vec![4, 1, 0], "kind of the block"),
        (vec![2, 1, 16], "number of parameters"),
        (vec![2, 1, u64::MAX], "number of parameters"),
        (vec![3, 0], "number of plans"),
        ([&named[..18], &[0]].concat(), "length of a plan's name"),
        ([&named[..18], &[65]].concat(), "length of a plan's name"),
        ([&named[..], &[5]].concat(), "kind of the block"),
        ([&named[..], &[3, 2]].concat(), "number of plans"),
        ([&plan[..], &[2, 2]].concat(), "number of plans"),
    ];
    cases.extend([0, 9, u64::MAX].map(|count| (vec![2, count], "number of plans")));
    for (more, right) in [
        (&[5][..], "kind of the block"),
        (&[1, 0], "number of keys"),
        (&[1, 65], "number of keys"),
        (&[1, u64::MAX], "number of keys"),
        (&[1, 64, u64::MAX], "Truncated"),
        (&[1, 1, 0b10], "protected keys"),
        (&[1, 63, 1 << 63], "protected keys"),
        (&[1, 1, 1, 0b10, 5], "plan of a key"),
        (&[1, 1, 0, 0, u64::MAX], "word"),
        (&[4, 0], "number of keys"),
        (&[4, 1, 0b10], "protected keys"),
        (&[4, 1, 0, 16], "number of parameters"),
    ] {
        cases.push(([&plan, more].concat(), right));
    }
    // A key with an override, after a key without.
    let own = |place: usize, number| {
        let mut own = [&[4, 1, 1], &plan[2..], &[7 << 1 | 5 << 4, 5, 0, 0]].concat();
        own[place] = number;
        [&plan, &[1, 1, 0, 0, 5][..], &own].concat()
    };
    assert!(
        read(
            &mut table(bucket("10/s"), ticks(1.0)),
            &with_blocks(&own(0, 4))
        )
        .is_ok()
    );
    cases.extend([
        (own(4, 3), "OtherParameters { plan: None }"),
        (own(19, 5 << 4), "plan of a key"),
        (own(20, u64::MAX), "word"),
        (own(21, 5), "kind of the block"),
    ]);
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
        with_blocks(&[&plan(numbers)[..], &[1, 1, 0, 0x10, 1 << 62, 0, 0]].concat())
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

/// Returns a table with two plans, which may have names, and one override.
fn made(plans: [AnyAlgorithm; 2], has_names: bool) -> Keyed<AnyAlgorithm, ManualClock> {
    let clock = ManualClock::at(ticks(100.0));
    let made = match has_names {
        true => Keyed::with_named_plans(["free", "paid"].into_iter().zip(plans), 1, clock),
        false => Keyed::with_plans(plans, 1, clock),
    };
    let made = made.and_then(|made| made.with_hasher(SeededHasher::new(SEED)).with_overrides(1));
    made.expect("two plans")
}

fn asked(limiter: &Keyed<AnyAlgorithm, ManualClock>) {
    for key in 0..8_u64 {
        let key = limiter.key(&key).with_plan(key as usize % 2);
        let _ = (key.available(), key.time_until(1), key.level());
        let _ = (key.try_acquire(), key.charge(3), key.refund(2));
    }
    let _ = limiter.key("mallory").try_acquire();
    written(limiter);
}

/// Each number of whole snapshots is replaced by others. There may be an error or not, but no
/// panic, and a restored table answers any request.
#[test]
fn forged_numbers_never_panic() {
    let (mut random, mut restored, mut refused) = (Random(5), 0, 0);
    for (turn, algorithm) in all().into_iter().enumerate() {
        let any = |random: &mut Random| all()[random.below(13) as usize];
        let limiter = made([algorithm, any(&mut random)], turn % 2 == 0);
        assert_eq!(limiter.key(&7_u64).set_override(any(&mut random)), Ok(()));
        for key in 0..8_u64 {
            let used = limiter.key(&key).with_plan(key as usize % 2);
            let _ = used.take_up_to(1 + key % 3);
        }
        let mallory = limiter.key("mallory");
        assert!(mallory.ban_for(Duration::from_secs(5)).is_ok());
        let bytes = written(&limiter);
        for at in (0..bytes.len() - 8).step_by(8) {
            let old = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
            let bit = old ^ (1 << random.below(64));
            let turned = old.rotate_left(random.below(64) as u32);
            let mut numbers = vec![0, u64::MAX - 1, u64::MAX, old.wrapping_add(1), bit, turned];
            numbers.extend((1..often(1)).map(|_| random.next()));
            for number in numbers {
                let plans = [any(&mut random), any(&mut random)];
                let mut next = made(plans, random.one_in(2));
                next.clock().set(tick(random.next() >> random.below(64)));
                if random.one_in(2) {
                    let set = next.key(&7_u64).set_override(any(&mut random));
                    assert_eq!(set, Ok(()));
                }
                let elapsed = Duration::from_nanos(random.next() >> random.below(64));
                let forged = with_number(&bytes, at, number);
                match next.restore_after(&mut &*forged, elapsed) {
                    Ok(said) => assert_eq!(said.plans.len(), 2),
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        refused += 1;
                        continue;
                    }
                }
                asked(&next);
                let after = any(&mut random);
                assert_eq!(next.key(&7_u64).set_override(after), Ok(()));
                asked(&next);
                restored += 1;
            }
        }
    }
    assert!(restored > 1000 && refused > 1000, "{restored} {refused}");
}

/// As if the key had left and come back while the snapshot was written.
#[test]
fn the_second_entry_of_a_key_counts_even_if_it_is_idle() {
    let limiter = table(bucket("10/h"), ticks(1.0));
    for key in 0..2_u64 {
        let _ = limiter.try_acquire_n(&key, 10).expect("fresh");
    }
    let bytes = written(&limiter);
    // The block's start comes before it, in three numbers, and the plans before that. The end, in
    // three numbers, comes after it.
    let body = bytes[HEAD..].chunks_exact(8);
    let body = body.map(|number| u64::from_le_bytes(number.try_into().expect("eight")));
    let body: Vec<u64> = body.collect();
    let (plans, [1, 2, 0, label, word, ..]) = body.split_at(18) else {
        unreachable!("two keys")
    };
    for (second, there) in [(*word, 1), (0, 0)] {
        let keys = [1, 2, 0, *label, *word, *label, second, 0, 0];
        let twice = with_blocks(&[plans, keys.as_slice()].concat());
        let mut next = table(bucket("10/h"), ticks(1.0));
        assert_eq!(read(&mut next, &twice).expect("whole").keys, there);
        assert_eq!((next.len() as u64, next.stats().tracked), (there, there));
    }
}
