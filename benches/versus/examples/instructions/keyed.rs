//! The rows of a limit for each key: many keys in turn, in a table filled to its capacity.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use tollgate::keyed::Overflow;
use tollgate::{Denied, Granted, Keyed, Quota, Tick, TokenBucket};
use tollgate_versus::keys::{key, name};

use crate::{Row, SOON, bucket, dry, times};

type Table = Keyed<TokenBucket>;
type Governor<S> = governor::RateLimiter<u64, DashMapStateStore<u64, S>, DefaultClock>;

/// The wrappers. callgrind recognizes them by `counted_` in their names.
mod counted {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_keyed(table: &Table, key: &u64) -> bool {
        table.try_acquire(key).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_keyed_at(table: &Table, key: &u64, now: Tick) -> bool {
        table.key(key).at(now).try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_keyed_str(table: &Table, key: &str) -> bool {
        table.try_acquire(key).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_keyed_many(table: &Table, keys: &[u64], outcomes: &mut Outcomes) {
        let outcomes = outcomes.get_mut(..keys.len()).unwrap_or_default();
        table
            .try_acquire_batch(keys, outcomes)
            .expect("as many as keys");
    }

    #[inline(never)]
    pub(super) fn counted_governor_keyed<S>(limiter: &Governor<S>, key: &u64) -> bool
    where
        S: BuildHasher + Clone,
    {
        limiter.check_key(key).is_ok()
    }
}
use counted::*;

/// The keys in one call.
const BATCH: usize = 16;
type Outcomes = [Result<Granted, Denied>; BATCH];

const KEYS: u64 = 10_000;
/// The time from one permit to the next.
const MINUTE: Duration = Duration::from_secs(60);
/// More permits than a row requests for one key.
const PLENTY: u32 = 1 << 20;

/// The burst where one permit is enough.
const ONE: u32 = 1;

const fn burst(allowed: bool) -> u32 {
    if allowed { PLENTY } else { 2 }
}

/// Returns a table for [`KEYS`] keys, and the keys in it. Each key has two grants already, so it is
/// protected, as known keys are.
fn full<K>(allowed: bool, key: fn(u64) -> K, ask: impl Fn(&Table, &K) -> bool) -> (Table, Vec<K>) {
    let quota = Quota::per(1, MINUTE).burst(burst(allowed).into());
    let table = Keyed::new(bucket(quota), KEYS as usize).expect("a capacity");
    let table = black_box(table.with_overflow(Overflow::Deny));
    let came_in = |key: &K| ask(&table, key) && ask(&table, key);
    let keys: Vec<K> = (0..KEYS).map(key).filter(came_in).collect();
    assert!(
        keys.len() as u64 > KEYS * 99 / 100,
        "nearly all keys find a slot"
    );
    (table, keys)
}

fn numbered(allowed: bool) -> (Table, Vec<u64>) {
    full(allowed, key, |table, key| table.try_acquire(key).is_ok())
}

/// Returns the table's keys in an order other than that of insertion.
fn in_turn<K>(keys: &[K]) -> impl Iterator<Item = &K> {
    let places = (1..).map(|turn: usize| turn.wrapping_mul(7919) % keys.len());
    places.filter_map(|place| keys.get(place))
}

/// Requests a permit for one key after the other.
fn each<'k, K>(
    keys: &'k [K],
    allowed: bool,
    count: u64,
    mut ask: impl FnMut(&'k K) -> bool,
) -> u64 {
    let mut keys = in_turn(keys);
    times(count, || keys.next().is_some_and(&mut ask) == allowed)
}

/// Requests permits for several keys in one call.
fn several(allowed: bool, count: u64, ask: impl Fn(&Table, &[u64], &mut Outcomes)) -> u64 {
    let (table, keys) = numbered(allowed);
    let keys: Vec<u64> = in_turn(&keys).take(count as usize).copied().collect();
    let mut right = 0;
    for keys in keys.chunks(BATCH) {
        let mut outcomes = [const { Err(Denied::never(1, 0)) }; BATCH];
        ask(&table, keys, &mut outcomes);
        let outcomes = outcomes.iter().take(keys.len());
        right += outcomes
            .filter(|outcome| outcome.is_ok() == allowed)
            .count() as u64;
    }
    right
}

fn at_tick(allowed: bool, count: u64) -> u64 {
    let ask = |table: &Table, key: &u64| table.key(key).at(Tick::ZERO).try_acquire().is_ok();
    let (table, keys) = full(allowed, key, ask);
    let now = black_box(SOON);
    each(&keys, allowed, count, |key| {
        counted_keyed_at(&table, key, now)
    })
}

/// Returns a table of this capacity in which `keys` keys have made a request, and the keys that
/// found a slot.
fn holding(keys: u64, capacity: u64, overflow: Overflow, burst: u32) -> (Table, Vec<u64>) {
    let quota = dry().burst(burst.into());
    let table = Keyed::new(bucket(quota), capacity as usize).expect("a capacity");
    let table = black_box(table.with_overflow(overflow));
    let came_in = |key: &u64| table.key(key).at(Tick::ZERO).try_acquire().is_ok();
    let keys = (0..keys).map(key).filter(came_in).collect();
    (table, keys)
}

/// A half full table of protected keys, of which the first ones have overrides.
fn owned(overrides: usize) -> (Table, Vec<u64>) {
    let quota = Quota::per(1, MINUTE).burst(PLENTY.into());
    let table = Keyed::new(bucket(quota), KEYS as usize).expect("a capacity");
    let table = table
        .with_overflow(Overflow::Deny)
        .with_overrides(KEYS as usize);
    let table = black_box(table.expect("one plan"));
    let keys: Vec<u64> = (0..KEYS / 2).map(key).collect();
    for key in keys.iter().take(overrides) {
        table.key(key).set_quota(quota).expect("one for each");
    }
    let mut twice = keys.iter().chain(&keys);
    assert!(twice.all(|key| table.key(key).at(Tick::ZERO).try_acquire().is_ok()));
    (table, keys)
}

/// Makes requests for new keys.
fn new(table: &Table, now: Tick, allowed: bool, count: u64) -> u64 {
    let keys: Vec<u64> = (100 * KEYS..100 * KEYS + count).map(key).collect();
    each(&keys, allowed, count, |key| {
        counted_keyed_at(table, key, now)
    })
}

fn governors<S>(allowed: bool, count: u64) -> u64
where
    S: BuildHasher + Clone + Default,
{
    let quota = governor::Quota::with_period(MINUTE).expect("not zero");
    let burst = NonZeroU32::new(burst(allowed)).expect("not zero");
    let limiter = Governor::dashmap_with_hasher(quota.allow_burst(burst), S::default());
    let limiter = black_box(limiter);
    let keys: Vec<u64> = (0..KEYS).map(key).collect();
    let mut twice = keys.iter().chain(&keys);
    assert!(twice.all(|key| limiter.check_key(key).is_ok()));
    each(&keys, allowed, count, |key| {
        counted_governor_keyed(&limiter, key)
    })
}

pub(crate) static KEYED: &[Row] = &[
    ("keyed-allowed", |count| {
        let (table, keys) = numbered(true);
        each(&keys, true, count, |key| counted_keyed(&table, key))
    }),
    ("keyed-denied", |count| {
        let (table, keys) = numbered(false);
        each(&keys, false, count, |key| counted_keyed(&table, key))
    }),
    ("keyed-at-allowed", |count| at_tick(true, count)),
    ("keyed-at-denied", |count| at_tick(false, count)),
    // Names of 14 bytes.
    ("keyed-str-allowed", |count| {
        let (table, keys) = full(true, name, |table, key| {
            table.try_acquire(key.as_str()).is_ok()
        });
        each(&keys, true, count, |key| counted_keyed_str(&table, key))
    }),
    // 16 in one call; the count is for each of them.
    ("keyed-many-allowed", |count| {
        several(true, count, counted_keyed_many)
    }),
    ("keyed-many-denied", |count| {
        several(false, count, counted_keyed_many)
    }),
    // Keys with one grant already: the second grant, and the denial of keys that spent everything
    // in the first.
    ("keyed-at-second", |count| {
        let (table, keys) = holding(KEYS / 2, KEYS, Overflow::Deny, 2);
        each(&keys, true, count, |key| {
            counted_keyed_at(&table, key, Tick::ZERO)
        })
    }),
    ("keyed-at-denied-once", |count| {
        let (table, keys) = holding(KEYS / 2, KEYS, Overflow::Deny, ONE);
        each(&keys, false, count, |key| {
            counted_keyed_at(&table, key, Tick::ZERO)
        })
    }),
    // Keys with overrides, and keys without, in such a table.
    ("keyed-at-override", |count| {
        let (table, keys) = owned(KEYS as usize);
        each(&keys, true, count, |key| {
            counted_keyed_at(&table, key, Tick::ZERO)
        })
    }),
    ("keyed-at-beside-overrides", |count| {
        let (table, keys) = owned(ONE as usize);
        each(&keys, true, count, |key| {
            counted_keyed_at(&table, key, Tick::ZERO)
        })
    }),
    ("keyed-new-beside-overrides", |count| {
        let (table, _) = owned(ONE as usize);
        new(&table, Tick::ZERO, true, count)
    }),
    // New keys, in a table that is half full.
    ("keyed-new", |count| {
        let (table, _) = holding(KEYS / 2, KEYS, Overflow::Deny, ONE);
        new(&table, Tick::ZERO, true, count)
    }),
    // New keys, in a table filled to its capacity.
    ("keyed-new-full", |count| {
        let (table, keys) = holding(KEYS, KEYS, Overflow::Evict, ONE);
        // Remove as many keys as are inserted. Filling the table may have evicted some.
        let left = keys.iter().filter(|key| table.key(key).remove());
        assert_eq!(left.take(count as usize).count() as u64, count);
        new(&table, Tick::ZERO, true, count)
    }),
    // New keys, where idle keys occupy all slots.
    ("keyed-new-takes-over", |count| {
        let (table, _) = holding(8 * KEYS, KEYS, Overflow::Evict, ONE);
        new(&table, Tick::from_nanos(u64::MAX / 2), true, count)
    }),
    // New keys, where busy keys occupy all slots.
    ("keyed-new-evicts", |count| {
        let (table, _) = holding(8 * KEYS, KEYS, Overflow::Evict, ONE);
        new(&table, Tick::ZERO, true, count)
    }),
    ("keyed-new-denied", |count| {
        let (table, _) = holding(8 * KEYS, KEYS, Overflow::Deny, ONE);
        new(&table, Tick::ZERO, false, count)
    }),
    ("governor-keyed-allowed", |count| {
        governors::<RandomState>(true, count)
    }),
    ("governor-keyed-denied", |count| {
        governors::<RandomState>(false, count)
    }),
    // With tollgate's hasher.
    ("governor-keyed-hasher", |count| {
        governors::<foldhash::quality::RandomState>(true, count)
    }),
];
