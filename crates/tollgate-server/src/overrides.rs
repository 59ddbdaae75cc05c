//! Limits that requests bring with them: those of Envoy's descriptors.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tollgate::clock::SystemClock;
use tollgate::{Adjustable, Denied, Granted, Keep, Quota, TokenBucket};

/// How many keys have a limit of their own at once. Each takes less than 500 bytes.
const MOST: usize = 100_000;

const SHARDS: usize = 16;

/// The time between two searches of a full shard for keys that can go.
const PAUSE: Duration = Duration::from_millis(100);

/// A unit of time, by its number in Envoy's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Second = 1,
    Minute = 2,
    Hour = 3,
    Day = 4,
    Month = 5,
    Year = 6,
    Week = 7,
}

impl Unit {
    pub(crate) const ALL: [(Self, &'static str, u64); 7] = [
        (Self::Second, "second", 1),
        (Self::Minute, "minute", 60),
        (Self::Hour, "hour", 3600),
        (Self::Day, "day", 86_400),
        (Self::Week, "week", 7 * 86_400),
        (Self::Month, "month", 30 * 86_400),
        (Self::Year, "year", 365 * 86_400),
    ];

    pub(crate) fn of_number(number: i32) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find_map(|(unit, ..)| (*unit as i32 == number).then_some(*unit))
    }

    pub(crate) fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find_map(|(unit, name, _)| (*unit == self).then_some(*name))
            .unwrap_or_default()
    }

    pub(crate) fn period(self) -> Duration {
        let mut all = Self::ALL.iter();
        let seconds = all.find_map(|(unit, _, seconds)| (*unit == self).then_some(*seconds));
        Duration::from_secs(seconds.unwrap_or(1))
    }
}

/// A quota that a request brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) requests: u32,
    pub(crate) unit: Unit,
}

impl Override {
    pub(crate) fn quota(self) -> Quota {
        Quota::per(u64::from(self.requests), self.unit.period())
    }
}

/// The limits of keys whose requests bring them. They are buckets, in this process alone.
///
/// A key has one limit. If another quota comes, the key keeps what it used, so a client gains
/// nothing by changing its quota. If there is no room for another key, the request is denied.
#[derive(Debug)]
pub(crate) struct Overrides {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    keys: HashMap<u64, Limited>,
    /// When it was last searched for keys that can go, which takes time.
    searched: Option<Instant>,
}

#[derive(Debug)]
struct Limited {
    quota: Override,
    limiter: OfKey,
}

/// The limit of one key.
pub(crate) type OfKey = Arc<Adjustable<TokenBucket, SystemClock>>;

impl Default for Overrides {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: Default::default(),
        }
    }
}

impl Overrides {
    /// Returns the limit of a key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the quota is 0, or if there is no room.
    pub(crate) fn of(&self, key: impl Hash, n: u64, quota: Override) -> Result<OfKey, Denied> {
        let bucket = TokenBucket::new(quota.quota()).map_err(|_| Denied::never(n, 0))?;
        let hash = self.hasher.hash_one(key);
        let shard = usize::try_from(hash).unwrap_or(0) % SHARDS;
        let Some(shard) = self.shards.get(shard) else {
            return Err(Denied::no_room(n));
        };
        // No step leaves it half done.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *shard;
        let keys = &mut shard.keys;
        if let Some(known) = keys.get_mut(&hash) {
            if known.quota != quota {
                let changed = known.limiter.set_quota(quota.quota(), Keep::Used);
                changed.map_err(|_| Denied::never(n, 0))?;
                known.quota = quota;
            }
            return Ok(Arc::clone(&known.limiter));
        }
        let is_full = keys.len() >= MOST / SHARDS;
        if is_full && shard.searched.is_none_or(|it| it.elapsed() >= PAUSE) {
            // A key that has all of its permits is as a new one, unless a request holds its limit.
            keys.retain(|_, it| {
                let is_held = Arc::strong_count(&it.limiter) > 1;
                is_held || it.limiter.available() < it.quota.quota().burst_size()
            });
            shard.searched = Some(Instant::now());
        }
        if keys.len() >= MOST / SHARDS {
            return Err(Denied::no_room(n));
        }
        let limiter = Arc::new(Adjustable::new(bucket));
        let known = Limited {
            quota,
            limiter: Arc::clone(&limiter),
        };
        keys.insert(hash, known);
        Ok(limiter)
    }
}

/// Permits that a limit of a request granted.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) limiter: OfKey,
    pub(crate) granted: Granted,
}

impl Taken {
    /// Takes `n` permits, or looks if `n` is 0.
    pub(crate) fn new(limiter: OfKey, n: u64) -> Result<Self, Denied> {
        if n == 0 {
            limiter.check_n(1)?;
        }
        let granted = limiter.try_acquire_n(n)?;
        Ok(Self { limiter, granted })
    }

    pub(crate) fn undo(self) {
        let _ = self.limiter.undo(self.granted);
    }
}
