//! A damaged file gives a typed error, and the table stays unchanged.

use std::io::{self, Read, Write};

use tollgate::algorithm::{Rebase, Settings};
use tollgate::error::RestoreError;
use tollgate::keyed::SeededHasher;

use super::{read, restarted, table, ticks, written};
use crate::support::*;

/// Creates a table with two named plans and one override.
fn two_plans() -> Keyed<TokenBucket, ManualClock> {
    let plans = [("free", bucket("10/s")), ("paid", bucket("20/s"))];
    let clock = ManualClock::at(tick(NOW));
    let limiter = Keyed::with_named_plans(plans, 1, clock).and_then(|limiter| {
        let limiter = limiter.with_hasher(SeededHasher::new(SEED));
        limiter.with_overrides(1)
    });
    limiter.expect("two plans")
}

/// Returns a snapshot with blocks of each kind.
fn file() -> Vec<u8> {
    let limiter = two_plans();
    let own = limiter.key(&3_u64).set_override(bucket("5/s"));
    assert_eq!(own, Ok(()));
    for key in 0..8_u64 {
        let used = limiter.key(&key).with_plan(key as usize % 2);
        used.try_acquire_n(1 + key % 9).expect("fresh");
    }
    written(&limiter)
}

/// A table with contents that must stay.
struct Kept(Keyed<TokenBucket, ManualClock>);

impl Kept {
    fn new() -> Self {
        let limiter = two_plans();
        let _ = limiter.try_acquire_n("alice", 3).expect("fresh");
        Self(limiter)
    }

    fn error(&mut self, mut bytes: impl Read) -> RestoreError {
        let restored = self.0.restore_after(&mut bytes, Duration::ZERO);
        let error = restored.expect_err("it is damaged");
        assert_eq!(self.0.key("alice").available(), 7);
        assert_eq!(self.0.len(), 1);
        error
    }
}

#[test]
fn a_file_cut_at_any_length_is_truncated() {
    let (bytes, mut kept) = (file(), Kept::new());
    for length in 0..bytes.len() {
        let error = kept.error(&bytes[..length]);
        let is_right = matches!(error, RestoreError::Truncated);
        assert!(is_right, "{length}: {error}");
    }
    read(&mut kept.0, &bytes).expect("whole");
    assert_eq!((kept.0.len(), kept.0.key("alice").available()), (8, 10));
}

#[test]
fn every_flipped_bit_is_an_error() {
    let (mut bytes, mut kept) = (file(), Kept::new());
    let mut by_checksum = 0;
    for place in 0..bytes.len() {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            let error = kept.error(bytes.as_slice());
            bytes[place] ^= 1 << bit;
            by_checksum += usize::from(matches!(error, RestoreError::Checksum { .. }));
        }
    }
    // The checksum finds nearly all damage in the keys.
    assert!(by_checksum > 8 * 16 * 7, "{by_checksum}");
}

/// Each algorithm is recorded by the name of its type.
#[test]
fn a_snapshot_of_another_algorithm_is_refused() {
    fn goes_round<A: ChangeQuota + Rebase + Settings + Clone>(algorithm: A, name: &str) {
        let limiter = table(algorithm.clone(), ticks(5.0));
        let _ = limiter.try_acquire_n("alice", 3).expect("fresh");
        let next = restarted(&limiter, algorithm, ticks(5.0), Duration::ZERO);
        assert_eq!(next.key("alice").available(), 7);
        let error = Kept::new().error(written(&limiter).as_slice());
        assert!(error.to_string().contains(name), "{error}");
        assert!(matches!(error, RestoreError::OtherAlgorithm { found, .. } if found == name));
    }
    let quota = Quota::per_second(10);
    goes_round(Gcra::new(quota).expect("a bucket"), "gcra");
    goes_round(LeakyBucket::queue(quota).expect("a queue"), "leaky-bucket");
    goes_round(FixedWindow::new(quota).expect("windows"), "fixed-window");
    goes_round(SlidingWindow::new(quota).expect("one"), "sliding-window");
    goes_round(Intervals::new(quota).expect("a bucket"), "intervals");
    goes_round(algorithm("intervals 10/s"), "any");
}

/// A writer that fails after a number of bytes. Then it must not be called again.
struct Full(Option<usize>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.expect("it has not failed");
        let taken = bytes.len().min(room);
        self.0 = (taken > 0).then_some(room - taken);
        match taken {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Full {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

#[test]
fn errors_of_the_writer_and_the_reader_are_returned() {
    let mut kept = Kept::new();
    let length = written(&kept.0).len();
    for room in 0..length {
        let error = kept.0.snapshot(&mut Full(Some(room)));
        let error = error.expect_err("there is no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    assert!(kept.0.snapshot(&mut Full(Some(length))).is_ok());
    let error = kept.error(Full(None));
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let RestoreError::Io(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(source, Some(error.to_string()));
}

/// Other data may follow the snapshot.
#[test]
fn bytes_after_the_snapshot_are_not_read() {
    let (mut bytes, mut kept) = (file(), Kept::new());
    bytes.extend(b"and so on");
    let mut rest = bytes.as_slice();
    let restored = kept.0.restore_after(&mut rest, Duration::ZERO);
    restored.expect("whole");
    assert_eq!(rest, b"and so on");
}

#[test]
fn a_table_and_a_limiter_do_not_take_each_others_snapshots() {
    let one = Limiter::unstarted(bucket("10/s"), NoClock);
    let of_limiter = one.at(Tick::ZERO).snapshot();
    let mut limiter = table(bucket("10/s"), ticks(1.0));
    let error = read(&mut limiter, &of_limiter).expect_err("of a limiter");
    let text = "the snapshot is of a limiter, but must be of a table of keys";
    assert_eq!(error.to_string(), text);
    let restored = one.at(Tick::ZERO).restore_after(&file(), Duration::ZERO);
    let text = "the snapshot is of a table of keys, but must be of a limiter";
    assert_eq!(restored.expect_err("of a table").to_string(), text);
}
