//! Limiters with a limit for each key.

use std::collections::HashMap;
use std::hash::BuildHasher;

use dashmap::DashMap;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use parking_lot::{Mutex, RwLock};
use tollgate::Tick;
use tollgate::clock::{Clock, SystemClock};

use super::Limit;
use super::direct::governor_quota;
use crate::AskKey;

/// governor's keyed limiter, with its own store and clock. `RateLimiter::keyed` creates it with the
/// hasher `S` = [`RandomState`](std::hash::RandomState).
///
/// It can't remove a single key; `retain_recent` visits all of them.
pub type GovernorByKey<S> = governor::RateLimiter<u64, DashMapStateStore<u64, S>, DefaultClock>;

/// Returns governor's keyed limiter.
#[must_use]
pub fn governor_by_key<S: BuildHasher + Clone + Default>(limit: Limit) -> GovernorByKey<S> {
    GovernorByKey::dashmap_with_hasher(governor_quota(limit), S::default())
}

impl<S: BuildHasher + Clone + Sync + Send> AskKey for GovernorByKey<S> {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        self.check_key(key).is_ok()
    }
}

/// A typical hand-written bucket, inside its lock.
#[derive(Debug)]
struct Naive {
    tokens: f64,
    last: Tick,
}

/// The burst of all buckets, and their refill in a second.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: f64,
    per_second: f64,
}

impl Rate {
    fn of(limit: Limit) -> Self {
        Self {
            burst: limit.burst as f64,
            per_second: 1.0 / limit.period.as_secs_f64(),
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

/// A mutex for each key, in a concurrent map. A thread that is preempted while it holds one blocks
/// all requests for its key. Idle keys are never removed.
#[derive(Debug)]
pub struct Mutexes {
    rate: Rate,
    map: DashMap<u64, Mutex<Naive>>,
}

impl Mutexes {
    /// Returns a limiter without keys.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            rate: Rate::of(limit),
            map: DashMap::new(),
        }
    }
}

impl AskKey for Mutexes {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        let now = SystemClock.now();
        if let Some(bucket) = self.map.get(key) {
            return self.rate.take(&bucket, now);
        }
        let bucket = self.map.entry(*key).or_insert_with(|| self.rate.fresh(now));
        self.rate.take(&bucket, now)
    }
}

/// The same in a map behind one lock.
#[derive(Debug)]
pub struct Locked {
    rate: Rate,
    map: RwLock<HashMap<u64, Mutex<Naive>>>,
}

impl Locked {
    /// Returns a limiter without keys.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            rate: Rate::of(limit),
            map: RwLock::new(HashMap::new()),
        }
    }
}

impl AskKey for Locked {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        let now = SystemClock.now();
        if let Some(bucket) = self.map.read().get(key) {
            return self.rate.take(bucket, now);
        }
        let mut map = self.map.write();
        let bucket = map.entry(*key).or_insert_with(|| self.rate.fresh(now));
        self.rate.take(bucket, now)
    }
}
