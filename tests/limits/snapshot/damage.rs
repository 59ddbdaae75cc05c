//! Damaged bytes give a typed error and change nothing. Forged bytes with a valid checksum give an
//! error or a limiter that decides.

use proptest::prelude::*;
use tollgate::error::RestoreError;
use tollgate::store::SNAPSHOT_BYTES;

use crate::support::algorithms::limiter;
use crate::support::forged::with_number;
use crate::support::*;

const NOW: Tick = tick(7_000_000_000);

fn bucket() -> Limiter<TokenBucket, NoClock> {
    let bucket = TokenBucket::new(Quota::per_hour(10)).expect("a quota");
    let limiter = Limiter::unstarted(bucket, NoClock);
    limiter.at(NOW).try_acquire_n(4).expect("fresh");
    limiter
}

fn saved() -> [u8; SNAPSHOT_BYTES] {
    bucket().at(NOW).snapshot()
}

/// Returns the error, after checking that the limiter is unchanged.
fn error_of(bytes: &[u8]) -> RestoreError {
    let limiter = bucket();
    let view = limiter.at(NOW);
    let error = view.restore_after(bytes, Duration::from_secs(9));
    assert_eq!(view.available(), 6);
    error.expect_err("it is damaged")
}

#[test]
fn every_flipped_bit_is_detected() {
    // The magic, the kind, the name, numbers that are checked, counts, and the rest.
    let mut found = [0; 6];
    for bit in 0..SNAPSHOT_BYTES * 8 {
        let mut damaged = saved();
        damaged[bit / 8] ^= 1 << (bit % 8);
        found[match error_of(&damaged) {
            RestoreError::NotASnapshot => 0,
            RestoreError::OtherKind { is_of_table: true } => 1,
            RestoreError::OtherAlgorithm { .. } => 2,
            RestoreError::Invalid { .. } => 3,
            RestoreError::Truncated => 4,
            RestoreError::Checksum { .. } => 5,
            error => panic!("bit {bit}: {error}"),
        }] += 1;
    }
    assert_eq!(found, [64, 2, 102, 620, 9, 1955]);
}

#[test]
fn every_wrong_length_is_detected() {
    let bytes = saved();
    for length in 0..SNAPSHOT_BYTES {
        let error = error_of(&bytes[..length]);
        let is_right = matches!(error, RestoreError::Truncated);
        assert!(is_right, "{length}: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(error_of(&longer), RestoreError::TooLong));
}

/// Programs that transfer text change the ends of lines, or the highest bit of each byte, or stop
/// at a byte that ended texts in the past.
#[test]
fn a_transfer_as_text_is_detected() {
    let bytes = saved();
    let lines = bytes.split(|byte| *byte == b'\n');
    let crlf = lines.collect::<Vec<_>>().join(&b"\r\n"[..]);
    let lf: Vec<_> = bytes
        .iter()
        .copied()
        .filter(|byte| *byte != b'\r')
        .collect();
    for damaged in [crlf, lf, bytes.map(|byte| byte & 0x7F).into()] {
        assert!(matches!(error_of(&damaged), RestoreError::NotASnapshot));
    }
    let end = bytes.iter().position(|byte| *byte == 0x1A);
    let short = error_of(&bytes[..end.expect("in the first bytes")]);
    assert!(matches!(short, RestoreError::Truncated));
}

#[test]
fn an_invalid_number_is_named() {
    // The place of a number among the numbers, and what it becomes.
    let cases = "\
1 0 => in the snapshot, version is 0, but must be 1
1 2 => in the snapshot, version is 2, but must be 1
2 3 => in the snapshot, kind is 3, but must be from 0 to 2
2 1 => the snapshot is of a table of keys, but must be of a limiter
8 65 => in the snapshot, length of the name is 65, but must be from 0 to 64
8 5 => algorithm of the snapshot is \"token\", but must be \"token-bucket\", that of the limiter
17 1 => in the snapshot, kind of the block is 1, but must be from 2 to 3
18 9 => in the snapshot, number of plans is 9, but must be from 1 to 8
19 16 => in the snapshot, number of parameters is 16, but must be from 0 to 15
19 1 => parameters of the snapshot must be those of the limiter, since its algorithm rejects them, \
or can't check them
35 5 => in the snapshot, kind of the block is 5, but must be from 0 to 4
36 65 => in the snapshot, number of keys is 65, but must be from 1 to 64
37 2 => in the snapshot, protected keys is 2, but must be from 0 to 1
38 2 => in the snapshot, plan of a key is 1, but must be 0
39 18446744073709551615 => in the snapshot, word is 18446744073709551615, but must be from 0 to \
18446744073709551614
40 1 => in the snapshot, number of keys is 0, but must be from 1 to 64";
    for case in cases.lines() {
        let (numbers, text) = case.split_once(" => ").expect(case);
        let (place, number) = numbers.split_once(' ').expect(case);
        let (place, number): (usize, _) = (place.parse().expect(case), number.parse().expect(case));
        let bytes = with_number(&saved(), place * 8, number);
        assert_eq!(error_of(&bytes).to_string(), text);
    }
}

/// Checks that any restored limiter decides, and that `reset` makes it full again.
fn decides(limiter: &Limiter<tollgate::AnyAlgorithm, NoClock>, now: Tick) {
    for now in [Tick::ZERO, now, Tick::MAX] {
        let view = limiter.at(now);
        let available = view.available();
        assert_eq!(view.try_acquire_n(available.max(1)).is_ok(), available > 0);
        view.charge(3);
        view.refund(1);
        let _ = (view.time_until(2), view.level());
    }
    limiter.reset();
    assert!(limiter.at(now).is_idle());
}

proptest! {
    #[test]
    fn any_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..2 * SNAPSHOT_BYTES)) {
        let _ = error_of(&bytes);
    }

    #[test]
    fn forged_bytes_are_an_error_or_a_limiter_that_decides(
        (from, to) in (0..29_usize, 0..29_usize),
        forged in proptest::collection::vec((1..42_usize, prop_oneof![
            any::<u64>(), 0..20_u64, (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX), Just(u64::MAX - 1)
        ]), 1..4),
        (then, now, pause) in any::<(u64, u64, u64)>(),
    ) {
        let (from, to) = (algorithms()[from], algorithms()[to]);
        let mut bytes = limiter(from).at(tick(then)).snapshot().to_vec();
        for (place, number) in forged {
            bytes = with_number(&bytes, place * 8, number);
        }
        let (restored, now) = (limiter(to), tick(now));
        if restored.at(now).restore_after(&bytes, Duration::from_nanos(pause)).is_err() {
            prop_assert_eq!(restored.at(now).available(), limiter(to).at(now).available());
        }
        decides(&restored, now);
    }
}

/// Shows that the property above covers changed parameters and changed words.
#[test]
fn a_forged_but_valid_word_or_parameter_is_restored() {
    let algorithm = algorithm("fixed-window 10/s");
    let bytes = limiter(algorithm).at(NOW).snapshot();
    let (mut restored, mut refused) = (0, 0);
    for place in (20..35).chain([39]) {
        for number in [1, 5, 100, u64::MAX - 1] {
            let next = limiter(algorithm);
            match next
                .at(NOW)
                .restore_after(&with_number(&bytes, place * 8, number), Duration::ZERO)
            {
                Ok(()) => restored += 1,
                Err(_) => refused += 1,
            }
            decides(&next, NOW);
        }
    }
    assert!(restored > 4 && refused > 4, "{restored}, {refused}");
}
