//! After a change of quota a bucket has exactly the permits that it had, and a larger bucket grants
//! them in any split. Keys and leases grant whole bursts too.

use tollgate::traits::{DebtLimiter, GiveBackLimiter};
use tollgate::{Adjustable, Keep, Keyed, TryAcquire};

use crate::support::*;
use crate::whole_burst::{any_tick, bucket, quotas, takes_all};

/// Takes permits one by one, or in a few parts if there are many.
#[track_caller]
fn grants_exactly(limiter: &impl TryAcquire, left: u64, now: Tick, label: &str) {
    let part = |left| if left > 20 { left / 2 } else { 1 };
    takes_all(limiter, left, now, label, part);
}

/// Returns pairs of quotas of the table.
fn pairs(random: &mut Random) -> Vec<[Quota; 2]> {
    let all: Vec<_> = quotas().collect();
    let any = |random: &mut Random| all[random.below(all.len() as u64) as usize];
    let pairs = all.iter().map(|quota| [*quota, any(random)]);
    pairs.collect()
}

#[test]
fn a_changed_quota_keeps_exactly_the_permits() {
    let mut random = Random(0x0070_11a7_eb21);
    for (kind, [old, new]) in pairs(&mut random).into_iter().enumerate() {
        let (now, n) = (any_tick(&mut random), random.below(2 * old.burst_size()));
        let changed = |keep| {
            let limiter = Adjustable::starting_at(bucket(old, kind as u64), NoClock, now);
            assert_eq!(limiter.charge_at(n, now).n(), n);
            limiter.at(now).set_quota(new, keep).expect("a quota");
            limiter
        };
        let label = format!("{n} taken at {now:?}, {old} becomes {new}");
        let left = old.burst_size().saturating_sub(n);
        let debt = n.saturating_sub(old.burst_size());
        let (large, small) = (u128::from(new.burst_size()), u128::from(old.burst_size()));
        let part = (u128::from(left) * large / small) as u64;
        let as_is = left.min(new.burst_size());
        let used = (
            new.burst_size().saturating_sub(n),
            n.saturating_sub(new.burst_size()),
        );
        for (keep, left, debt) in [
            (Keep::AsIs, as_is, debt),
            (Keep::Used, used.0, used.1),
            (Keep::Scaled, part, debt),
            (Keep::Fresh, new.burst_size(), 0),
        ] {
            let limiter = changed(keep);
            assert_eq!(limiter.charge_at(0, now).debt(), debt, "{keep:?}: {label}");
            grants_exactly(&limiter, left, now, &format!("{keep:?}: {label}"));
        }
    }
}

/// A key of a table is a bucket too. One table has all quotas in turn: each change finds another
/// key partly used.
#[test]
fn each_key_grants_the_burst_at_one_tick() {
    let mut random = Random(0x0070_11a7_eb22);
    let pairs = pairs(&mut random);
    let table = Keyed::with_clock(bucket(pairs[0][0], 2), 10_000, NoClock).expect("a table");
    let mut now = tick(1_000_000_007);
    for (turn, [old, new]) in pairs.into_iter().enumerate() {
        now = tick(now.as_nanos() + random.below(1_000_000_007));
        let set = table.set_plan_quota_at(0, old, Keep::AsIs, now);
        set.expect("a quota");
        let label = format!("{old} becomes {new} at {now:?}");
        let fresh = table.key(&(turn, "fresh"));
        grants_exactly(&fresh, old.burst_size(), now, &label);
        assert_eq!(fresh.refund_at(u64::MAX, now), old.burst_size(), "{label}");
        assert_eq!(fresh.available_at(now), old.burst_size(), "{label}");
        let used = table.key(&(turn, "used"));
        // A key that has taken nothing is not in the table.
        let n = 1 + random.below(old.burst_size());
        assert_eq!(used.charge_at(n, now).n(), n, "{label}");
        table
            .set_plan_quota_at(0, new, Keep::AsIs, now)
            .expect("a quota");
        let left = (old.burst_size() - n).min(new.burst_size());
        grants_exactly(&used, left, now, &format!("{n} taken, {label}"));
        for key in ["fresh", "used"] {
            table.key(&(turn, key)).remove();
        }
    }
}

/// Leases draw from a bucket whose burst is smaller by what may be lent.
#[test]
fn leases_draw_the_burst_at_one_tick() {
    let mut random = Random(0x0070_11a7_eb23);
    for (kind, quota) in quotas().enumerate() {
        let burst = quota.burst_size().max(2);
        let total = 1 + random.below(burst - 1);
        let clock = ManualClock::at(any_tick(&mut random));
        let leases = Leases::with_clock(bucket(quota.burst(burst), kind as u64), total, clock);
        let leases = leases.expect("leases");
        let mut lease = leases.lease(1 + random.below(total));
        let granted = (0..=burst).take_while(|_| lease.try_acquire().is_ok());
        let actual = granted.count() as u64;
        assert_eq!(actual, burst - total, "{quota}, {total} lent");
        assert!(leases.try_acquire().is_err(), "{quota}");
    }
}
