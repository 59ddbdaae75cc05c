//! Invalid input gets an answer, or an error that names the field. It never causes a panic or
//! exceeds the bound.

use tollgate::error::{LimiterError, QuotaError};

use crate::support::*;

fn several(plans: usize) -> Result<Keyed<TokenBucket, ManualClock>, LimiterError> {
    Keyed::with_plans(vec![bucket("5/h"); plans], 10, ManualClock::new())
}

#[test]
fn impossible_capacities_are_errors() {
    let made = |capacity| Keyed::new(bucket("5/h"), capacity).map(|_| ());
    assert_eq!(made(0), Err(LimiterError::ZeroCapacity));
    // More than there are addresses, and more than there is memory.
    let max = usize::MAX >> 6;
    for capacity in [usize::MAX, usize::MAX / 2, max + 1, max, max / 2, max >> 8] {
        let error = LimiterError::CapacityTooLarge { capacity, max };
        assert_eq!(made(capacity), Err(error));
        assert_eq!(error.field(), "capacity");
        assert!(error.to_string().contains(&capacity.to_string()), "{error}");
    }
    for capacity in [1, 2, 1000, 100_000] {
        assert_eq!(made(capacity), Ok(()));
    }
}

#[test]
fn too_few_or_too_many_plans_are_errors() {
    assert_eq!(several(0).map(|_| ()), Err(LimiterError::ZeroPlans));
    for plans in [1, 2, 8] {
        assert_eq!(several(plans).expect("a table").plans(), plans);
    }
    for plans in [9, 10, 1000] {
        let error = several(plans).map(|_| ()).expect_err("too many");
        let is_right = matches!(error, LimiterError::TooManyPlans { plans: 9.., max: 8 });
        assert!(is_right && error.field() == "plans", "{error}");
    }
    // From an endless iterator of plans, the constructor reads only as many as it needs to refuse
    // it.
    let endless = std::iter::repeat(bucket("5/h"));
    assert!(Keyed::with_plans(endless, 10, ManualClock::new()).is_err());
}

#[test]
fn empty_long_and_duplicate_plan_names_are_errors() {
    let made = |names: &[&str]| {
        let plans = names.iter().map(|name| (*name, bucket("5/h")));
        Keyed::with_named_plans(plans, 10, ManualClock::new())
    };
    let error = |names: &[&str]| {
        let error = made(names).map(|_| ()).expect_err("invalid names");
        assert!(!error.to_string().is_empty());
        (error.field(), error)
    };
    let long = "é".repeat(33);
    for (names, plan, length) in [
        (vec![""], 0, 0),
        (vec!["free", &long], 1, 66),
        (vec!["free", "paid", ""], 2, 0),
    ] {
        let max = 64;
        let right = LimiterError::PlanNameLength { plan, length, max };
        assert_eq!(error(&names), ("name", right));
    }
    for (names, plan, other) in [
        (vec!["free", "free"], 1, 0),
        (vec!["free", "paid", "staff", "paid"], 3, 1),
    ] {
        let right = LimiterError::SamePlanName { plan, other };
        assert_eq!(error(&names), ("name", right));
    }
    assert_eq!(error(&[]), ("plans", LimiterError::ZeroPlans));
    assert_eq!(error(&["free"; 9]).0, "plans");
    let names = ["free", "Free", &long[..64], "4", "5", "6", "7", " "];
    let limiter = made(&names).expect("eight names");
    assert!(limiter.plan_names().eq(names));
    for (plan, name) in names.into_iter().enumerate() {
        assert_eq!(limiter.plan_named(name), Some(plan));
        assert!(limiter.key(&plan).with_plan(plan).try_acquire().is_ok());
        assert_eq!(limiter.key(&plan).with_plan(plan).available(), 4);
    }
    assert!(limiter.plan_named("FREE").is_none() && limiter.plan_named("").is_none());
    let unnamed = several(2).expect("a table");
    assert_eq!(unnamed.plan_names().len(), 0);
}

/// Every request is denied permanently, and nothing is recorded.
#[test]
fn an_unknown_plan_grants_nothing() {
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let limiter = several(2).expect("a table").with_overflow(overflow);
        let granted = limiter.try_acquire("key").expect("it is fresh");
        for plan in [2, 7, 8, 9, 63, 255, 256, 257, 512, usize::MAX] {
            let of_plan = |key| limiter.key(key).with_plan(plan);
            let (keys, now) = (["key", "new"], limiter.key("key").now());
            let mut outcomes = [const { Err(Denied::busy(1)) }; 2];
            let done = limiter.try_acquire_batch_at(plan, &keys, &mut outcomes, now);
            done.expect("an outcome for each key");
            let zero = of_plan("new").try_acquire_n(0);
            for outcome in outcomes
                .into_iter()
                .chain([of_plan("key").try_acquire(), zero])
            {
                let denied = outcome.expect_err("no such plan");
                assert!(denied.is_permanent(), "{denied}");
            }
            let key = of_plan("new");
            assert!(key.ban(Tick::MAX).is_err() && key.reserve(1).is_err());
            let again = Granted::new(1, granted.at()).with_mark(granted.mark());
            let had = (key.take_up_to(3).n(), key.undo(again), key.refund(1));
            assert_eq!(had, (0, 0, 0));
            let no = LimiterError::NoSuchPlan { plan, plans: 2 };
            let changed = limiter.set_plan_quota(plan, Quota::per_hour(6), Keep::Fresh);
            assert_eq!((changed, limiter.plan_quota(plan)), (Err(no), Err(no)));
        }
        assert_eq!((limiter.len(), limiter.stats().tracked), (1, 1));
        assert_eq!(limiter.key("key").available(), 4);
    }
}

