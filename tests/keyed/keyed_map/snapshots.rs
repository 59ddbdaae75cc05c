//! A restored snapshot of a map keeps its state, for each algorithm, and a ban ends at its tick.
//! Damaged or forged snapshots change nothing and never panic.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::algorithm::{Algorithm, ChangeQuota, Settings};
use tollgate::clock::NoClock;
use tollgate::error::RestoreError;
use tollgate::keyed_map::{RestoredMap, SnapshotKey};
use tollgate::{AnyAlgorithm, Denied, FixedWindow, KeyedMap, ManualClock, Quota, TokenBucket};

use super::{bucket_of, of};
use crate::support::{NOW, Random, SECOND, all, bucket, deadline, often, on_threads, period, tick};

type Map<A = TokenBucket> = KeyedMap<String, A, NoClock>;

fn written<K, A>(map: &KeyedMap<K, A, NoClock>, at: u64) -> Vec<u8>
where
    K: std::hash::Hash + Eq + SnapshotKey,
    A: Algorithm + Settings,
{
    let mut bytes = Vec::new();
    let keys = map.snapshot_at(&mut bytes, tick(at));
    assert!(keys.expect("nothing fails") <= map.len() as u64);
    bytes
}

/// Restores these bytes at this tick, with no time since they were written.
fn read(map: &mut Map, mut bytes: &[u8], at: u64) -> Result<RestoredMap, RestoreError> {
    map.restore_at(&mut bytes, tick(at), Duration::ZERO)
}

/// Returns a map with some keys that were each granted and charged permits.
fn used(algorithm: AnyAlgorithm) -> (KeyedMap<u64, AnyAlgorithm, NoClock>, u64) {
    let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm, 100);
    let (mut random, mut now) = (Random(9), NOW);
    for _ in 0..400 {
        now += random.below(1 + period(&algorithm) / 100);
        let key = random.below(50);
        let key = map.key(&key).at(tick(now));
        let most = 1 + key.available();
        let _ = key.try_acquire_n(1 + random.below(most));
        if random.one_in(40) {
            key.charge(random.below(4));
        }
    }
    (map, now)
}

/// On a clock of the same phase nothing differs, and on another one no key has more.
#[test]
fn a_restored_key_decides_as_before() {
    for algorithm in all() {
        let (map, now) = used(algorithm);
        let bytes = written(&map, now);
        let text = algorithm.to_string();
        let rounds = ["13/s", "first-hit", "greedy", "7/min"];
        let rounds = rounds.iter().any(|rounds| text.contains(rounds));
        let minute = 60 * SECOND;
        for (to, elapsed) in [
            (Some(0), 0),
            (Some(minute), 0),
            (Some(minute), 7),
            (None, 7),
        ] {
            let elapsed = elapsed * SECOND / 100;
            let is_exact = to.is_some() && !rounds;
            let to = to.map_or(3_200_000_001, |later| now + elapsed + later);
            let mut next: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm, 100);
            let done = next.restore_at(&mut bytes.as_slice(), tick(to), nanos(elapsed));
            let done = done.expect("whole");
            assert_eq!((done.keys, done.no_room), (next.len() as u64, 0));
            for key in 0..50 {
                let old = map.key(&key).at(tick(now + elapsed));
                let new = next.key(&key).at(tick(to));
                let [had, has] = [old.available(), new.available()];
                assert!(
                    has <= had && (has == had || !is_exact),
                    "{has} {had} {text}"
                );
                if is_exact {
                    assert_eq!(new.time_until(3), old.time_until(3), "{text}");
                }
            }
        }
    }
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[test]
fn keys_that_are_idle_at_the_save_or_the_restore_are_left_out() {
    let map: Map = of(bucket("10/s"), 10);
    for (name, n) in [("alice", 1), ("bob", 5), ("carol", 10)] {
        assert!(map.try_acquire_n_at(name, n, tick(NOW)).is_ok());
    }
    let mut bytes = Vec::new();
    let later = tick(NOW + SECOND / 10);
    assert_eq!(
        map.snapshot_at(&mut bytes, later).expect("nothing fails"),
        2
    );
    let mut next: Map = of(bucket("10/s"), 10);
    let done = next.restore_at(&mut bytes.as_slice(), tick(7), nanos(SECOND / 2));
    let done = done.expect("whole");
    assert_eq!((done.keys, done.idle, done.carried_over), (1, 1, 0));
    assert_eq!(done.elapsed, nanos(SECOND / 2));
    let available = |name| next.key(name).at(tick(7)).available();
    assert_eq!(["alice", "bob", "carol"].map(available), [10, 10, 6]);
    // A key that comes with an older tick counts at that of the restart.
    let late = next.try_acquire_n_at("alice", 10, tick(0)).expect("fresh");
    assert_eq!(late.at(), tick(7));
}

