//! The quota of all keys. Each key behaves as a limiter whose quota is set, also with concurrent
//! threads. Every decision that begins after the quota was set uses it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::clock::NoClock;
use tollgate::sync::{AtomicU64, Ordering};
use tollgate::{AnyAlgorithm, ConfigError, KeyedMap, Quota, TokenBucket};

use super::{bucket_of, map, of};
use crate::support::hooks::{Call, Hooked, HookedKey, at_call, unhook};
use crate::support::model::{Answer, Model, SameGrant, Verb, say};
use crate::support::{Random, algorithm, deadline, often, on_threads, tick};

/// The quota of [`bucket_of`].
fn quota_of(burst: u64) -> Quota {
    Quota::per(1, Duration::from_nanos(10)).burst(burst)
}

/// Makes the same requests to some keys and to their model while the quota is set repeatedly.
#[test]
fn keys_answer_as_a_limiter_with_the_same_changes_of_the_quota() {
    for text in [
        "token-bucket 3/7ns burst 4",
        "gcra 1/10ns tolerance 15ns",
        "leaky-queue 1/10ns burst 5 free 2",
        "fixed-window 3/40ns",
        "sliding-window 3/40ns",
        "intervals 2/30ns burst 4 initial 1",
    ] {
        let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm(text), 8);
        let mut model = Model::new(&[algorithm(text)]);
        let (mut random, mut now, mut changes) = (Random(text.len() as u64), 0, 0);
        let mut kept: [Vec<_>; 3] = Default::default();
        for turn in 0..often(3_000) {
            now += random.below(12);
            let (key, n) = (turn % 3, random.below(5));
            if turn > 3 && random.one_in(15) {
                let keep = [Keep::AsIs, Keep::Scaled, Keep::Fresh][random.below(3) as usize];
                let permits = 1 + random.below(4);
                let quota = Quota::per(permits, Duration::from_nanos(10 + random.below(30)));
                let set = map.set_quota_at(quota, keep, tick(now)).is_ok();
                assert_eq!(set, model.set_quota(0, quota, keep, tick(now)), "{text}");
                assert_eq!(set, map.quota() == quota, "{text}");
                changes += u64::from(set);
            }
            let verb = match random.below(8) {
                _ if turn < 3 => Verb::Acquire(1),
                0 => Verb::Charge(n),
                1 => Verb::Refund(n),
                2 => Verb::Available,
                3 => Verb::Level,
                4 => match kept[key as usize].pop() {
                    Some((granted, of)) => Verb::Undo(granted, of),
                    None => Verb::Level,
                },
                5 => Verb::TakeUpTo(n),
                _ => Verb::Acquire(n),
            };
            let view = map.key(&key).at(tick(now));
            let right = model.ask(key, 0, tick(now), &verb);
            let asked = format!("{verb:?}");
            let said = say!(view, verb);
            assert_eq!(said, right, "{asked} of {key} at {now}, {text}");
            if let Answer::Outcome(Ok(SameGrant(granted))) = said {
                kept[key as usize].push((granted, (0, model.changes)));
            }
        }
        assert!(changes > 50, "{changes} changes, {text}");
    }
}

/// Present keys keep their permits. New keys start with the new quota, and keys with their own
/// algorithms keep them.
#[test]
fn keys_with_their_own_algorithm_keep_it() {
    let (map, _) = map(10);
    assert!(map.try_acquire_at(&1, tick(0)).is_ok());
    assert!(map.set_algorithm_at(&2, bucket_of(7), tick(0)).is_ok());
    let set = map.set_quota_at(quota_of(5), Keep::AsIs, tick(0));
    assert_eq!(set, Ok(()));
    let available = |at| [1, 2, 3].map(|key| map.key(&key).at(tick(at)).available());
    assert_eq!(available(0), [1, 2, 5]);
    assert_eq!(available(1_000), [5, 7, 5]);
    // A key that loses its own algorithm continues with the current quota.
    assert!(map.unset_algorithm_at(&2, tick(1_000)));
    assert_eq!(available(1_000), [5, 5, 5]);
    assert_eq!((map.quota(), map.algorithm()), (quota_of(5), bucket_of(5)));
}

#[test]
fn an_invalid_quota_changes_nothing() {
    let (map, _) = map(10);
    assert!(map.try_acquire_at(&1, tick(0)).is_ok());
    let set = map.set_quota_at(Quota::per_second(0), Keep::Fresh, tick(0));
    assert!(matches!(set, Err(ConfigError::ZeroPermits)), "{set:?}");
    assert_eq!(map.quota(), quota_of(2));
    assert_eq!(map.key(&1).at(tick(0)).available(), 1);
}

