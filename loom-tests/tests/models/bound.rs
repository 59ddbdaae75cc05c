//! Threads whose ticks differ keep the bound `burst + rate * (b - a)` together, over every interval
//! of every execution.

use tollgate_audit::Bound;
use tollgate_loom_tests::Wrong;
use tollgate_loom_tests::prelude::*;

#[test]
fn it_holds_at_different_ticks() {
    let name = "bound::it_holds_at_different_ticks, token bucket";
    samples::bucket(words::cell).holds(name, Some(3), suite::the_bound_at_different_ticks);
    let name = "bound::it_holds_at_different_ticks, GCRA";
    let spaced = samples::spaced(words::cell).at(20, 22);
    spaced.holds(name, Some(3), suite::the_bound_at_different_ticks);
    let name = "bound::it_holds_at_different_ticks, rounding bucket";
    samples::rounding_bucket(words::cell).holds(name, Some(3), suite::the_bound_at_different_ticks);
}

#[test]
fn broken_words_break_it() {
    let (name, why) = ("bound::compares and stores", "no order");
    samples::bucket(words::stores).fails(name, why, Some(3), suite::the_bound_at_different_ticks);
    let name = "bound::exchanges unconditionally";
    let spaced = samples::spaced(words::overwrites).at(20, 22);
    spaced.fails(name, why, Some(3), suite::the_bound_at_different_ticks);
}

#[test]
fn a_single_permit_too_many_is_found() {
    // The bucket grants 2 at once, but its bound allows 1.
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(1);
    let bound = Bound::of_quota(quota).expect("a quota");
    let (name, why) = ("bound::one permit too many", "more than was promised");
    let subject = samples::bucket(words::cell).promising(bound);
    subject.fails(name, why, Some(3), suite::the_bound_at_different_ticks);
}

/// The limiter accepts a caller's older tick, and goes back to it.
#[test]
fn a_limiter_that_goes_back_in_time_breaks_it() {
    let quota: Quota = "1/2ns burst 2".parse().expect("a quota");
    let bucket = TokenBucket::new(quota).expect("a quota");
    let turns_back = |bucket: &TokenBucket, word: u64, now: Tick, n| {
        bucket.step(word.min(now.as_nanos() + 2), now, n)
    };
    let subject = Subject::new(move || Wrong(bucket, turns_back)).at(20, 25);
    let name = "bound::turns back to an older tick";
    let why = "an admission lowered the word";
    subject.fails(name, why, Some(3), suite::the_bound_at_different_ticks);
}
