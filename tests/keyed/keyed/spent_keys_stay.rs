//! A flood of new keys evicts no spent key that was used twice, and hardly any that was used once:
//! the flood's own keys are evicted first. Also tests what protects a key, and for how long. (Time
//! nearly stands still: nothing is idle.)

use tollgate::keyed::Key;
use tollgate::stats::KeyedStats;

use crate::support::*;

const BURST: u64 = 100;
const TWICE: &[u64] = &[50, 50];
const ONCE: &[u64] = &[BURST];
const ONE_PERMIT: &[u64] = &[1];

/// A hundred keys used twice, a hundred used once, and a client's own key.
const USED_TWICE: [u64; 2] = [0, 100];
const USED_ONCE: [u64; 2] = [100, 200];
const OWN: u64 = 200;
const OTHERS: u64 = 201;
const FIRST_OF_FLOOD: u64 = 1 << 32;

/// A key takes these parts of its burst.
fn take(limiter: &Keyed<TokenBucket, ManualClock>, key: u64, parts: &[u64]) {
    for part in parts {
        assert!(limiter.try_acquire_n(&key, *part).is_ok());
    }
}

/// Returns how many of these keys, which had no permits left, have some again.
fn reset(limiter: &Keyed<TokenBucket, ManualClock>, [first, end]: [u64; 2]) -> u64 {
    let keys = first..end;
    keys.filter(|key| limiter.key(key).available() > 0).count() as u64
}

/// A table that is filled to its capacity, and then flooded.
struct Flooded {
    limiter: Keyed<TokenBucket, ManualClock>,
    came: u64,
}

impl Flooded {
    /// Floods with new keys that each take these parts.
    fn with(capacity: u64, keys: u64, parts: &[u64]) -> Self {
        let limiter = of_capacity(capacity as usize, bucket("100/min"));
        let [of_each, of_once] = [USED_TWICE, USED_ONCE];
        (of_each[0]..of_each[1]).for_each(|key| take(&limiter, key, TWICE));
        (of_once[0]..of_once[1]).for_each(|key| take(&limiter, key, ONCE));
        take(&limiter, OWN, &[1, 39, 60]);
        (OTHERS..capacity).for_each(|key| take(&limiter, key, ONE_PERMIT));
        for key in 0..keys {
            limiter.clock().advance(Duration::from_nanos(100));
            take(&limiter, FIRST_OF_FLOOD + key, parts);
            // The client's own key is used now and then.
            let own = (key % 100 == 0).then(|| limiter.try_acquire(&OWN));
            assert!(own.is_none_or(|own| own.is_err()), "after {key} new keys");
        }
        let came = capacity + keys;
        Self { limiter, came }
    }

    /// Returns the statistics, after checking that they add up.
    fn stats(&self) -> KeyedStats {
        let stats = self.limiter.stats();
        let left = stats.expired + stats.evicted + stats.removed;
        assert_eq!(stats.inserted, stats.tracked + left, "{stats:?}");
        assert_eq!(stats.inserted, self.came, "{stats:?}");
        let others = (stats.idle, stats.expired, stats.removed, stats.no_room);
        assert_eq!(others, (0, 0, 0, 0), "{stats:?}");
        assert_eq!(stats.tracked, self.limiter.len() as u64);
        assert!(stats.evicted_protected <= stats.evicted, "{stats:?}");
        stats
    }
}

/// Full tables, each with a number of new keys that is enough to reuse each slot.
const TABLES: [(u64, u64); 2] = [(1_000, often(5_000)), (10_000, often(20_000))];

#[test]
fn a_flood_resets_no_key_used_twice_and_hardly_any_key_used_once() {
    for (capacity, keys) in TABLES {
        for (parts, most) in [(ONCE, 1), (ONE_PERMIT, 0)] {
            let flooded = Flooded::with(capacity, keys, parts);
            let limiter = &flooded.limiter;
            assert_eq!(reset(limiter, USED_TWICE), 0, "{limiter:?}");
            assert!(reset(limiter, USED_ONCE) <= most, "{limiter:?}");
            assert_eq!(reset(limiter, [OWN, OWN + 1]), 0, "{limiter:?}");
            let stats = flooded.stats();
            assert_eq!(stats.evicted_protected, 0, "{stats:?}");
            assert!(stats.evicted > keys / 2, "{stats:?}");
        }
    }
}

/// The flood's keys are protected too, and newer.
#[test]
fn a_flood_of_keys_used_twice_resets_at_most_five_in_a_hundred() {
    for (capacity, keys) in TABLES {
        let flooded = Flooded::with(capacity, keys, TWICE);
        let limiter = &flooded.limiter;
        assert!(reset(limiter, USED_TWICE) <= 5, "{limiter:?}");
        let stats = flooded.stats();
        assert!(stats.evicted_protected > keys / 4, "{stats:?}");
    }
}