/// The key takes two permits at 100 and is idle again when the quota is set at 200. A snapshot that
/// began before that omits the key. When the key returns, it is fresh from 200 on, not from 100.
#[test]
fn a_key_migrated_after_the_start_of_the_snapshot_gets_no_second_burst() {
    for keep in [Keep::AsIs, Keep::Scaled] {
        let map: Map = of(bucket_of(2), 10);
        assert!(map.try_acquire_n_at("alice", 2, tick(100)).is_ok());
        let quota = Quota::per(1, nanos(20)).burst(2);
        assert_eq!(map.set_quota_at(quota, keep, tick(200)), Ok(()));
        let bytes = written(&map, 100);
        let mut next: Map = of(bucket_of(2), 10);
        let done = read(&mut next, &bytes, 100).expect("whole");
        assert_eq!(done.keys, 0);
        let granted = next.try_acquire_n_at("alice", 2, tick(100)).expect("fresh");
        assert_eq!(granted.at(), tick(200), "{keep:?}");
    }
}

/// The snapshot replaces the map's contents.
#[test]
fn restored_keys_replace_the_contents_of_the_map() {
    let map: Map = of(bucket("10/s"), 10);
    assert!(map.try_acquire_at("alice", tick(0)).is_ok());
    let bytes = written(&map, 0);
    let mut next: Map = of(bucket("10/s"), 10);
    for name in ["bob", "carol"] {
        assert!(next.try_acquire_n_at(name, 9, tick(0)).is_ok());
    }
    assert_eq!(read(&mut next, &bytes, 0).expect("whole").keys, 1);
    assert_eq!(next.key("bob").at(tick(0)).available(), 10);
    assert_eq!((next.len(), next.stats().removed), (1, 2));
}

#[test]
fn a_restored_ban_lasts_as_long_as_before() {
    for algorithm in all() {
        let map: Map<AnyAlgorithm> = of(algorithm, 10);
        let until = NOW + 5 * period(&algorithm) / 2;
        assert_eq!(map.key("mallory").at(tick(NOW)).ban(tick(until)), Ok(()));
        let bytes = written(&map, NOW);
        // The same quota, and another one.
        let other = algorithm.with_quota(Quota::per(7, algorithm.quota().period()));
        for next in [algorithm, other.expect("a quota")] {
            let mut next: Map<AnyAlgorithm> = of(next, 10);
            let done = next.restore_at(&mut bytes.as_slice(), tick(NOW), Duration::ZERO);
            assert_eq!(done.expect("whole").keys, 1, "{algorithm}");
            let mallory = next.key("mallory");
            for now in [NOW, until - 1] {
                let denied = mallory.at(tick(now)).try_acquire();
                assert!(matches!(denied, Err(Denied::Banned { .. })), "{denied:?}");
                assert_eq!(mallory.at(tick(now)).refund(3), 0, "{algorithm}");
            }
            let later = tick(until + 3 * period(&algorithm));
            assert!(mallory.at(later).try_acquire().is_ok(), "{algorithm}");
        }
    }
}

