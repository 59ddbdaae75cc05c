//! A burst is a burst: a fresh bucket grants its burst in any split at one tick, and says exactly
//! what is left, at every rate. Then the next permit comes when the denial says. Over an interval
//! of `d` the bucket grants at most what the rate allows in `d` and one unit more, which is at most
//! a quarter of a nanosecond.

mod bound;
mod changes;
mod verbs;

use tollgate::TryAcquire;

use crate::support::algorithms::sharded;
use crate::support::*;

/// The periods of the table: a second, a minute, an hour and a day.
const PERIODS: [u64; 4] = [SECOND, 60 * SECOND, 3600 * SECOND, DAY];

/// Returns the quotas from 1 to 1000 a second, minute, hour and day, and two of a few permits a
/// nanosecond. The burst is `n`.
fn quotas() -> impl Iterator<Item = Quota> {
    let slow = PERIODS.into_iter();
    let slow = slow.flat_map(|period| (1..=1000).map(move |n| per_ns(n, period)));
    let fast = [3_000_000_001, 9_999_999_999].map(Quota::per_second);
    slow.chain(fast.map(|quota| quota.burst(1000)))
}

/// Returns bursts for this quota: its own, few permits, and more than come in a period.
fn bursts(quota: Quota) -> impl Iterator<Item = Quota> {
    let n = quota.burst_size();
    [n, 1, 2, 3, n + 1]
        .map(|burst| quota.burst(burst))
        .into_iter()
}

/// Returns a tick anywhere in the first years, so that all fractions of a unit occur.
fn any_tick(random: &mut Random) -> Tick {
    tick(random.below(4 * 365 * DAY))
}

/// Returns a bucket of one of the kinds that make a token bucket's decisions.
fn bucket(quota: Quota, kind: u64) -> AnyAlgorithm {
    let algorithm = match kind % 4 {
        0 => tollgate::Gcra::new(quota).map(AnyAlgorithm::from),
        1 => tollgate::LeakyBucket::meter(quota).map(AnyAlgorithm::from),
        _ => tollgate::TokenBucket::new(quota).map(AnyAlgorithm::from),
    };
    algorithm.expect("a bucket")
}

/// Takes the permits that are left, in the parts that `part` returns, until none is left. Checks
/// what each grant says: of shards, what is left in those that it came from.
#[track_caller]
fn takes_all(
    limiter: &impl TryAcquire,
    mut left: u64,
    now: Tick,
    label: &str,
    mut part: impl FnMut(u64) -> u64,
) {
    assert_eq!(limiter.available_at(now), left, "{label} at {now:?}");
    while left > 0 {
        let n = part(left);
        let granted = limiter.try_acquire_n_at(n, now);
        let granted = granted.unwrap_or_else(|denied| panic!("{n} of {left}: {label}: {denied}"));
        left -= n;
        let said = granted.remaining();
        let is_part = label.starts_with("shards") && said < left;
        assert!(said == left || is_part, "{said} of {left}: {label}");
        assert_eq!(limiter.available_at(now), left, "{label} at {now:?}");
    }
    assert!(limiter.try_acquire_n_at(1, now).is_err(), "{label}");
}

/// Takes permits one by one. Then the next permit comes when the denial says, and not a nanosecond
/// sooner.
fn drain_one_by_one(quota: Quota, now: Tick, kind: u64) {
    let limiter = Limiter::unstarted(bucket(quota, kind), NoClock);
    let (burst, label) = (quota.burst_size(), quota.to_string());
    takes_all(&limiter, burst, now, &label, |_| 1);
    let denied = limiter.try_acquire_n_at(1, now).expect_err(&label);
    let wait = denied.retry_after().expect("in time");
    let due = now.saturating_add(wait);
    let before = tick(due.as_nanos() - 1);
    assert!(
        limiter.try_acquire_n_at(1, before).is_err(),
        "{quota}: {wait:?}"
    );
    assert!(
        limiter.try_acquire_n_at(1, due).is_ok(),
        "{quota}: {wait:?}"
    );
    // One permit came, or as many as the rate makes in a nanosecond.
    let most = quota.permits() / quota.period().as_nanos() as u64;
    assert!(limiter.available_at(due) <= most, "{quota}: {wait:?}");
}

/// Once, 13 a second granted 12, and said that 11 were left after the first.
#[test]
fn each_bucket_grants_its_burst_one_by_one() {
    let mut random = Random(0x0070_11a7_eb01);
    for (kind, quota) in quotas().enumerate() {
        for quota in bursts(quota) {
            drain_one_by_one(quota, any_tick(&mut random), kind as u64);
        }
    }
}

#[test]
fn each_bucket_grants_its_burst_in_any_split() {
    let mut random = Random(0x0070_11a7_eb02);
    for (kind, quota) in quotas().enumerate() {
        for quota in bursts(quota) {
            let (now, burst) = (any_tick(&mut random), quota.burst_size());
            let limiter = Limiter::unstarted(bucket(quota, kind as u64), NoClock);
            let part = |left| 1 + random.upto(left - 1);
            takes_all(&limiter, burst, now, &quota.to_string(), part);
        }
    }
}

/// The shards have fractions of permits, which add up to the burst.
#[test]
fn shards_grant_the_burst_in_any_split() {
    let mut random = Random(0x0070_11a7_eb03);
    for (kind, quota) in quotas().enumerate() {
        for shards in [1, 2, 7] {
            let burst = quota.burst_size().max(shards);
            let (quota, now) = (quota.burst(burst), any_tick(&mut random));
            let limiter = sharded(bucket(quota, kind as u64), shards as usize);
            // One by one for small bursts, otherwise in about thirty parts.
            let part = |left| (1 + random.below(1 + burst / 16)).min(left);
            let label = format!("shards: {shards}, {quota}");
            takes_all(&limiter, burst, now, &label, part);
        }
    }
}
