//! The hint of a sharded limiter, by which a thread denies a request because another thread found
//! no permits. Such a denial hides no permit that has come back, and its retry time is right.

use tollgate_loom_tests::prelude::*;

use super::shards::{
    NOW, Scenario, balance, bucket, charge, large, refund, reset, split, take, take_at,
    take_from_second, undo,
};

/// The tick of the next permit.
const NEXT: u64 = NOW + 2;

/// Makes a scenario on two shards. At its end, single permits are taken until a request is denied.
/// The hint applies to these requests.
fn drained(algorithm: fn() -> AnyAlgorithm) -> Scenario {
    drained_at(algorithm, 2, NOW)
}

fn drained_at(algorithm: fn() -> AnyAlgorithm, shards: usize, tick: u64) -> Scenario {
    split(algorithm, shards).after(move |limiter, _| {
        let mut answers = Vec::new();
        while !matches!(answers.last(), Some(Answer::Denied(_))) {
            answers.push(take_at(1, 0, tick).act(limiter, &mut None));
        }
        answers
    })
}

/// Checks that all permits that came back were taken.
fn all_is_taken(limit: u64) -> impl Fn(&ScenarioOutcome) {
    move |played| {
        let (taken, back) = balance(played);
        assert_eq!(taken, limit + back, "permits are hidden: {back} came back");
    }
}

/// Permits come back in several ways while another thread finds none.
fn come_back(run: &mut Run) {
    for back in [undo(), refund(1)] {
        let scenario = drained(bucket).rule(all_is_taken(3));
        let scenario = scenario.actor_after(&[take(3, 0)], &[back, take(1, 1)]);
        scenario.actor(&[take(1, 0)]).explore_rules(run);
    }
    // A reset adds a burst.
    let scenario = drained(bucket).rule(all_is_taken(6));
    let scenario = scenario.actor_after(&[take(3, 0)], &[reset(), take(1, 1)]);
    scenario.actor(&[take(1, 0)]).explore_rules(run);
}

/// A thread takes a permit of one shard, finds none in the other, and rolls back; meanwhile another
/// thread finds none in either.
fn is_rolled_back(run: &mut Run) {
    let scenario = drained(large).rule(all_is_taken(8));
    let scenario = scenario.actor_after(&[take(8, 0), refund(2)], &[take(2, 0)]);
    scenario
        .actor(&[take_from_second(), take(1, 1)])
        .explore_rules(run);
}

/// The hint's tick has passed. One thread takes the permit of that tick. Another asks at the tick
/// before, and its denial must not name a tick before that of the next permit.
fn is_over(run: &mut Run) {
    let scenario = drained(bucket).rule(|played| {
        let (taken, _) = balance(played);
        assert_eq!(taken, 4, "one came at the next tick");
    });
    let before = [take(3, 0), take(1, 0)];
    let scenario = scenario.actor_after(&before, &[take_at(1, 0, NEXT)]);
    let scenario = scenario.actor(&[take_at(1, 1, NEXT), take(1, 1)]);
    scenario.explore_rules(run);
}

/// One thread finds that the permit of the next tick is taken. Another returns that permit and asks
/// at this tick, so it finds the same next tick again. With a single shard no permit is lost.
fn is_the_same_again(run: &mut Run) {
    let scenario = drained_at(bucket, 1, NEXT).rule(all_is_taken(4));
    let scenario = scenario.actor_after(&[take(3, 0), take(1, 0)], &[take_at(1, 0, NEXT)]);
    let gives_back = [take_at(1, 1, NEXT), undo(), take(1, 1)];
    scenario.actor(&gives_back).explore_rules(run);
}

/// A charge moves the tick at which a permit comes. No denial after the charge names the old tick.
fn is_charged(run: &mut Run) {
    let scenario = drained(bucket).rule(|played| {
        let last = played.all().last().expect("a denial ends it");
        // One permit comes every 2 ns. Two are owed, so the caller waits for the third.
        let wait = Some(Duration::from_nanos(6));
        assert!(
            matches!(last, Answer::Denied(denied) if denied.retry_after() == wait),
            "an outdated tick was returned: {last:?}"
        );
    });
    let scenario = scenario.actor_after(&[take(3, 0)], &[charge(2)]);
    scenario.actor(&[take(1, 0)]).explore_rules(run);
}

const SOURCE: Source = Source(&["sharded/hint.rs"]);
/// The exchange of a noted epoch for a tick.
const SET: &str = "self.word.compare_exchange(noted.0, due";
const HIDDEN: &str = "permits are hidden";

#[test]
fn no_permit_that_came_back_is_hidden() {
    let name = "hint::no_permit_that_came_back_is_hidden";
    let sites = SOURCE.sites([
        "let word = self.word.load(Ordering::Acquire)",
        "self.word.swap(next, Ordering::Release)",
    ]);
    model(name, deeper(2, 3), come_back)
        .bound(Some(3))
        .finds([Fault::Blind(SOURCE.site(SET))], HIDDEN)
        .relaxed(sites, HIDDEN);
}

#[test]
fn rolled_back_permits_are_not_hidden() {
    let name = "hint::rolled_back_permits_are_not_hidden";
    model(name, Some(3), is_rolled_back).finds([Fault::Blind(SOURCE.site(SET))], HIDDEN);
}

#[test]
fn a_tick_that_is_over_hides_nothing() {
    let name = "hint::a_tick_that_is_over_hides_nothing";
    model(name, Some(3), is_over);
    model(name, Some(3), is_the_same_again).finds([Fault::KeepsTheTickThatIsOver], HIDDEN);
}

#[test]
fn a_charge_invalidates_the_hint() {
    let why = "an outdated tick was returned";
    model("hint::a_charge_invalidates_the_hint", Some(3), is_charged)
        .finds([Fault::Blind(SOURCE.site(SET))], why);
}
