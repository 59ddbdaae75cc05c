//! The slotted window: threads move on to the next slot concurrently, some of them late and some
//! far ahead. The sum over any window stays within the limit. A thread that stops does not hold up
//! the others. The models find faults in this.

use tollgate_loom_tests::calls::{Call, available, charge, refund, take, take_up_to, undo};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::rules::{each_interval, grants};

type Tested = SlottedWindow<NoClock>;
type Action = Call<Tested>;
type Scenario = AnyScenario<Tested, Option<Granted>>;

const LIMIT: u64 = 3;
const SLOT_NS: u64 = 10;

/// Three permits in this many slots of 10 ns.
fn limiter(slots: u64) -> Tested {
    let quota = Quota::per(LIMIT, Duration::from_nanos(slots * SLOT_NS));
    SlottedWindow::with_clock(quota, slots as usize, NoClock).expect("a quota")
}

fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

fn time_until(n: u64, at: u64) -> Action {
    Action::new(format!("time until {n} at {at}"), move |limiter, _| {
        Answer::Wait(limiter.at(tick(at)).time_until(n))
    })
}

/// A scenario on a window of this many slots. Its queries at the end reveal what is counted in each
/// slot.
fn scenario(slots: u64) -> Scenario {
    let after = |limiter: &Arc<Tested>, _: &mut [Option<Granted>]| {
        let ticks = [0, 2, 3, 4, 5, 8]
            .into_iter()
            .map(|slot| tick(slot * SLOT_NS));
        ticks
            .map(|now| Answer::Level(limiter.at(now).level()))
            .collect()
    };
    Scenario::at(move || limiter(slots)).after(after)
}

/// The same if permits are only taken: no window of this many slots has more than the limit.
fn bounded(slots: u64) -> Scenario {
    scenario(slots).rule(move |played| {
        let slot = |(at, n): (Tick, u64)| (at.as_nanos() / SLOT_NS, n);
        let grants: Vec<_> = grants(played.all()).into_iter().map(slot).collect();
        each_interval(&grants, |first, last, sum| {
            let is_long = last - first >= slots;
            assert!(
                is_long || sum <= LIMIT,
                "{sum} permits in the slots {first}..={last}"
            );
        });
    })
}

const NO_ORDER: &str = "no order";

/// Two threads at the end of a slot, with every outcome spelled out.
fn at_an_edge(run: &mut Run) {
    let two_go_on = [
        "1 at 15, 0 left | denied for 14",
        "denied for 15 | 1 at 16, 0 left",
    ];
    let both = bounded(3).actor_after(&[take(2, 5)], &[take(1, 15)]);
    both.actor(&[take(1, 16)]).explore_to(run, &two_go_on);

    // The late thread comes first, or last, or while the other one moves on to the next slot: then
    // it is counted there.
    let late = [
        "1 at 5, 1 left | denied for 15",
        "denied for 25 | 2 at 15, 0 left",
        "1 at 10, 1 left | denied for 15",
    ];
    let comes_late = bounded(3).actor_after(&[take(1, 5)], &[take(1, 5)]);
    comes_late.actor(&[take(2, 15)]).explore_to(run, &late);

    let far_ahead = [
        "1 at 35, 2 left | 1 at 30, 1 left",
        "1 at 35, 2 left | denied for 5",
    ];
    let jumps = bounded(3).actor_after(&[take(3, 5)], &[take(1, 35)]);
    jumps.actor(&[take(1, 25)]).explore_to(run, &far_ahead);

    let undone = [
        "2 returned | 1 at 15, 2 left",
        "0 returned | 1 at 15, 0 left",
    ];
    let undoes = scenario(3).actor_after(&[take(2, 5)], &[undo(6)]);
    undoes.actor(&[take(1, 15)]).explore_to(run, &undone);

    let charged = [
        "charged 3 at 6, owes 1 | denied for 15",
        "charged 3 at 10, owes 2 | 1 at 15, 1 left",
        "charged 3 at 10, owes 1 | denied for 25",
    ];
    let charges = scenario(3).actor_after(&[take(1, 5)], &[charge(3, 6)]);
    charges.actor(&[take(1, 15)]).explore_to(run, &charged);
}

/// Each verb against each other, from each state, in one slot, across an edge and across a window.
fn each_verb_against_each_other(run: &mut Run) {
    let states: [&[Action]; 4] = [
        &[],
        &[take(2, 25)],
        &[take(1, 5), take(1, 15), take(1, 25)],
        &[take(1, 15), charge(3, 25)],
    ];
    let verbs = |at| {
        [
            take(1, at),
            take(LIMIT, at),
            take_up_to(2, at),
            undo(at),
            refund(1, at),
            charge(2, at),
            available(at),
            time_until(2, at),
        ]
    };
    for state in states {
        for (one, other) in pairs(verbs, 26, &[27, 36, 48, 77]) {
            let scenario = scenario(3).actor_after(state, &[one]);
            scenario.actor(&[other]).explore_begun(run);
        }
    }
}

/// Threads that move on from slot to slot, each with its own clock, in windows of two and of three
/// slots.
fn slot_to_slot(run: &mut Run) {
    for slots in [2, 3] {
        // One moves on by one slot, and the other by two.
        let one = bounded(slots).actor_after(&[take(2, 5)], &[take(1, 15), take(1, 35)]);
        one.actor(&[take(1, 26), take(1, 36)]).explore_begun(run);
        // One has an old tick, twice.
        let old = bounded(slots).actor_after(&[take(1, 5)], &[take(1, 6), take(1, 7)]);
        old.actor(&[take(1, 15), take(1, 26)]).explore_begun(run);
        let both =
            bounded(slots).actor_after(&[take(3, 5)], &[take_up_to(3, 25), take_up_to(3, 36)]);
        both.actor(&[take_up_to(2, 36)]).explore_begun(run);
        round_the_ring(slots, run);
        given_back(slots, run);
    }
    both_round_the_ring(run);
}

