//! A quota that changes while limiters use it. No decision mixes two quotas, no change is lost, and
//! no permit appears from nowhere. A thread that stops in the middle of a change stops no other.
//! The models find faults in this.

use tollgate::Adjustable;
use tollgate_loom_tests::calls;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::rules::grants;
use tollgate_loom_tests::total::Strict as Total;

type Tested = Adjustable<Total, NoClock>;
type Action = calls::Call<Tested>;
type Scenario = AnyScenario<Tested, Option<Granted>>;

/// The permits available at first.
const LIMIT: u64 = 3;
const NOW: Tick = Tick::from_nanos(5);

fn take(n: u64) -> Action {
    calls::take(n, NOW.as_nanos())
}

fn undo() -> Action {
    calls::undo(NOW.as_nanos())
}

fn refund(n: u64) -> Action {
    calls::refund(n, NOW.as_nanos())
}

fn available() -> Action {
    calls::available(NOW.as_nanos())
}

fn reset() -> Action {
    Action::new("reset", |limiter, _| {
        limiter.reset();
        Answer::Done
    })
}

fn set(limit: u64, keep: Keep) -> Action {
    Action::new(format!("set {limit}, {keep:?}"), move |limiter, _| {
        let quota = Quota::per(limit, Duration::from_secs(1));
        Answer::Is(limiter.at(NOW).set_quota(quota, keep).is_ok())
    })
}

fn as_is(limit: u64) -> Action {
    set(limit, Keep::AsIs)
}

/// Asks at the end how many permits are available, and what the quota is.
fn scenario() -> Scenario {
    Scenario::at(|| Adjustable::starting_at(Total::of(LIMIT), NoClock, NOW)).after(|limiter, _| {
        vec![
            Answer::Count(limiter.at(NOW).available()),
            Answer::Count(limiter.quota().permits()),
        ]
    })
}

/// Checks that changes that keep the permits as they are neither add nor lose any.
fn counted() -> Scenario {
    scenario().rule(|played| {
        let taken = taken(played);
        assert!(taken <= LIMIT, "{taken} permits of {LIMIT}");
    })
}

fn taken(played: &ScenarioOutcome) -> u64 {
    grants(played.all()).iter().map(|(_, n)| n).sum()
}

/// One actor changes the quota, the other runs each verb.
fn against_each_verb(run: &mut Run) {
    for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
        for limit in [1, 6] {
            for verb in [take(1), take(3), undo(), refund(1), available(), reset()] {
                let sets = scenario().actor(&[set(limit, keep)]);
                sets.actor_after(&[take(1)], &[verb]).explore(run);
            }
        }
    }
}

/// A denial and then a grant, against a change that adds permits.
fn against_denials(run: &mut Run) {
    let sets = counted().actor(&[as_is(1), as_is(4)]);
    sets.actor_after(&[take(1)], &[take(2), take(1)])
        .explore(run);
}

/// Two actors change the quota.
fn against_another(run: &mut Run) {
    let one = counted().actor(&[as_is(4)]);
    one.actor_after(&[take(1)], &[as_is(2)]).explore(run);
    let one = scenario().actor(&[set(6, Keep::Scaled)]);
    one.actor_after(&[take(1)], &[set(1, Keep::Fresh)])
        .explore(run);
}

/// An actor is two changes late: its parameters are overwritten while it reads them. It takes one
/// permit, or as many as are available only under the first change.
fn late(run: &mut Run) {
    for n in [1, 4] {
        let sets = counted().actor(&[as_is(4), as_is(5)]);
        sets.actor(&[take(n)]).explore_rules(run);
    }
}

/// Undoes a grant from before a change, during the change or after it.
fn undone(run: &mut Run) {
    let sets = counted().actor(&[as_is(4)]);
    sets.actor_after(&[take(2)], &[undo()]).explore(run);
}

