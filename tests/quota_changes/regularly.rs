//! A quota that is changed a little, again and again: those who ask go on getting what it promises.

use std::time::Duration;

use tollgate::{Adjustable, AnyAlgorithm, Keep, LeakyBucket, NoClock, Quota, Requota, Tick};

/// What is granted in an hour to callers that ask four times a second, where the quota has a permit more and one
/// less in turns, with every so many asked.
fn hour(text: &str, every: Option<u64>, keep: Keep) -> u64 {
    let algorithm: AnyAlgorithm = text.parse().expect("an algorithm");
    let quota = algorithm.quota();
    let gate = Adjustable::starting_at(algorithm, NoClock, Tick::ZERO);
    let (mut granted, mut changes) = (0, 0);
    for quarter in 0..4 * 3600_u64 {
        let now = Tick::from_nanos(quarter * 250_000_000 + 1_000_000);
        let view = gate.at(now);
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
fn a_quota_that_moves_a_little_starves_nobody() {
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
        let untouched = hour(text, None, Keep::AsIs);
        // Each minute, a little more often, and each second.
        for every in [240, 220, 120, 40, 4] {
            let granted = hour(text, Some(every), Keep::AsIs);
            assert!(
                granted >= untouched * 9 / 10,
                "{granted} of {untouched}, changed each {every}: {text}"
            );
        }
        // Scaled, a change may lose what is less than a permit.
        for every in [240, 220] {
            let granted = hour(text, Some(every), Keep::Scaled);
            assert!(
                granted >= untouched * 8 / 10,
                "{granted} of {untouched}, scaled each {every}: {text}"
            );
        }
    }
}

fn queue(burst: u64) -> LeakyBucket {
    LeakyBucket::queue(Quota::per_second(10).burst(burst)).expect("a quota")
}

#[test]
fn in_a_queue_that_grows_nobody_waits_for_nobody() {
    for keep in [Keep::AsIs, Keep::Scaled] {
        let gate = Adjustable::starting_at(queue(1), NoClock, Tick::ZERO);
        let view = gate.at(Tick::from_nanos(100_000_000_000));
        view.set_quota(Quota::per_second(10).burst(1000), keep)
            .expect("a quota");
        assert_eq!(view.level().ceil(), 0);
        let granted = view.try_acquire().expect("it is empty");
        assert_eq!(granted.delay(), Duration::ZERO);
    }
}

#[test]
fn in_a_queue_that_shrinks_those_in_line_count() {
    for keep in [Keep::AsIs, Keep::Scaled] {
        let gate = Adjustable::starting_at(queue(10), NoClock, Tick::ZERO);
        let now = Tick::from_nanos(5);
        let view = gate.at(now);
        let ends = (0..8).map(|_| view.try_acquire().expect("there is room").due());
        let last = ends.max().expect("eight");
        view.set_quota(Quota::per_second(10).burst(2), keep)
            .expect("a quota");
        assert_eq!(view.level().ceil(), 8);
        // Until one of the two has left nobody comes in, and who does leaves after the last.
        assert!(view.try_acquire().is_err());
        let next = gate.reserve_at(1, now).expect("its turn comes");
        assert_eq!(next.due(), last.saturating_add(Duration::from_millis(100)));
    }
}
