//! A concurrency limit for each key agrees with a map of counts, on one thread and on many. No
//! permit is lost, no key with guards is evicted, and errors name invalid input.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tollgate::error::LimiterError;
use tollgate::keyed::{KeyedConcurrency, KeyedGuard, SeededHasher};

use crate::support::*;

fn limiter(limit: u64) -> KeyedConcurrency {
    let limiter = KeyedConcurrency::new(limit, 1000).expect("a limit");
    limiter.with_hasher(SeededHasher::new(SEED))
}

/// Drops one of the guards. Returns its key and its weight.
fn leave<L: Deref<Target = KeyedConcurrency>>(
    guards: &mut Vec<(u64, KeyedGuard<L>)>,
    random: &mut Random,
) -> (u64, u64) {
    let (key, guard) = guards.swap_remove(random.below(guards.len() as u64) as usize);
    (key, guard.n())
}

#[test]
fn the_limiter_agrees_with_a_map_of_counts() {
    const LIMIT: u64 = 5;
    let (limiter, mut random) = (Arc::new(limiter(LIMIT)), Random(1));
    let mut inside: HashMap<u64, u64> = HashMap::new();
    let mut guards: Vec<(u64, KeyedGuard<&KeyedConcurrency>)> = Vec::new();
    let mut owned: Vec<(u64, KeyedGuard<Arc<KeyedConcurrency>>)> = Vec::new();
    let (mut granted, mut denied) = (0, 0);
    for _ in 0..often(20_000) {
        let (key, n) = (random.skewed(200), random.below(LIMIT + 2));
        let before = *inside.entry(key).or_default();
        let is_owned = random.one_in(2);
        let entered = match is_owned {
            true => limiter
                .try_enter_owned(&key, n)
                .map(|guard| owned.push((key, guard))),
            false => limiter
                .try_enter_n(&key, n)
                .map(|guard| guards.push((key, guard))),
        };
        let expected = match n {
            _ if n > LIMIT => Err(Denied::never(n, LIMIT)),
            _ if before + n > LIMIT => Err(Denied::busy(n)),
            _ => Ok(()),
        };
        assert_eq!(entered, expected, "{key} with {before} inside");
        granted += u64::from(entered.is_ok());
        denied += u64::from(entered.is_err());
        if entered.is_ok() {
            *inside.entry(key).or_default() += n;
        }
        // As many callers leave as enter.
        while guards.len() + owned.len() > 150 {
            let (key, n) = match is_owned || guards.is_empty() {
                true => leave(&mut owned, &mut random),
                false => leave(&mut guards, &mut random),
            };
            *inside.entry(key).or_default() -= n;
        }
        assert_eq!(limiter.inside(&key), inside[&key]);
    }
    assert!(granted > 1000 && denied > 1000, "{granted}, {denied}");
    let busy = inside.values().filter(|n| **n > 0).count() as u64;
    let stats = limiter.stats();
    assert_eq!(stats.tracked - stats.idle, busy);
    drop((guards, owned));
    let stats = limiter.stats();
    assert_eq!((stats.tracked - stats.idle, stats.evicted), (0, 0));
}

/// More keys with guards than there is room for: each key with a guard stays, and the others are
/// denied until a slot is free.
#[test]
fn a_full_table_denies_new_keys_and_evicts_none() {
    let limiter = limiter(1);
    let mut guards = Vec::new();
    let mut denied = Vec::new();
    for key in 0..10_000_u64 {
        match limiter.try_enter(&key) {
            Ok(guard) => guards.push((key, guard)),
            Err(Denied::NoRoom { requested: 1, .. }) => denied.push(key),
            Err(other) => panic!("{key}: {other}"),
        }
    }
    assert!(
        guards.len() >= 1000 && !denied.is_empty(),
        "{}",
        guards.len()
    );
    let stats = limiter.stats();
    assert_eq!((stats.tracked, stats.idle), (guards.len() as u64, 0));
    assert_eq!((stats.evicted, stats.no_room), (0, denied.len() as u64));
    for (key, _) in &guards {
        assert!(
            matches!(limiter.try_enter(key), Err(Denied::Busy { .. })),
            "{key}"
        );
        assert_eq!(limiter.inside(key), 1);
    }
    for key in &denied {
        assert_eq!(limiter.inside(key), 0);
    }
    drop(guards);
    // All slots are now available to other keys.
    let guards: Vec<_> = denied
        .iter()
        .take(1000)
        .map(|key| limiter.try_enter(key))
        .collect();
    assert!(guards.iter().all(Result::is_ok));
    assert!(limiter.stats().expired > 0);
}