/// One thread may be interrupted anywhere on its way to the next slot, while the other goes around
/// the ring.
fn round_the_ring(slots: u64, run: &mut Run) {
    let slow = bounded(slots).actor_after(&[take(1, 5)], &[take(1, 15)]);
    let fast = slow.actor(&[take(1, 16), take(1, 26), take(2, 36)]);
    fast.explore_begun(run);
}

/// The same, and the slow thread goes on just as far.
fn both_round_the_ring(run: &mut Run) {
    let slow = bounded(2).actor_after(&[take(1, 5)], &[take(1, 15), take(1, 36)]);
    let fast = slow.actor(&[take(1, 16), take(1, 26), take(1, 36)]);
    fast.explore_begun(run);
}

/// Gives permits back in a slot that another thread finishes.
fn given_back(slots: u64, run: &mut Run) {
    let undoes = scenario(slots).actor_after(&[take(2, 5)], &[undo(6), take(1, 26)]);
    undoes.actor(&[take(1, 15), take(2, 36)]).explore_begun(run);
}

/// The same at a single edge.
fn undone_at_an_edge(run: &mut Run) {
    let undoes = scenario(2).actor_after(&[take(2, 5)], &[undo(6)]);
    undoes.actor(&[take(1, 15)]).explore_begun(run);
}

/// Three threads in three slots: one is late, and may be the last to record what others have
/// recorded.
fn three_threads(run: &mut Run) {
    let cases: [[&[Action]; 3]; 3] = [
        [&[take(1, 5)], &[take(1, 15)], &[take(1, 26)]],
        [&[take(1, 15)], &[take(2, 16)], &[take(1, 36)]],
        [&[undo(6)], &[take(1, 15)], &[take(2, 16)]],
    ];
    for [one, other, third] in cases {
        let scenario = scenario(2).actor_after(&[take(2, 5)], one);
        scenario.actor(other).actor(third).explore_begun(run);
    }
}

/// The first actor stops forever, before each of its operations in turn.
fn one_stops(cases: &[[&[Action]; 2]], run: &mut Run) {
    for [stops, goes_on] in cases {
        let scenario = scenario(2).actor_after(&[take(2, 5)], stops);
        scenario.actor(goes_on).explore_stopping_in_order(run, 0);
    }
}

/// One verb each.
fn one_stops_once(run: &mut Run) {
    let cases: [[&[Action]; 2]; 5] = [
        [&[take(1, 15)], &[take(1, 16)]],
        [&[take(1, 15)], &[take(1, 26)]],
        [&[take(1, 26)], &[take(1, 6)]],
        [&[charge(2, 15)], &[time_until(1, 16)]],
        [&[undo(6)], &[take(1, 15)]],
    ];
    one_stops(&cases, run);
}

/// The other actor continues for a while.
fn one_stops_on_its_way(run: &mut Run) {
    let cases: [[&[Action]; 2]; 3] = [
        [&[take(1, 15)], &[take(1, 16), take(1, 26), take(1, 36)]],
        [&[take(1, 36)], &[take(1, 15), take(1, 26)]],
        [&[undo(6), take(1, 15)], &[take(1, 16), available(26)]],
    ];
    one_stops(&cases, run);
}

#[test]
fn at_the_end_of_a_slot() {
    model("slots::at_the_end_of_a_slot", None, at_an_edge).stored("permits in the slots");
}

#[test]
fn each_against_each() {
    let name = "slots::each_against_each";
    model(name, Some(2), each_verb_against_each_other);
    let longer = "slots::each_against_each, of any number of preemptions";
    deep_model(longer, None, each_verb_against_each_other);
}

#[test]
fn from_slot_to_slot() {
    model("slots::from_slot_to_slot", Some(1), slot_to_slot);
    let longer = "slots::from_slot_to_slot, of two preemptions";
    deep_model(longer, Some(2), slot_to_slot);
}

#[test]
fn three_at_once() {
    model("slots::three_at_once", deeper(1, 2), three_threads);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "slots::a_stopped_thread_stops_no_other";
    model(name, None, one_stops_once);
    let name = "slots::a_stopped_thread_stops_no_other, on the way";
    model(name, Some(1), one_stops_on_its_way);
}

#[test]
fn faults_and_weaker_orderings_are_found() {
    on_broken("slots", None, undone_at_an_edge).finds([Fault::IgnoresTheFreeze], NO_ORDER);
    let source = Source(&["multiword/slotted/roll.rs"]);
    let sites = source.sites(["self.word.load", ".compare_exchange_weak("]);
    let round = |run: &mut Run| round_the_ring(2, run);
    on_broken("slots", Some(2), round)
        .finds([Fault::LeavesRecordingToOthers], NO_ORDER)
        .finds([Fault::Blind(source.site("entry.fetch_max"))], NO_ORDER)
        .relaxed(sites, NO_ORDER);
    // A thread that reads a later slot's entry, and then the same word as before, may retry
    // forever.
    let for_ever = "exceeded maximum number of branches";
    let sites = source.sites(["self.place_of(slot)?.load", "entry.fetch_max"]);
    on_broken("slots", Some(2), both_round_the_ring).relaxed(sites, for_ever);
}