#[test]
fn a_batch_with_too_few_or_too_many_outcomes_is_an_error_and_decides_nothing() {
    let limiter = several(1).expect("a table");
    for (keys, outcomes) in [(0, 1), (1, 0), (3, 2), (2, 3), (40, 39)] {
        let asked = vec!["key"; keys];
        let mut said: Vec<_> = (0..outcomes).map(|_| Err(Denied::busy(7))).collect();
        let error = limiter.try_acquire_batch(&asked, &mut said);
        assert_eq!(error, Err(LimiterError::OutcomesLength { keys, outcomes }));
        assert!(said.iter().all(|said| *said == Err(Denied::busy(7))));
    }
    assert!(limiter.is_empty());
    assert_eq!(limiter.try_acquire_batch::<&str>(&[], &mut []), Ok(()));
}

#[test]
fn invalid_quotas_are_errors_and_change_nothing() {
    let limiter = several(1).expect("a table");
    let granted = limiter.try_acquire_n("key", 2).expect("it is fresh");
    for keep in KEEPS {
        for (quota, error) in [
            (Quota::per_second(0), QuotaError::ZeroPermits),
            (Quota::per(5, Duration::ZERO), QuotaError::ZeroPeriod),
            (Quota::per_second(5).burst(0), QuotaError::ZeroBurst),
        ] {
            assert_eq!(limiter.set_quota(quota, keep), Err(error.into()));
        }
        let too_large = Quota::per_day(1).burst(u64::MAX);
        assert!(limiter.set_quota(too_large, keep).is_err());
    }
    assert_eq!(limiter.plan_quota(0), Ok(Quota::per_hour(5)));
    let key = limiter.key("key");
    assert_eq!((key.available(), key.undo(granted)), (3, 2));
}

/// 0, 1, the largest numbers, and numbers around the limits of fields.
const COUNTS: [u64; 8] = [0, 1, 2, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];

/// Returns ticks from the clock's first to its last.
fn ticks() -> impl Iterator<Item = Tick> {
    let around = [0, 1, 1 << 32, 1 << 60, 1 << 61, 1 << 63, u64::MAX];
    let around = around.map(|at: u64| [at.saturating_sub(1), at]);
    around.into_iter().flatten().map(tick)
}

/// Calls every verb of every algorithm with every count, at ticks that go forwards and back, on new
/// and existing keys.
#[test]
fn any_count_at_any_tick_is_answered() {
    for algorithm in every() {
        let plans = [algorithm, algorithm];
        let limiter = Keyed::with_plans(plans, 10, ManualClock::new()).expect("a table");
        let mut answered = 0_u64;
        for (first, from) in ticks().enumerate() {
            for (second, to) in ticks().enumerate() {
                for (turn, n) in COUNTS.into_iter().enumerate() {
                    let key = (first * 7 + second * 3 + turn) % 50;
                    let view = limiter.key(&key).with_plan(turn % 2);
                    let granted = view.at(from).take_up_to(n);
                    let _ = view.at(to).try_acquire_n(n);
                    answered += view.at(from).available() + view.at(to).undo(granted);
                    answered += view.at(to).level().ceil() % 2;
                    let wait = view.at(from).time_until(n);
                    answered += u64::from(wait.is_some() && view.at(to).is_idle());
                    match (first + second + turn) % 16 {
                        0 => answered += view.at(to).charge(n).debt() % 2,
                        1 => answered += view.at(from).refund(n) % 2,
                        2 => view.ban(to).expect("there is room"),
                        3 => view.at(to).reset(),
                        4 => answered += u64::from(view.remove()),
                        _ => {}
                    }
                }
                let quota = Quota::per(1 + second as u64, algorithm.quota().period());
                let keep = KEEPS[second % 4];
                limiter
                    .set_plan_quota_at(0, quota, keep, to)
                    .expect("a quota");
            }
        }
        let stats = limiter.stats();
        assert!(answered > 0 && stats.tracked <= 50, "{stats:?} {algorithm}");
        assert_eq!((stats.evicted, stats.no_room), (0, 0));
    }
}