#[test]
fn threads_never_exceed_the_limit_and_lose_no_permit() {
    const LIMIT: u64 = 3;
    deadline("threads that enter and leave", || {
        // A small table, in which keys without guards are evicted all the time.
        let limiter = Arc::new(limiter(LIMIT));
        let keys = 3000;
        let inside: Vec<AtomicU64> = (0..keys).map(|_| AtomicU64::new(0)).collect();
        on_threads(0..4, |thread| {
            let mut random = Random(thread);
            let mut held = Vec::new();
            for turn in 0..often(5_000) {
                let key = match random.one_in(2) {
                    true => random.skewed(keys),
                    false => random.below(keys),
                };
                let n = 1 + random.below(2);
                if let Ok(guard) = limiter.try_enter_owned(&key, n) {
                    let now = inside[key as usize].fetch_add(n, SeqCst) + n;
                    assert!(now <= LIMIT, "{now} inside for {key}");
                    held.push((key, guard));
                }
                if held.len() > 20 || turn % 3 == 0 && !held.is_empty() {
                    let at = random.below(held.len() as u64) as usize;
                    let (key, guard) = held.swap_remove(at);
                    inside[key as usize].fetch_sub(guard.n(), SeqCst);
                    drop(guard);
                }
            }
            for (key, guard) in held {
                inside[key as usize].fetch_sub(guard.n(), SeqCst);
                drop(guard);
            }
        });
        for key in 0..keys {
            assert_eq!(limiter.inside(&key), 0, "{key}");
        }
        let stats = limiter.stats();
        assert_eq!((stats.tracked, stats.evicted), (stats.idle, 0));
        assert!(stats.expired > 0, "no key was dropped");
    });
}

#[test]
fn a_guard_releases_its_permits_in_a_panic_and_on_another_thread() {
    let limiter = Arc::new(limiter(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = limiter.try_enter("alice").expect("fresh");
        assert!(limiter.try_enter("alice").is_err());
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    let guard = limiter.try_enter_owned("alice", 1).expect("it left");
    // The guard keeps the limiter alive.
    let (same, weak) = (Arc::clone(&limiter), Arc::downgrade(&limiter));
    drop(limiter);
    let thread = std::thread::spawn(move || {
        assert_eq!(same.inside("alice"), 1);
        drop(same);
        drop(guard);
    });
    thread.join().expect("no panic");
    assert!(weak.upgrade().is_none());
}

#[test]
fn keys_are_identified_by_their_hashes_and_a_weight_of_0_takes_nothing() {
    let limiter = limiter(1).with_hasher(BuildHasherDefault::<DefaultHasher>::default());
    let guard = limiter.try_enter("alice").expect("fresh");
    assert!(limiter.try_enter(&String::from("alice")).is_err());
    assert!(limiter.try_enter(&(7, "alice")).is_ok());
    let nothing = limiter.try_enter_n("alice", 0).expect("it always fits");
    assert_eq!((nothing.n(), limiter.inside("alice")), (0, 1));
    drop(nothing);
    assert_eq!(limiter.inside("alice"), 1);
    drop(guard);
    let _nothing = limiter.try_enter_n("carol", 0).expect("it always fits");
    assert_eq!((limiter.inside("carol"), limiter.stats().tracked), (0, 2));
}

#[test]
fn an_invalid_limit_or_capacity_is_an_error_that_names_it() {
    let error = |limit, capacity| {
        KeyedConcurrency::new(limit, capacity)
            .map(|_| ())
            .unwrap_err()
    };
    assert_eq!(error(0, 10), LimiterError::ZeroConcurrency);
    assert_eq!(error(1, 0), LimiterError::ZeroCapacity);
    let limit = Concurrency::MAX_LIMIT + 1;
    assert_eq!(error(limit, 10).field(), "limit");
    assert_eq!(error(1, usize::MAX).field(), "capacity");
    let most = limiter(Concurrency::MAX_LIMIT);
    let guard = most
        .try_enter_n("alice", Concurrency::MAX_LIMIT)
        .expect("all of it");
    assert!(most.try_enter("alice").is_err());
    drop(guard);
}

#[test]
fn the_limiter_is_send_sync_and_debug() {
    fn shared<T: Send + Sync + std::fmt::Debug>(value: &T) -> String {
        format!("{value:?}")
    }
    let limiter = Arc::new(limiter(2));
    let guard = limiter.try_enter("alice").expect("fresh");
    let owned = limiter.try_enter_owned("alice", 1).expect("room");
    assert_eq!(shared(&guard), "KeyedGuard { n: 1 }");
    assert_eq!(shared(&owned), "KeyedGuard { n: 1 }");
    let expected = "KeyedConcurrency { limit: 2, tracked: 1, .. }";
    assert_eq!(shared(&limiter), expected);
    assert_eq!(limiter.limit(), 2);
}
