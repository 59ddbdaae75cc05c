//! Threads whose ticks differ keep the bound `burst + rate * (b - a)` together, over every interval
//! of every execution.

use tollgate_audit::Bound;
use tollgate_loom_tests::Wrong;
use tollgate_loom_tests::prelude::*;

#[test]
fn it_holds_at_different_ticks() {
    let name = "bound::it_holds_at_different_ticks, token bucket";
    model(name, Some(3), |run| {
        suite::the_bound_at_different_ticks(&samples::bucket(words::cell), run);
    });
    model("bound::it_holds_at_different_ticks, GCRA", Some(3), |run| {
        suite::the_bound_at_different_ticks(&samples::spaced(words::cell).at(20, 22), run);
    });
    let name = "bound::it_holds_at_different_ticks, rounding bucket";
    model(name, Some(3), |run| {
        suite::the_bound_at_different_ticks(&samples::rounding_bucket(words::cell), run);
    });
}

#[test]
fn broken_words_break_it() {
    broken("bound::compares and stores", "no order", Some(3), |run| {
        suite::the_bound_at_different_ticks(&samples::bucket(words::stores), run);
    });
    let name = "bound::exchanges unconditionally";
    broken(name, "no order", Some(3), |run| {
        suite::the_bound_at_different_ticks(&samples::spaced(words::overwrites).at(20, 22), run);
    });
}

#[test]
fn a_single_permit_too_many_is_found() {
    // The bucket grants 2 at once, but its bound allows 1.
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(1);
    let bound = Bound::of_quota(quota).expect("a quota");
    let why = "more than was promised";
    broken("bound::one permit too many", why, Some(3), |run| {
        let subject = samples::bucket(words::cell).promising(bound);
        suite::the_bound_at_different_ticks(&subject, run);
    });
}

/// The limiter accepts a caller's older tick, and goes back to it.
#[test]
fn a_limiter_that_goes_back_in_time_breaks_it() {
    let quota: Quota = "1/2ns burst 2".parse().expect("a quota");
    let bucket = TokenBucket::new(quota).expect("a quota");
    let why = "an admission lowered the word";
    broken("bound::turns back to an older tick", why, Some(3), |run| {
        let turns_back = |bucket: &TokenBucket, word: u64, now: Tick, n| {
            bucket.step(word.min(now.as_nanos() + 2), now, n)
        };
        let subject = Subject::new(move || Wrong(bucket, turns_back));
        suite::the_bound_at_different_ticks(&subject.at(20, 25), run);
    });
}