/// Each new key finds an unprotected key in one of its slots, whatever other threads take.
#[test]
fn a_flood_from_several_threads_resets_no_key_used_twice() {
    deadline("threads that flood a full table", || {
        let Flooded { limiter, came } = Flooded::with(1_000, 0, ONCE);
        let granted = on_threads(0..4, |id| {
            let new = (0..often(2_000)).map(|key| (1 + id) * FIRST_OF_FLOOD + key);
            let granted = new.filter(|key| {
                // Each spent key is used as well.
                assert!(limiter.try_acquire(&(key % USED_TWICE[1])).is_err());
                let outcome = limiter.try_acquire_n(key, BURST);
                assert!(matches!(outcome, Ok(_) | Err(Denied::NoRoom { .. })));
                outcome.is_ok()
            });
            granted.count() as u64
        });
        let stats = limiter.stats();
        assert_eq!(stats.inserted, came + granted.iter().sum::<u64>());
        assert_eq!(stats.inserted, stats.tracked + stats.evicted, "{stats:?}");
        let lost = (reset(&limiter, USED_TWICE), stats.evicted_protected);
        assert_eq!(lost, (0, 0), "{stats:?}");
    });
}

/// If all slots of a new key hold protected keys, one of them must be evicted.
#[test]
fn a_flood_resets_one_of_sixteen_protected_keys() {
    for parts in [ONCE, ONE_PERMIT] {
        let limiter = crowded(bucket("100/min"));
        let keys = in_sixteen_slots(160);
        let (there, new) = keys.split_at(16);
        for key in there.iter().chain(new) {
            limiter.clock().advance(Duration::from_nanos(100));
            let parts = if there.contains(key) { TWICE } else { parts };
            for part in parts {
                assert!(limiter.try_acquire_n(key, *part).is_ok());
            }
        }
        let reset = there.iter().filter(|key| limiter.key(*key).is_idle());
        assert_eq!(reset.copied().collect::<Vec<_>>(), [there[15]]);
        let stats = limiter.stats();
        let evicted = (stats.evicted, stats.evicted_protected);
        assert_eq!((evicted, stats.tracked), ((144, 1), 16), "{stats:?}");
    }
}

pub(super) type Full<A> = Keyed<A, ManualClock, IdentityState>;
type OfAny<'t> = Key<&'t Full<AnyAlgorithm>>;

/// Checks how many of sixteen busy keys are protected: new keys that stay take their slots, and the
/// protected ones are evicted last.
pub(super) fn are_protected<A: Algorithm + Debug>(limiter: &Full<A>, protected: u64) {
    let before = limiter.stats();
    assert_eq!((before.tracked, before.idle), (16, 0), "{before:?}");
    let new = in_sixteen_slots(160).iter().rev();
    for (key, evicted) in new.zip(1..=16) {
        // Protected too, and banned for longer than others.
        for _ in 0..2 {
            let _ = limiter.key(key).take_up_to(1);
        }
        assert!(limiter.key(key).ban(Tick::MAX).is_ok());
        let stats = limiter.stats();
        let right = (evicted + protected).saturating_sub(16);
        let gone = stats.evicted - before.evicted;
        let gone = (gone, stats.evicted_protected - before.evicted_protected);
        assert_eq!(gone, (evicted, right), "{limiter:?}");
    }
}

/// Each of the sixteen keys is used.
pub(super) fn each<A: Algorithm>(limiter: &Full<A>, mut by: impl FnMut(Key<&Full<A>>)) {
    for key in in_sixteen_slots(16) {
        by(limiter.key(key));
    }
}

/// Half of the keys take little in two grants, the others more in one.
pub(super) fn half_protected<A: Algorithm>(limiter: &Full<A>) {
    for (index, key) in in_sixteen_slots(16).iter().enumerate() {
        let parts: &[u64] = if index % 2 == 0 { &[10, 10] } else { &[50] };
        for part in parts {
            assert!(limiter.try_acquire_n(key, *part).is_ok());
        }
    }
}

