//! The part of each key's permits that a process has for itself, so that keys that are asked for
//! seldom need no round trip either.
//!
//! The limit is divided for good: each process has a small bucket for each key, and the server has
//! the rest. So no limit is exceeded, whatever the processes and the server do at the same time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::error::LimiterError;
use tollgate::keyed::{Key, Overflow};
use tollgate::outcome::Settled;
use tollgate::store::View;
use tollgate::{Granted, Keyed, Quota, Tick, TokenBucket};

use crate::lease::options::{Allowance, LeaseError};
use crate::limit::Limit;
use crate::limit::kind::{Kind, Shape};
use crate::limit::rate::gcd;

/// What a process grants of each key without the server.
#[derive(Debug)]
pub(crate) struct Own {
    keys: Keyed<TokenBucket>,
    /// How long a bucket takes to refill.
    refill_ns: u64,
    /// Nothing is granted before this, a refill after the first request: a process that ended just
    /// before may have spent its bucket, and this one may be its successor. (Not after this was
    /// made, because a process can be forked off before the first request.)
    from_ns: OnceLock<u64>,
    /// Nothing is granted before this either: a ban found no room in the table.
    banned_until_ns: AtomicU64,
    granted: AtomicU64,
}

impl Own {
    pub(crate) fn new(quota: Quota, keys: usize) -> Result<Self, LeaseError> {
        let refill_ns = u128::from(quota.burst_size())
            .saturating_mul(quota.period().as_nanos())
            .div_ceil(quota.permits().max(1).into());
        let keys = Keyed::token_bucket(quota, keys).map_err(|error| match error {
            LimiterError::Quota(_) => LeaseError::AllowanceRate,
            error => LeaseError::AllowanceKeys(error),
        })?;
        Ok(Self {
            // A key that was replaced would come back with a full bucket.
            keys: keys.with_overflow(Overflow::Deny),
            refill_ns: u64::try_from(refill_ns).unwrap_or(u64::MAX),
            from_ns: OnceLock::new(),
            banned_until_ns: AtomicU64::new(0),
            granted: AtomicU64::new(0),
        })
    }

    /// Returns whether the process may grant anything yet.
    fn may_grant(&self, now_ns: u64) -> bool {
        let from_ns = || now_ns.saturating_add(self.refill_ns);
        now_ns >= *self.from_ns.get_or_init(from_ns)
            && now_ns >= self.banned_until_ns.load(Ordering::Relaxed)
    }

    fn key(&self, user: &[u8], now_ns: u64) -> View<Key<&Keyed<TokenBucket>>> {
        self.keys.key(user).at(Tick::from_nanos(now_ns))
    }

    /// Takes permits. If there are too few, returns when there are enough, unless that is unknown.
    pub(crate) fn take(
        &self,
        user: &[u8],
        now_ns: u64,
        n: u64,
    ) -> Result<Granted, Option<Duration>> {
        if !self.may_grant(now_ns) {
            return Err(None);
        }
        let taken = self.key(user, now_ns).try_acquire_n(n);
        if taken.is_ok() {
            self.granted.fetch_add(n, Ordering::Relaxed);
        }
        taken.map_err(|denied| denied.retry_after())
    }

    /// Returns how many permits were granted.
    pub(crate) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    /// Returns whether [`take`](Self::take) would take the permits.
    pub(crate) fn check(&self, user: &[u8], now_ns: u64, n: u64) -> bool {
        if !self.may_grant(now_ns) {
            return false;
        }
        // In a full table, a check of a new key is not denied, and a request is.
        let key = self.key(user, now_ns);
        let taken = key.try_acquire_n(n);
        taken.map(|granted| key.undo(granted)).is_ok()
    }

    /// Corrects a grant to its actual cost. In a full table, less may be charged than is missing.
    pub(crate) fn settle(
        &self,
        user: &[u8],
        now_ns: u64,
        granted: Granted,
        actual: u64,
    ) -> Settled {
        self.key(user, now_ns).settle(granted, actual)
    }

    /// Denies a key for a while. If there is no room for the key, denies all keys: then the server
    /// decides.
    pub(crate) fn ban_for(&self, user: &[u8], now_ns: u64, long: Duration) {
        if self.key(user, now_ns).ban_for(long).is_err() {
            let long_ns = u64::try_from(long.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = now_ns.saturating_add(long_ns);
            self.banned_until_ns.fetch_max(until_ns, Ordering::Relaxed);
        }
    }

    pub(crate) fn reset(&self, user: &[u8], now_ns: u64) {
        self.key(user, now_ns).reset();
    }
}

/// Divides a limit. Returns the server's part, and the bucket that each process has of each key.
pub(crate) fn divided(limit: &Limit, allowance: Allowance) -> Result<(Limit, Quota), LeaseError> {
    let refused = LeaseError::Allowance {
        percent: allowance.percent,
        processes: allowance.processes,
    };
    if !(1..=99).contains(&allowance.percent) || allowance.processes == 0 {
        return Err(refused);
    }
    let (quota, all) = (limit.quota, limit.permits());
    let processes = u64::from(allowance.processes);
    // In the time of a window, a bucket grants its burst and as much again.
    let times = match &limit.kind {
        Kind::Bucket(bucket) if bucket.free.is_none() => 1,
        Kind::Window(window) if window.shape != Shape::FirstHit => 2,
        Kind::Slots(_) => return Err(LeaseError::AllowanceOfSlots),
        _ => return Err(LeaseError::Limit),
    };
    let part = u128::from(all).saturating_mul(allowance.percent.into()) / 100;
    let own = u64::try_from(part).unwrap_or(u64::MAX) / processes / times;
    let given = own.saturating_mul(times).saturating_mul(processes);
    let rest = all.saturating_sub(given);
    if own == 0 || rest == 0 {
        return Err(refused);
    }
    let (server, own) = match &limit.kind {
        Kind::Window(window) => {
            let own = Quota::per(own, quota.period());
            let rest = Quota::per(rest, quota.period());
            let server = match window.shape {
                Shape::Slides => Limit::sliding_window(rest),
                _ => Limit::fixed_window(rest),
            };
            (server, own)
        }
        _ => {
            let rest = part_of(quota, rest).ok_or(LeaseError::AllowanceRate)?;
            let own = part_of(quota, own).ok_or(LeaseError::AllowanceRate)?;
            (Limit::token_bucket(rest), own)
        }
    };
    Ok((server.map_err(|_| LeaseError::AllowanceRate)?, own))
}

/// Returns the quota with this burst, and with as much less of the rate.
fn part_of(quota: Quota, burst: u64) -> Option<Quota> {
    let permits = u128::from(quota.permits()).checked_mul(burst.into())?;
    let nanos = quota.period().as_nanos();
    let nanos = nanos.checked_mul(quota.burst_size().into())?;
    let divisor = gcd(permits, nanos).max(1);
    let permits = u64::try_from(permits / divisor).ok()?;
    let period = Duration::from_nanos(u64::try_from(nanos / divisor).ok()?);
    Some(Quota::per(permits, period).burst(burst))
}
