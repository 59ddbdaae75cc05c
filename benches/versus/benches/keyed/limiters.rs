//! The limiters that are compared: each has a limit for every key, and all keys are in it.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use parking_lot::{Mutex, RwLock};
use tollgate::clock::{Clock, SystemClock};
use tollgate::{Denied, Granted, Keyed, Overflow, Quota, Tick, TokenBucket};

use super::timing::Kind;

/// How long a permit takes to come back: so long that no key is idle while it is measured.
const PERIOD: Duration = Duration::from_secs(10);

/// What a key has: more than is asked of the most frequent one, or one permit, taken before.
const fn burst(kind: Kind) -> u32 {
    match kind {
        Kind::Allowed => 1 << 26,
        Kind::Denied => 1,
    }
}

const fn period(kind: Kind) -> Duration {
    match kind {
        Kind::Allowed => PERIOD,
        Kind::Denied => Duration::from_secs(86_400),
    }
}

/// Something that decides for each key.
pub(crate) trait ByKey: Sync {
    /// Whether this key is granted a permit.
    fn is_allowed(&self, key: &u64) -> bool;
}

/// Decisions in a row. Its loop calls none through a pointer.
pub(crate) trait Row: Sync {
    /// One decision for each of these. Returns how many were allowed.
    fn decide(&self, keys: &[u64]) -> u64;
}

impl<L: ByKey> Row for L {
    #[inline(never)]
    fn decide(&self, keys: &[u64]) -> u64 {
        let mut allowed = 0;
        for key in keys {
            allowed += u64::from(black_box(self).is_allowed(key));
        }
        allowed
    }
}

/// What every one of them does: reads the clock and the next key.
pub(crate) struct Floor(pub(crate) Kind);

impl ByKey for Floor {
    #[inline(always)]
    fn is_allowed(&self, key: &u64) -> bool {
        black_box((SystemClock.now(), key));
        self.0 == Kind::Allowed
    }
}

/// The table.
pub(crate) type Table = Keyed<TokenBucket>;

/// A table that is full: as many keys as it was made for.
pub(crate) fn table(kind: Kind, keys: u64) -> Table {
    let quota = Quota::per(1, period(kind)).burst(burst(kind).into());
    let bucket = TokenBucket::new(quota).expect("a quota that can be represented");
    let table = Keyed::new(bucket, keys as usize).expect("a capacity that can be had");
    match kind {
        Kind::Allowed => table,
        // A key that found no room is denied like the others, and not evicts one of them.
        Kind::Denied => table.with_overflow(Overflow::Deny),
    }
}

impl ByKey for Table {
    #[inline(always)]
    fn is_allowed(&self, key: &u64) -> bool {
        self.try_acquire(key).is_ok()
    }
}

/// The same table, so many keys at once.
pub(crate) struct Many<'a, const N: usize>(pub(crate) &'a Table);

impl<const N: usize> Row for Many<'_, N> {
    #[inline(never)]
    fn decide(&self, keys: &[u64]) -> u64 {
        let mut outcomes: [Result<Granted, Denied>; N] =
            std::array::from_fn(|_| Err(Denied::never(1, 0)));
        let mut allowed = 0;
        for keys in keys.chunks(N) {
            let outcomes = outcomes.get_mut(..keys.len()).unwrap_or_default();
            let checked = black_box(self).0.try_acquire_many(keys, outcomes);
            checked.expect("as many outcomes as keys");
            allowed += outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        }
        allowed
    }
}

/// governor, with its own store and clock. `RateLimiter::keyed` makes it with the hasher `S` =
/// [`RandomState`](std::hash::RandomState).
pub(crate) type Governor<S> = governor::RateLimiter<u64, DashMapStateStore<u64, S>, DefaultClock>;

pub(crate) fn governor<S: BuildHasher + Clone + Default>(kind: Kind) -> Governor<S> {
    let quota = governor::Quota::with_period(period(kind)).expect("not zero");
    let burst = NonZeroU32::new(burst(kind)).expect("not zero");
    Governor::dashmap_with_hasher(quota.allow_burst(burst), S::default())
}

impl<S: BuildHasher + Clone + Sync + Send> ByKey for Governor<S> {
    #[inline(always)]
    fn is_allowed(&self, key: &u64) -> bool {
        self.check_key(key).is_ok()
    }
}

/// A bucket as people write it, behind its lock.
pub(crate) struct Naive {
    tokens: f64,
    last: Tick,
}

/// The quota of all.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    burst: f64,
    per_second: f64,
}

impl Limit {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            burst: burst(kind).into(),
            per_second: 1.0 / period(kind).as_secs_f64(),
        }
    }

    fn fresh(self, now: Tick) -> Mutex<Naive> {
        Mutex::new(Naive {
            tokens: self.burst,
            last: now,
        })
    }

    #[inline(always)]
    fn take(self, bucket: &Mutex<Naive>, now: Tick) -> bool {
        let mut bucket = bucket.lock();
        let made = now.saturating_since(bucket.last).as_secs_f64() * self.per_second;
        bucket.tokens = (bucket.tokens + made).min(self.burst);
        bucket.last = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }
}

/// A mutex for each key, in a concurrent map.
pub(crate) struct Mutexes {
    pub(crate) limit: Limit,
    pub(crate) map: DashMap<u64, Mutex<Naive>>,
}

impl ByKey for Mutexes {
    #[inline(always)]
    fn is_allowed(&self, key: &u64) -> bool {
        let now = SystemClock.now();
        if let Some(bucket) = self.map.get(key) {
            return self.limit.take(&bucket, now);
        }
        let bucket = self
            .map
            .entry(*key)
            .or_insert_with(|| self.limit.fresh(now));
        self.limit.take(&bucket, now)
    }
}

/// The same in a map behind one lock.
pub(crate) struct Locked {
    pub(crate) limit: Limit,
    pub(crate) map: RwLock<HashMap<u64, Mutex<Naive>>>,
}

impl ByKey for Locked {
    #[inline(always)]
    fn is_allowed(&self, key: &u64) -> bool {
        let now = SystemClock.now();
        if let Some(bucket) = self.map.read().get(key) {
            return self.limit.take(bucket, now);
        }
        let mut map = self.map.write();
        let bucket = map.entry(*key).or_insert_with(|| self.limit.fresh(now));
        self.limit.take(bucket, now)
    }
}