type Use = fn(OfAny<'_>);

const TAKES: [(&str, Use); 7] = [
    ("try_acquire", |key| assert!(key.try_acquire().is_ok())),
    ("try_acquire_n", |key| assert!(key.try_acquire_n(2).is_ok())),
    ("take_up_to", |key| assert_eq!(key.take_up_to(2).n(), 2)),
    ("charge", |key| assert_eq!(key.charge(2).n(), 2)),
    ("charge into debt", |key| {
        assert_eq!(key.charge(BURST).n(), BURST);
    }),
    ("undone", |key| {
        let granted = key.try_acquire_n(2);
        assert_eq!(key.undo(granted.expect("it is there")), 2);
        assert!(key.try_acquire().is_ok());
    }),
    ("refunded", |key| {
        assert!(key.try_acquire_n(2).is_ok());
        assert_eq!(key.refund(1), 1);
    }),
];

#[test]
fn a_second_grant_protects_a_key() {
    for (name, take) in TAKES {
        for times in [1, 2, 3] {
            let limiter = crowded(algorithm("token-bucket 100/min"));
            for _ in 0..times {
                each(&limiter, take);
            }
            // The use `undone` includes a second grant.
            let protects = times > 1 || name == "undone";
            println!("{name}, {times}");
            are_protected(&limiter, 16 * u64::from(protects));
        }
    }
}

#[test]
fn batches_and_reservations_protect_keys() {
    let keys = in_sixteen_slots(16);
    for times in [1, 2] {
        let limiter = crowded(bucket("100/min"));
        let mut outcomes = [const { Err(Denied::busy(1)) }; 16];
        for _ in 0..times {
            let decided = limiter.try_acquire_batch(keys, &mut outcomes);
            assert!(decided.is_ok() && outcomes.iter().all(Result::is_ok));
        }
        are_protected(&limiter, 16 * (times - 1));
        let limiter = crowded(bucket("100/min"));
        for _ in 0..times {
            // The second reservation waits.
            each(&limiter, |key| assert!(key.reserve(BURST).is_ok()));
        }
        are_protected(&limiter, 16 * (times - 1));
        let limiter = crowded(bucket("100/min"));
        each(&limiter, |key| {
            let reserved = key.reserve(5).expect("it is there");
            assert_eq!(reserved.settle(4 + times).1.charged, times - 1);
        });
        are_protected(&limiter, 16 * (times - 1));
    }
}

const LEAVES_AS_IT_IS: [(&str, Use); 6] = [
    ("denials", |key| {
        assert!(key.try_acquire().is_err());
        assert!(key.try_acquire_n(u64::MAX).is_err());
    }),
    ("nothing is taken", |key| {
        assert_eq!(key.take_up_to(5).n(), 0);
    }),
    ("nothing is asked for", |key| {
        assert_eq!(key.try_acquire_n(0).map(|granted| granted.n()), Ok(0));
        assert_eq!(key.take_up_to(0).n(), 0);
        assert_eq!(key.charge(0).n(), 0);
        assert_eq!(key.refund(0), 0);
    }),
    ("looks", |key| {
        let _ = (key.available(), key.time_until(1), key.level());
        assert!(!key.is_idle());
    }),
    ("a ban", |key| {
        assert!(key.ban(tick(NOW + 3_600 * SECOND)).is_ok());
        assert!(key.try_acquire().is_err());
        assert_eq!(key.refund(5), 0);
    }),
    ("a reset, and a ban", |key| {
        key.reset();
        assert!(key.ban(tick(NOW + 3_600 * SECOND)).is_ok());
    }),
];

/// For any algorithm, even if a word changes although nothing is taken.
#[test]
fn a_verb_that_takes_nothing_protects_nothing() {
    for algorithm in every() {
        for (name, use_it) in LEAVES_AS_IT_IS {
            for later in [0, period(&algorithm) / 200] {
                let limiter = crowded(algorithm);
                each(&limiter, |key| drop(key.take_up_to(u64::MAX)));
                limiter.clock().advance(Duration::from_nanos(later));
                each(&limiter, use_it);
                println!("{name}, {algorithm}, {later}");
                are_protected(&limiter, 0);
            }
        }
    }
}

#[test]
fn an_idle_key_that_returns_is_protected_and_a_removed_one_is_not() {
    for (is_removed, protected) in [(false, 16), (true, 0)] {
        let limiter = crowded(bucket("100/min"));
        each(&limiter, |key| assert!(key.try_acquire().is_ok()));
        limiter.clock().advance(Duration::from_secs(3_600));
        assert_eq!(limiter.stats().idle, 16);
        each(&limiter, |key| {
            assert!(!is_removed || key.remove());
            assert!(key.try_acquire().is_ok());
        });
        are_protected(&limiter, protected);
    }
    // Nor is a key whose slot another key used in between.
    let limiter = crowded(bucket("100/min"));
    for keys in [0..16, 16..32, 0..16] {
        limiter.clock().advance(Duration::from_secs(3_600));
        for key in &in_sixteen_slots(32)[keys] {
            assert!(limiter.try_acquire(key).is_ok());
        }
    }
    are_protected(&limiter, 0);
}

/// The key is already in the table when its first grant comes.
#[test]
fn a_key_inserted_by_a_ban_or_denial_is_protected_by_its_first_grant() {
    let banned = crowded(bucket("100/min"));
    let empty = crowded(bucket("100/min initial 0"));
    for protected in [0, 16] {
        each(&banned, |key| match protected {
            0 => assert!(key.ban(tick(NOW + SECOND)).is_ok()),
            _ => assert!(key.try_acquire().is_ok()),
        });
        each(&empty, |key| {
            assert_eq!(key.try_acquire().is_ok(), protected > 0)
        });
        // The table's keys stay unchanged for the next turn.
        let copy = |of: &Full<TokenBucket>, quota| {
            let mut bytes = Vec::new();
            assert!(of.snapshot(&mut bytes).is_ok());
            let mut copy = crowded(bucket(quota));
            let restored = copy.restore_after(&mut bytes.as_slice(), Duration::ZERO);
            assert_eq!(restored.map(|restored| restored.keys).ok(), Some(16));
            copy
        };
        are_protected(&copy(&banned, "100/min"), protected);
        are_protected(&copy(&empty, "100/min initial 0"), protected);
        banned.clock().advance(Duration::from_secs(10));
        empty.clock().advance(Duration::from_secs(10));
    }
}

/// Keys in a bucket beside their own are found there too.
#[test]
fn a_key_is_protected_in_each_of_its_slots() {
    for twice in in_sixteen_slots(16) {
        let limiter = crowded(bucket("100/min"));
        let keys = in_sixteen_slots(16).iter().chain([twice]);
        keys.for_each(|key| assert!(limiter.try_acquire(key).is_ok()));
        are_protected(&limiter, 1);
    }
}

/// Versions repeat after 32 changes.
#[test]
fn a_change_of_the_quota_keeps_keys_protected() {
    for keep in KEEPS {
        for changes in [1, 2, 31, 32, 33, 100] {
            for comes_again in [false, true] {
                let limiter = crowded(bucket("100/min"));
                half_protected(&limiter);
                for change in 0..changes {
                    let quota = Quota::per_minute(101 + change % 2).burst(BURST);
                    assert!(limiter.set_quota(quota, keep).is_ok());
                }
                each(&limiter, |key| match comes_again {
                    true => assert!(key.try_acquire().is_ok()),
                    // Nothing is idle, even if everything is fresh.
                    false => assert!(key.ban(tick(NOW + SECOND)).is_ok()),
                });
                are_protected(&limiter, if comes_again { 16 } else { 8 });
            }
        }
    }
}

#[test]
fn a_move_to_another_plan_keeps_keys_protected() {
    let plans = [
        bucket("100/min"),
        bucket("1000/d"),
        bucket("10/s burst 200"),
    ];
    let limiter = with_plans(&plans).with_hasher(IdentityState::default());
    half_protected(&limiter);
    for plan in [1, 2, 0] {
        // Each key moves to this plan without a grant.
        each(&limiter, |key| assert_eq!(key.with_plan(plan).refund(1), 1));
    }
    are_protected(&limiter, 8);
    // A second grant by another plan counts as a second grant.
    let limiter = with_plans(&plans).with_hasher(IdentityState::default());
    for plan in [0, 2] {
        each(&limiter, |key| {
            assert!(key.with_plan(plan).try_acquire().is_ok())
        });
    }
    are_protected(&limiter, 16);
}

/// Tests each way in which a ban ends.
#[test]
fn a_ban_and_its_end_keep_keys_protected() {
    let ban = |limiter: &Full<TokenBucket>| {
        let until = limiter.clock().now().saturating_add(Duration::from_secs(1));
        each(limiter, |key| assert!(key.ban(until).is_ok()));
    };
    for end in 0..4 {
        let limiter = crowded(bucket("100/min"));
        half_protected(&limiter);
        ban(&limiter);
        let quota = Quota::per_minute(90).burst(BURST);
        match end {
            0 => {}
            1 => {
                limiter.clock().advance(Duration::from_secs(30));
            }
            2 => assert!(limiter.set_quota(quota, Keep::AsIs).is_ok()),
            _ => {
                assert!(limiter.set_quota(quota, Keep::Fresh).is_ok());
                // Brings all keys up to date.
                each(&limiter, |key| {
                    assert_eq!(key.available(), BURST);
                    assert!(key.try_acquire_n(BURST + 1).is_err());
                });
                ban(&limiter);
            }
        }
        // A banned key takes no refund, so this shows whether its ban is over.
        each(&limiter, |key| {
            assert_eq!(key.refund(1), u64::from(end == 1))
        });
        are_protected(&limiter, 8);
    }
}