/// Keys are carried over to another quota, and to a key's own algorithm in the snapshot or the map.
/// The map's algorithm is the current one.
#[test]
fn restored_keys_use_the_algorithms_of_the_map() {
    let map: Map = of(bucket_of(10), 10);
    for name in ["alice", "bob", "carol"] {
        assert!(map.try_acquire_n_at(name, 4, tick(0)).is_ok());
    }
    assert!(map.set_algorithm_at("bob", bucket_of(8), tick(0)).is_ok());
    let bytes = written(&map, 0);
    let mut next: Map = of(bucket_of(12), 10);
    assert!(
        next.set_algorithm_at("carol", bucket_of(20), tick(0))
            .is_ok()
    );
    assert!(
        next.set_algorithm_at("dave", bucket_of(30), tick(0))
            .is_ok()
    );
    let done = read(&mut next, &bytes, 0).expect("whole");
    assert_eq!((done.keys, done.carried_over), (4, 3));
    let available = |at| {
        let names = ["alice", "bob", "carol", "dave"];
        names.map(|name| next.key(name).at(tick(at)).available())
    };
    assert_eq!(available(0), [6, 6, 6, 30]);
    assert_eq!(available(10_000), [12, 12, 20, 30]);
    // Keys with their own algorithms stay.
    assert_eq!(next.purge_idle_at(tick(10_000), 10), 2);
    assert_eq!(next.len(), 2);
}

/// Also during a change of the quota: each key is written by its current quota.
#[test]
fn a_snapshot_during_a_change_of_the_quota_misses_no_key() {
    deadline("snapshots while the quota is set", || {
        let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(100), 300);
        for key in 0..200 {
            assert!(map.try_acquire_n_at(&key, 50, tick(0)).is_ok());
        }
        on_threads(3, |id| {
            for turn in 0..often(30) {
                if id == 0 {
                    let quota = Quota::per(1, nanos(10)).burst(100 + turn % 2);
                    assert!(map.set_quota_at(quota, Keep::AsIs, tick(0)).is_ok());
                    continue;
                }
                let bytes = written(&map, 0);
                let mut next: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(100), 300);
                let done = next.restore_at(&mut bytes.as_slice(), tick(0), Duration::ZERO);
                assert_eq!(done.expect("whole").keys, 200);
                let available = |key: u64| next.key(&key).at(tick(0)).available();
                assert!((0..200).map(available).all(|left| left == 50));
            }
        });
    });
}

/// Keys that would be evicted first are dropped: of equal keys the newest, and protected and banned
/// ones last.
#[test]
fn keys_without_room_are_dropped_in_eviction_order() {
    let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket("10/h"), 100);
    for key in 0..40 {
        assert!(map.try_acquire_n_at(&key, 3, tick(0)).is_ok());
    }
    assert!(map.try_acquire_n_at(&30, 1, tick(0)).is_ok());
    assert_eq!(map.key(&20).at(tick(0)).ban(tick(SECOND)), Ok(()));
    let bytes = written(&map, 0);
    let mut next: KeyedMap<u64, TokenBucket, NoClock> = of(bucket("10/h"), 10);
    let done = next.restore_at(&mut bytes.as_slice(), tick(0), Duration::ZERO);
    let done = done.expect("whole");
    assert_eq!((done.keys, done.no_room), (10, 30));
    let stats = next.stats();
    assert_eq!(
        (stats.tracked, stats.evicted, stats.evicted_protected),
        (10, 30, 0)
    );
    let pinned = next.pin();
    let mut left: Vec<u64> = pinned.iter_at(tick(0)).map(|of| *of.key()).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2, 3, 4, 5, 6, 7, 20, 30]);
    // The order stays the same afterwards: a new key replaces the newest one.
    assert!(next.try_acquire_n_at(&99, 3, tick(0)).is_ok());
    assert_eq!(next.key(&7).at(tick(0)).available(), 10);
    assert_eq!(next.key(&30).at(tick(0)).available(), 6);
}

fn goes_round<K: SnapshotKey + std::fmt::Debug + PartialEq>(keys: impl IntoIterator<Item = K>) {
    for key in keys {
        let mut bytes = Vec::new();
        key.write_to(&mut bytes);
        assert_eq!(K::read_from(&bytes), Some(key));
    }
}

