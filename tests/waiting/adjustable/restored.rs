//! Saving and restoring the state, also with another quota.

use super::{adjustable, all};
use crate::support::*;

const NOW: Tick = tick(12_345_678_901);
const LATER: Tick = tick(12_945_678_901);

#[test]
fn a_restored_limiter_decides_as_one_that_never_stopped() {
    for algorithm in all() {
        let kept = adjustable(algorithm, Tick::ZERO);
        let _ = kept.at(NOW).take_up_to(7);
        let bytes = kept.at(NOW).snapshot();
        let restored = adjustable(algorithm, Tick::ZERO);
        let _ = restored.at(NOW).take_up_to(2);
        let view = restored.at(LATER);
        view.restore_after(&bytes, LATER.saturating_since(NOW))
            .expect("whole");
        assert_eq!(restored.version(), 0);
        for step in 0..30 {
            let now = LATER.saturating_add(Duration::from_millis(97 * step));
            let decided = [&kept, &restored].map(|limiter| {
                let view = limiter.at(now);
                (view.try_acquire(), view.available(), view.time_until(3))
            });
            let [expected, found] = decided;
            assert_eq!(expected, found, "{algorithm}, step {step}");
        }
    }
}

/// Takes some permits, and then changes the quota.
fn use_up(algorithm: AnyAlgorithm) -> Adjustable<AnyAlgorithm, NoClock> {
    let limiter = adjustable(algorithm, NOW);
    let view = limiter.at(NOW);
    let _ = view.take_up_to(3);
    let quota = algorithm.quota();
    let quota = Quota::per(quota.permits() + 1, quota.period());
    view.set_quota(quota, Keep::AsIs).expect("a larger one");
    limiter
}

#[test]
fn a_restore_keeps_the_current_quota_and_carries_the_state_over_to_it() {
    for old in all() {
        let bytes = use_up(old).at(NOW).snapshot();
        for new in all() {
            let limiter = adjustable(algorithm("token-bucket 1/s"), NOW);
            let view = limiter.at(NOW);
            view.set(new, Keep::Fresh);
            view.restore_after(&bytes, Duration::ZERO).expect("whole");
            assert_eq!(limiter.quota(), new.quota());
            let changed = use_up(old);
            changed.at(NOW).set(new, Keep::AsIs);
            for step in 0..30 {
                let now = NOW.saturating_add(Duration::from_millis(97 * step));
                let (found, expected) = (limiter.at(now), changed.at(now));
                assert_eq!(found.available(), expected.available(), "{old} to {new}");
                let actual = found.time_until(1);
                assert_eq!(actual, expected.time_until(1), "{old} to {new}");
            }
        }
    }
}

#[test]
fn a_restored_limiter_returns_nothing_for_a_grant_from_before_the_last_change() {
    let limiter = adjustable(algorithm("token-bucket 10/h"), NOW);
    let view = limiter.at(NOW);
    let granted = view.try_acquire_n(4).expect("fresh");
    let bytes = view.snapshot();
    let quota = Quota::per_hour(20);
    view.set_quota(quota, Keep::AsIs).expect("a quota");
    view.restore_after(&bytes, Duration::ZERO).expect("whole");
    assert_eq!((view.undo(granted), view.available()), (0, 6));
}