/// A decision uses the new quota if that is set between its read and its write. So does the first
/// decision on a key that is about to be inserted.
#[test]
fn a_new_quota_applies_to_a_decision_in_progress() {
    let map: Rc<KeyedMap<HookedKey, Hooked, NoClock>> = Rc::new(of(Hooked(bucket_of(3)), 10));
    assert!(map.try_acquire_at(&HookedKey(1), tick(0)).is_ok());
    for (call, key, n) in [(Call::Step, 1, 2), (Call::Clone, 2, 2)] {
        let others = Rc::clone(&map);
        let mut keeps = [Keep::AsIs, Keep::Fresh].into_iter();
        at_call(call, 0, move || {
            let keep = keeps.next().expect("once");
            let set = others.set_quota_at(quota_of(1), keep, tick(0));
            assert_eq!(set, Ok(()));
        });
        let late = map.try_acquire_n_at(&HookedKey(key), n, tick(0));
        assert!(!unhook(), "the decision was not interrupted");
        assert!(late.is_err(), "{late:?} by {call:?}");
        assert!(map.try_acquire_at(&HookedKey(key), tick(0)).is_ok());
        assert!(map.try_acquire_at(&HookedKey(key), tick(0)).is_err());
        assert!(map.set_quota_at(quota_of(3), Keep::Fresh, tick(0)).is_ok());
    }
}

/// The algorithm or a key panics during the change. No key is lost, and the next change migrates
/// all keys, even a change to the current quota.
#[test]
fn a_change_that_panics_loses_no_key() {
    for (call, after) in [(Call::CarryOver, 0), (Call::CarryOver, 2), (Call::Clone, 1)] {
        let map: KeyedMap<HookedKey, Hooked, NoClock> = of(Hooked(bucket_of(3)), 10);
        for key in 0..4 {
            assert!(map.try_acquire_at(&HookedKey(key), tick(0)).is_ok());
        }
        at_call(call, after, || panic!("on purpose"));
        let set = || map.set_quota_at(quota_of(5), Keep::AsIs, tick(0));
        assert!(catch_unwind(AssertUnwindSafe(set)).is_err(), "{call:?}");
        let left = |at| [0, 1, 2, 3].map(|key| map.key(&HookedKey(key)).at(tick(at)).available());
        assert_eq!(left(0), [2; 4], "{call:?}");
        assert_ne!(left(1_000), [5; 4], "{call:?}");
        assert_eq!(set(), Ok(()));
        assert_eq!((left(0), left(1_000), map.len()), ([2; 4], [5; 4], 4));
    }
}

/// Threads take from one key while the quota is set repeatedly. Exactly the initial permits are
/// granted.
#[test]
fn threads_gain_no_permits_while_the_quota_changes() {
    const PERMITS: u64 = often(5_000);
    deadline("threads that take while the quota is set", || {
        let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(PERMITS), 4);
        let granted = on_threads(4, |id| {
            let mut taken = 0;
            for turn in 0..PERMITS / 2 {
                if id == 0 && turn % 8 == 0 {
                    let burst = PERMITS + turn % 3;
                    assert!(
                        map.set_quota_at(quota_of(burst), Keep::AsIs, tick(0))
                            .is_ok()
                    );
                }
                taken += u64::from(map.try_acquire_at(&7, tick(0)).is_ok());
            }
            taken
        });
        let taken: u64 = granted.iter().sum();
        assert_eq!(taken, PERMITS);
        assert_eq!(map.key(&7).at(tick(0)).available(), 0);
        assert_eq!(map.len(), 1);
    });
}

/// Each quota has a larger burst than the one before, and each thread knows a quota that was set
/// before it begins. It finds that one or a later one, on existing keys and on new ones.
#[test]
fn a_decision_uses_the_latest_quota_or_a_later_one() {
    deadline("threads that know which quota was set", || {
        let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(1), often(20_000) as usize);
        let (begun, done) = (AtomicU64::new(1), AtomicU64::new(1));
        // ORDERING: Acquire and Release: a thread that knows of a quota knows that it was set.
        let (acquire, release) = (Ordering::Acquire, Ordering::Release);
        on_threads(4, |id| {
            for turn in 0..often(2_000) {
                if id == 0 {
                    if turn % 20 == 0 {
                        let burst = begun.fetch_add(1, release) + 1;
                        let set = map.set_quota_at(quota_of(burst), Keep::Fresh, tick(0));
                        assert_eq!(set, Ok(()));
                        done.store(burst, release);
                    }
                    continue;
                }
                let mine = id << 32;
                let new = mine | turn;
                for key in [new, mine | (turn / 2), new] {
                    let least = done.load(acquire);
                    // Takes everything and returns it, so the key is unchanged.
                    let taken = map.key(&key).at(tick(0)).take_up_to(u64::MAX);
                    let burst = taken.n();
                    let most = begun.load(acquire);
                    map.key(&key).at(tick(0)).undo(taken);
                    assert!((least..=most).contains(&burst), "{least}, {burst}, {most}");
                }
            }
        });
        assert_eq!(done.load(acquire), begun.load(acquire));
    });
}