#[test]
fn keys_of_every_type_are_restored() {
    goes_round(["".to_owned(), "alice".to_owned(), "\u{1F980}".to_owned()]);
    goes_round([Box::<str>::from("alice")]);
    goes_round([Arc::<str>::from("alice")]);
    goes_round([vec![], vec![0_u8, 255]]);
    goes_round([Box::<[u8]>::from([1, 2])]);
    goes_round([[7_u8; 16]]);
    goes_round([0, 1, u64::MAX]);
    goes_round([i128::MIN, -1]);
    let (four, six) = (Ipv4Addr::new(10, 0, 0, 7), Ipv6Addr::LOCALHOST);
    goes_round([four]);
    goes_round([six]);
    goes_round([IpAddr::V4(four), IpAddr::V6(six)]);
    assert_eq!(String::read_from(&[0xFF]), None);
    assert_eq!(u64::read_from(&[1, 2, 3]), None);
    assert_eq!(IpAddr::read_from(&[1, 2, 3]), None);
}

/// A map with contents that must stay.
struct Kept(Map);

impl Kept {
    fn new() -> Self {
        let map: Map = of(bucket("10/s"), 10);
        assert!(map.try_acquire_n_at("alice", 3, tick(0)).is_ok());
        Self(map)
    }

    fn error(&mut self, bytes: &[u8]) -> RestoreError {
        let error = read(&mut self.0, bytes, 0).expect_err("it is damaged");
        assert_eq!(self.0.key("alice").at(tick(0)).available(), 7);
        assert_eq!(self.0.len(), 1);
        error
    }
}

fn file() -> Vec<u8> {
    let map: Map = of(bucket("10/s"), 10);
    for (name, n) in [("alice", 1), ("bob", 5), ("carol", 10)] {
        assert!(map.try_acquire_n_at(name, n, tick(0)).is_ok());
    }
    written(&map, 0)
}

#[test]
fn a_file_cut_at_any_length_is_truncated() {
    let (bytes, mut kept) = (file(), Kept::new());
    for length in 0..bytes.len() {
        let error = kept.error(&bytes[..length]);
        assert!(
            matches!(error, RestoreError::Truncated),
            "{length}: {error}"
        );
    }
    assert_eq!(read(&mut kept.0, &bytes, 0).expect("whole").keys, 3);
}

#[test]
fn every_flipped_bit_is_an_error() {
    let (mut bytes, mut kept) = (file(), Kept::new());
    let mut by_checksum = 0;
    for place in 0..bytes.len() {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            let error = kept.error(&bytes);
            bytes[place] ^= 1 << bit;
            by_checksum += usize::from(matches!(error, RestoreError::Checksum { .. }));
        }
    }
    assert!(by_checksum > 200, "{by_checksum}");
}

/// CRC-64/XZ, bit by bit.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = !bytes.iter().fold(!0_u64, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 * (crc & 1))
        })
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Magic, version, tick, time of day, and the name.
const HEAD: usize = 5 * 8 + "token-bucket".len();

fn with_blocks(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = file()[..HEAD].to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    sealed(bytes)
}

#[test]
fn each_invalid_field_is_named() {
    let mut kept = Kept::new();
    let mut said = |bytes: &[u8]| match kept.error(bytes) {
        RestoreError::Invalid { field, .. } => field.to_string(),
        other => format!("{other:?}"),
    };
    let with_number = |place: usize, number: u64| {
        let mut bytes = file();
        bytes.truncate(bytes.len() - 8);
        bytes[8 * place..8 * place + 8].copy_from_slice(&number.to_le_bytes());
        sealed(bytes)
    };
    assert_eq!(said(&with_number(0, 0)), "NotASnapshot");
    assert_eq!(said(&with_number(1, 2)), "Version { found: 2, known: 1 }");
    assert_eq!(said(&with_number(4, 65)), "length of the name");
    for (numbers, right) in [
        (&[2, 0, 0, 0][..], "kind of the block"),
        (&[3], "kind of the block"),
        (&[1, 16], "number of parameters"),
        (&[1, 0, 3], "kind of the block"),
        (&[1, 0, 2, 0, u64::MAX - 1], "word of a key"),
        (&[1, 0, 2, 0, 5, u64::MAX], "length of a key"),
        (&[1, 0, 2, 0, 5, u32::MAX as u64], "Truncated"),
        (&[1, 0, 2, 0, 5, 0], "OtherParameters { plan: None }"),
        (&[1, 0, 2, 0, 5, 8, u64::MAX], "InvalidKey { key: 1 }"),
        (&[1, 0, 0, 0, 1], "number of keys in all"),
    ] {
        assert_eq!(said(&with_blocks(numbers)), right, "{numbers:?}");
    }
    // No keys, and no algorithm: a map in which all were idle.
    assert_eq!(
        read(&mut kept.0, &with_blocks(&[0, 0, 0]), 0)
            .expect("whole")
            .keys,
        0
    );
}

