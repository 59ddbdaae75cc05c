//! A quota that changes slightly and often still grants its rate.

use super::adjustable;
use crate::support::*;

/// Returns what is granted in half an hour to callers that ask four times a second, while the quota
/// alternates between one permit more and one less, after every `every` requests.
fn half_an_hour(text: &str, every: Option<u64>, keep: Keep) -> u64 {
    let algorithm = algorithm(text);
    let quota = algorithm.quota();
    let limiter = adjustable(algorithm, Tick::ZERO);
    let (mut granted, mut changes) = (0, 0);
    for quarter in 0..4 * 1800 {
        let view = limiter.at(tick(quarter * SECOND / 4 + 1_000_000));
        if quarter > 0 && every.is_some_and(|every| quarter % every == 0) {
            changes += 1;
            let other = Quota::per(quota.permits() + changes % 2, quota.period());
            let other = match text.contains("burst") {
                true => other.burst(quota.burst_size()),
                false => other,
            };
            view.set_quota(other, keep).expect("a quota");
        }
        granted += view.take_up_to(3).n();
    }
    granted
}

#[test]
fn small_regular_changes_of_the_quota_starve_no_caller() {
    for text in [
        "token-bucket 10/min",
        "gcra 10/min burst 10",
        "leaky-queue 10/min",
        "fixed-window 10/min",
        "fixed-window 10/min first-hit",
        "sliding-window 10/min",
        "intervals 10/min",
        "intervals 10/min burst 10 greedy",
    ] {
        let untouched = half_an_hour(text, None, Keep::AsIs);
        // From every minute to every second. With `Scaled`, a change may lose less than a permit.
        for (keep, tenths, often) in [
            (Keep::AsIs, 9, &[240, 220, 120, 40, 4][..]),
            (Keep::Used, 9, &[240, 220, 120, 40, 4]),
            (Keep::Scaled, 8, &[240, 220]),
        ] {
            for every in often {
                let granted = half_an_hour(text, Some(*every), keep);
                assert!(
                    granted >= untouched * tenths / 10,
                    "{granted} of {untouched}, changed each {every}, {keep:?}: {text}"
                );
            }
        }
    }
}
