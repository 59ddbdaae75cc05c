//! The state after a change of the quota, and after a refused one.

use tollgate::error::QuotaError;

use super::{KEEPS, adjustable, all};
use crate::support::*;

const NOW: Tick = tick(86_400 * SECOND + 7);

/// Returns a limiter from which `n` permits were taken or charged.
fn used(algorithm: AnyAlgorithm, n: u64) -> Adjustable<AnyAlgorithm, NoClock> {
    let limiter = adjustable(algorithm, NOW);
    limiter.at(NOW).charge(n);
    limiter
}

#[test]
fn a_change_leaves_the_state_that_its_keep_describes() {
    let most = |algorithm: &AnyAlgorithm| algorithm.available(0, NOW);
    let all = all().map(|algorithm| (algorithm, algorithm.to_string()));
    let all: Vec<_> = all.collect();
    for (old, old_text) in &all {
        for (new, new_text) in &all {
            let either = |part| old_text.contains(part) || new_text.contains(part);
            // Fractions may be lost at inexact rates. A tolerance holds half a permit more than its
            // burst. A period that began with a hit begins at a quantum, slightly later.
            let begins_late = old_text.contains("greedy") || old_text.contains("first-hit");
            let lost = u64::from(either("13/s") || either("tolerance") || begins_late);
            let room = used(*new, u64::MAX).at(NOW).charge(0).debt();
            for n in 0..2 * most(old).min(30) {
                for keep in KEEPS {
                    let limiter = used(*old, n);
                    let view = limiter.at(NOW);
                    let (had, owed) = (view.available(), view.charge(0).debt());
                    view.set(*new, keep);
                    let (right, owed, more) = match keep {
                        Keep::AsIs => (had.min(most(new)), owed, 0),
                        Keep::Scaled => {
                            let more = u64::from(old_text.contains("tolerance"));
                            (had * most(new) / most(old), owed, more)
                        }
                        Keep::Used => {
                            let (has, used) = (most(new), most(old) + owed - had);
                            (has.saturating_sub(used), used.saturating_sub(has), 0)
                        }
                        Keep::Fresh => (new.quota().initial_permits(), 0, 0),
                    };
                    let (has, owes) = (view.available(), view.charge(0).debt());
                    assert!(
                        (right.saturating_sub(lost)..=right + more).contains(&has)
                            && (owed.min(room)..=owed + lost).contains(&owes),
                        "{keep:?}: {has} of {right}, owes {owes} of {owed}, {old} to {new}"
                    );
                    assert_eq!((limiter.version(), limiter.algorithm()), (1, *new));
                }
            }
        }
    }
}

#[test]
fn a_refused_quota_changes_nothing() {
    for algorithm in all() {
        for keep in KEEPS {
            let limiter = used(algorithm, 2);
            let view = limiter.at(NOW);
            let granted = view.take_up_to(1);
            let (had, level) = (view.available(), view.level());
            for (quota, error) in [
                (Quota::per_second(0), QuotaError::ZeroPermits),
                (Quota::per(5, Duration::ZERO), QuotaError::ZeroPeriod),
            ] {
                assert_eq!(view.set_quota(quota, keep), Err(error), "{algorithm}");
            }
            let huge = Quota::per_second(1).burst(u64::MAX);
            assert!(view.set_quota(huge, keep).is_err(), "{algorithm}");
            assert_eq!((view.available(), view.level()), (had, level));
            assert_eq!((limiter.version(), limiter.algorithm()), (0, algorithm));
            let n = granted.n();
            assert_eq!(view.undo(granted), n);
        }
    }
}

#[test]
fn the_same_quota_changes_nothing_except_with_keep_fresh() {
    for algorithm in all() {
        let limiter = used(algorithm, 2);
        let view = limiter.at(NOW);
        let (quota, had) = (algorithm.quota(), view.available());
        for (keep, version, has) in [
            (Keep::AsIs, 0, had),
            (Keep::Scaled, 0, had),
            (Keep::Used, 0, had),
            (Keep::Fresh, 1, quota.initial_permits()),
        ] {
            view.set_quota(quota, keep).expect("it is one");
            let actual = (limiter.version(), view.available());
            assert_eq!(actual, (version, has), "{algorithm}");
        }
    }
}

#[test]
fn a_grant_from_before_a_change_returns_nothing() {
    for algorithm in all() {
        for keep in KEEPS {
            let limiter = adjustable(algorithm, NOW);
            let view = limiter.at(NOW);
            let actual = view.available();
            assert_eq!(actual, algorithm.quota().initial_permits(), "{algorithm}");
            let before = view.take_up_to(2);
            let quota = Quota::per(algorithm.quota().permits(), Duration::from_secs(61));
            view.set_quota(quota, keep).expect("a quota");
            // The other options stay.
            let actual = Ok(limiter.algorithm());
            assert_eq!(actual, algorithm.with_quota(quota), "{algorithm}");
            let had = view.available();
            let actual = (view.undo(before), view.available());
            assert_eq!(actual, (0, had), "{algorithm}");
            let after = view.take_up_to(1);
            let n = after.n();
            assert_eq!(view.undo(after), n, "{algorithm}");
            // Nor does a grant from two changes before, which has the same slot.
            let after = view.take_up_to(1);
            view.set(algorithm, keep);
            view.set_quota(quota, keep).expect("a quota");
            assert_eq!(view.undo(after), 0, "{algorithm}");
        }
    }
}

#[test]
fn adjustable_implements_the_limiter_traits() {
    fn drain(limiter: &impl tollgate::traits::DebtLimiter<Clock = NoClock>) -> u64 {
        limiter.charge_at(1, NOW);
        limiter.take_up_to_at(100, NOW).n()
    }
    let limiter = adjustable(algorithm("token-bucket 10/s"), NOW);
    assert_eq!((drain(&&limiter), limiter.at(NOW).available()), (9, 0));
    assert!(Adjustable::<AnyAlgorithm>::is_lock_free() || !cfg!(target_arch = "aarch64"));
}