/// Any numbers in place of keys: any state may result, but nothing panics.
#[test]
fn a_forged_file_never_panics() {
    let mut random = Random(3);
    for algorithm in all() {
        let (map, now) = used(algorithm);
        let bytes = written(&map, now);
        for _ in 0..often(200) {
            let mut bytes = bytes[..bytes.len() - 8].to_vec();
            for _ in 0..1 + random.below(3) {
                let place = 16 + 8 * random.below(bytes.len() as u64 / 8 - 2) as usize;
                let number = match random.below(4) {
                    0 => random.below(u64::MAX),
                    1 => u64::MAX - random.below(3),
                    2 => 1 << random.below(64),
                    _ => random.below(3),
                };
                let end = bytes.len().min(place + 8);
                bytes[place..end].copy_from_slice(&number.to_le_bytes()[..end - place]);
            }
            let mut next: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm, 20);
            let elapsed = nanos(random.below(u64::MAX));
            if let Ok(done) = next.restore_at(&mut sealed(bytes).as_slice(), tick(NOW), elapsed) {
                assert_eq!(done.keys, next.len() as u64);
                for key in next.pin().iter_at(tick(NOW)) {
                    let key = next.key(key.key()).at(tick(NOW));
                    let _ = (
                        key.try_acquire(),
                        key.charge(3),
                        key.refund(2),
                        key.banned_until(),
                    );
                }
                next.purge_idle_at(tick(u64::MAX), 100);
            }
        }
    }
}

#[test]
fn a_snapshot_of_another_algorithm_is_refused() {
    let windows = FixedWindow::new(Quota::per_second(10)).expect("windows");
    let map: Map<FixedWindow> = of(windows, 10);
    let error = Kept::new().error(&written(&map, 0)).to_string();
    assert!(error.contains("fixed-window"), "{error}");
}

/// A writer that fails after a number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        match taken {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_writer_are_returned() {
    let (kept, length) = (Kept::new(), written(&Kept::new().0, 0).len());
    for room in 0..length {
        let error = kept.0.snapshot_at(&mut Full(room), tick(0));
        let error = error.expect_err("there is no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    assert!(kept.0.snapshot_at(&mut Full(length), tick(0)).is_ok());
}

#[test]
fn a_file_is_replaced_only_by_a_complete_snapshot() {
    let folder = std::env::temp_dir().join(format!("tollgate-map-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("limits");
    let map = || {
        let map = KeyedMap::with_clock(bucket("1/365d burst 10"), 10, ManualClock::new());
        map.expect("a map")
    };
    let old: KeyedMap<String, _, _> = map();
    assert!(old.try_acquire_n("alice", 4).is_ok());
    assert_eq!(old.snapshot_to(&path).expect("written"), 1);
    let mut new: KeyedMap<String, _, _> = map();
    let done = new.restore_from(&path).expect("whole");
    assert_eq!((done.keys, new.key("alice").available()), (1, 6));
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes.push(0);
    std::fs::write(&path, &bytes).expect("written");
    assert!(matches!(
        new.restore_from(&path),
        Err(RestoreError::TooLong)
    ));
    // In the same process, by the time of day. The bytes that follow are not read.
    let mut rest = bytes.as_slice();
    let done = new.restore(&mut rest).expect("whole");
    assert!(done.elapsed < Duration::from_secs(86_400) && rest == [0]);
    std::fs::remove_dir_all(&folder).expect("it is empty but for the file");
}
