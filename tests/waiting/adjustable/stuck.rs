//! A debt that can't be paid back before the clock ends, under another quota.

use super::{KEEPS, adjustable, all};
use crate::support::*;

const NOW: Tick = tick(12_345_678_901);

fn is_stuck<T>(answer: Result<T, Denied>) -> bool {
    matches!(answer, Err(Denied::Stuck { .. }))
}

/// `Keep::Fresh` cancels the debt. The others keep it, and a later refund or reset still helps.
#[test]
fn only_a_fresh_start_under_a_new_quota_cancels_a_debt() {
    let mut stuck = 0;
    for algorithm in all() {
        for keep in KEEPS {
            for refunds in [false, true] {
                let limiter = adjustable(algorithm, NOW);
                let view = limiter.at(NOW);
                let granted = view.take_up_to(1);
                let charged = view.settle(granted, u64::MAX).charged;
                let was_stuck = is_stuck(view.try_acquire());
                stuck += u64::from(was_stuck);
                let quota = with_one_more(&algorithm);
                view.set_quota(quota, keep).expect("a quota");
                let all = adjustable(limiter.algorithm(), NOW).at(NOW).available();
                if keep == Keep::Fresh {
                    assert_eq!(view.available(), all, "{algorithm}");
                    continue;
                }
                assert_eq!(view.available(), 0, "{algorithm}, {keep:?}");
                // A faster quota may be able to pay the debt back.
                let denied = view.try_acquire();
                assert!(denied.is_err(), "{algorithm}, {keep:?}");
                assert!(was_stuck || !is_stuck(denied), "{algorithm}, {keep:?}");
                match refunds {
                    true => drop(view.refund(charged.saturating_add(all))),
                    false => view.reset(),
                }
                let soon = limiter.at(NOW.saturating_add(Duration::from_nanos(1)));
                assert!(soon.try_acquire().is_ok(), "{algorithm}, {keep:?}");
            }
        }
    }
    assert!(stuck > 30, "{stuck}");
}

/// The same burst, and one more permit in each period.
fn with_one_more(algorithm: &AnyAlgorithm) -> Quota {
    let quota = algorithm.quota();
    let more = Quota::per(quota.permits() + 1, quota.period());
    match quota.burst_size() == quota.permits() {
        true => more,
        false => more.burst(quota.burst_size()),
    }
}