/// A decision comes between the read and the exchange of a change. Also, the word is the same under
/// two versions.
fn carried(run: &mut Run) {
    let sets = counted().actor(&[as_is(2)]);
    sets.actor(&[take(1), take(1)]).explore(run);
    let fresh = scenario().actor(&[set(4, Keep::Fresh)]);
    fresh.actor(&[take(1)]).explore(run);
}

fn three(run: &mut Run) {
    let sets = counted().actor(&[as_is(2)]);
    let takes = sets.actor_after(&[take(1)], &[take(1)]);
    takes.actor(&[take(1)]).explore(run);
    let two_set = counted().actor(&[as_is(4)]).actor(&[as_is(5)]);
    two_set.actor(&[take(2)]).explore(run);
}

/// An actor that changes the quota, or decides, stops forever, before each of its operations in
/// turn. The other decides. The only lost permits are those that the smaller quota cannot hold, or
/// that were being taken. (Another actor that changes the quota would wait, so there is none.)
fn one_stops(run: &mut Run) {
    let casts: [(u64, [&[Action]; 2]); 3] = [
        (0, [&[as_is(6)], &[take(1), available(), take(1)]]),
        (1, [&[as_is(2)], &[take(2), take(1)]]),
        (2, [&[take(1)], &[as_is(2), take(1)]]),
    ];
    for (lost, [stops, goes_on]) in casts {
        let scenario = counted().actor(stops).actor(goes_on);
        let scenario = scenario.after(|limiter, _| {
            // Answered as a grant, but `taken` does not count it.
            let left = limiter.at(NOW).take_up_to(LIMIT);
            vec![Answer::Granted(left)]
        });
        let scenario = scenario.rule(move |played| {
            let taken = taken(played);
            assert!(taken + lost >= LIMIT, "{taken} permits of {LIMIT}");
        });
        scenario.explore_stopping(run, 0);
    }
}

const SOURCE: Source = Source(&["adjustable/ring.rs", "seq_lock.rs"]);
const NO_ORDER: &str = "no order";
const MIXED: &str = "two quotas are mixed | another quota";

#[test]
fn a_decision_is_of_one_version() {
    let name = "adjust::a_decision_is_of_one_version";
    model(name, Some(2), against_each_verb);
    let sites = SOURCE.sites(["load_versioned", "compare_exchange_weak(old, new, Ordering"]);
    model(name, Some(2), against_denials).relaxed(sites, MIXED);
    on_broken(name, Some(2), carried).stored(NO_ORDER);
}

#[test]
fn a_late_decision_mixes_nothing() {
    let for_ever = "exceeded maximum number of branches";
    // Loom may find either failure first: without the fence, a thread may also retry its read
    // forever.
    let either = format!("{MIXED} | {for_ever}");
    model("adjust::a_late_decision_mixes_nothing", Some(2), late)
        .finds([Fault::ReadsUnchecked], MIXED)
        .relaxed(SOURCE.sites(["self.version.store"]), for_ever)
        .relaxed(SOURCE.sites(["fence(Ordering::Release)"]), MIXED)
        .relaxed(SOURCE.sites(["fence(Ordering::Acquire)"]), &either);
}

#[test]
fn no_change_is_lost() {
    model("adjust::no_change_is_lost", Some(3), against_another);
}

#[test]
fn a_grant_from_before_a_change_is_not_undone() {
    let name = "adjust::a_grant_from_before_a_change_is_not_undone";
    model(name, Some(3), undone).finds([Fault::UndoesOldMarks], MIXED);
}

#[test]
fn the_word_is_carried_over_in_the_same_exchange() {
    let name = "adjust::the_word_is_carried_over_in_the_same_exchange";
    let why = "two quotas are mixed | another quota | no order | overflow";
    model(name, Some(3), carried).finds([Fault::LowHalf(source::decision_of_pair())], why);
}

#[test]
fn three_at_once() {
    model("adjust::three_at_once", Some(2), three);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "adjust::a_stopped_thread_stops_no_other";
    model(name, Some(2), one_stops);
}
