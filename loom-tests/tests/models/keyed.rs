//! A table of keys: threads insert the same key, decide on it, remove it, ban it, and need its slot
//! for another key. Each key has at most one slot, and is granted exactly its permits, plus one
//! burst for each time that it is evicted or removed. A thread that stops does not hold up the
//! others. The models find faults in this.

use tollgate::keyed::Overflow;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::tables::{
    self, A, Action, B, C, Scenario, Table, Y, available, ban, bucket, charge, forget, refund,
    reset, take, take_up_to, undo,
};

const NOW: u64 = 5;
const BURST: u64 = 2;

/// A table of two slots.
fn two_slots() -> Table {
    tables::table(bucket(BURST), 2)
}

/// A scenario that asks for these keys at its end.
fn scenario(keys: &'static [u64]) -> Scenario {
    tables::scenario(two_slots, keys, NOW)
}

/// A scenario that counts the permits of these keys.
fn counted(keys: &'static [u64]) -> Scenario {
    tables::counted_scenario(two_slots, keys, NOW, BURST)
}

/// A scenario in which one actor may stop.
fn stopped(keys: &'static [u64]) -> Scenario {
    tables::stopped_scenario(two_slots, keys, NOW)
}

fn one(key: u64) -> Action {
    take(key, 1, NOW)
}

fn both(key: u64) -> Action {
    take(key, BURST, NOW)
}

/// Two actors insert the same key, and each takes one permit or both.
fn two_insert(run: &mut Run) {
    for (one, other) in [(1, 1), (1, 2), (2, 2)] {
        let both = scenario(&[A]).actor(&[take(A, one, NOW)]);
        both.actor(&[take(A, other, NOW)]).explore(run);
    }
}

/// One actor chooses the second slot because the first one is busy, and the other then takes the
/// first.
fn both_slots(run: &mut Run) {
    let second = scenario(&[A, B]).actor_after(&[one(B)], &[one(A)]);
    second.actor(&[forget(B), one(A)]).explore(run);
}

/// One actor takes twice, or the key is removed and inserted again. A stale claim is not mistaken
/// for a new one.
fn insert_again(run: &mut Run) {
    let twice = scenario(&[A]).actor(&[one(A)]);
    twice.actor(&[one(A), one(A)]).explore(run);
    let comes_again = scenario(&[A]).actor(&[one(A)]);
    let comes_again = comes_again.actor(&[one(A), forget(A), one(A)]);
    comes_again.explore(run);
}

/// Two keys need the same slot.
fn two_keys(run: &mut Run) {
    for other in [B, Y] {
        let keys = if other == B { &[A, B] } else { &[A, Y] };
        let two = scenario(keys).actor(&[one(A), one(A)]);
        two.actor(&[both(other)]).explore(run);
    }
}

fn three_insert(run: &mut Run) {
    let three = scenario(&[A]).actor(&[one(A)]).actor(&[one(A)]);
    three.actor(&[one(A)]).explore(run);
    // A claim takes a slot for a moment, so another key may be evicted for lack of room.
    let two_keys = counted(&[A, B]).actor(&[one(A)]).actor(&[one(A)]);
    two_keys.actor(&[one(B)]).explore_openly(run);
}

/// Each verb on a tracked key, against each other verb.
fn decide(run: &mut Run) {
    let verbs = |at| {
        [
            take(A, 1, at),
            take(A, BURST, at),
            take_up_to(A, 2, at),
            undo(A, at),
            refund(A, 1, at),
            charge(A, 3, at),
            available(A, at),
        ]
    };
    for (verb, other) in pairs(verbs, NOW, &[NOW]) {
        let scenario = scenario(&[A]).actor_after(&[one(A)], &[verb]);
        scenario.actor(&[other]).explore(run);
    }
}

/// A key is removed, reset or banned, against each other action.
fn leave(run: &mut Run) {
    let states: [&[Action]; 2] = [&[], &[one(A)]];
    for state in states {
        for leaves in [forget(A), reset(A), ban(A, 100, NOW)] {
            for verb in [
                both(A),
                undo(A, NOW),
                charge(A, 3, NOW),
                available(A, NOW),
                forget(A),
                reset(A),
                ban(A, 50, NOW),
            ] {
                let scenario = scenario(&[A]).actor(std::slice::from_ref(&leaves));
                scenario.actor_after(state, &[verb]).explore(run);
            }
        }
    }
}

/// The same with two actions in sequence.
fn leave_and_come_again(run: &mut Run) {
    for leaves in [forget(A), reset(A), ban(A, 100, NOW)] {
        let scenario = scenario(&[A]).actor_after(&[one(A)], &[leaves]);
        scenario
            .actor_after(&[one(A)], &[both(A), undo(A, NOW)])
            .explore(run);
    }
}

/// A table of two slots, with a burst large enough that protected keys have permits left.
fn roomy() -> Table {
    tables::table(bucket(BURST + 2), 2)
}

/// All slots are busy and a new key arrives, while another actor decides on the protected key that
/// may be evicted for it. The other key is protected too.
fn evict_protected(run: &mut Run) {
    let (keys, burst) = (&[A, B, Y], BURST + 2);
    let full = tables::counted_scenario(roomy, keys, NOW, burst);
    let full = full.actor_after(&[one(A), one(A)], &[both(B)]);
    let full = full.actor_after(&[one(Y), both(Y)], &[one(A)]);
    full.explore_openly(run);
}

/// Two keys are granted one permit at a time. A key is protected if and only if it had a second
/// grant, even if it is evicted meanwhile. A protected key stays as long as another key can leave.
fn protect(run: &mut Run) {
    let protected = || {
        Scenario::at(roomy).after(|limiter, _| {
            tables::check(limiter, &[A, B, Y]);
            let stats = limiter.stats();
            assert_eq!(stats.evicted_protected, 0, "a protected key is gone");
            for key in [A, B] {
                let there = limiter.key(&key).at(Tick::from_nanos(NOW)).available();
                let came_again = BURST + 2 - there > 1;
                let is_protected = limiter.slots_of(&key).iter().any(|slot| slot.0);
                assert_eq!(is_protected, came_again, "{there} permits are available");
            }
            Vec::new()
        })
    };
    for others in [&[one(B)][..], &[one(A)], &[one(B), one(B)]] {
        // This key would stay if the others were not protected.
        let spends = take(Y, BURST + 1, NOW);
        let both = protected().actor_after(&[one(A)], others);
        both.actor_after(&[spends], &[one(A)]).explore_openly(run);
    }
}

/// All slots are busy and a new key arrives, while another actor decides on the key that may be
/// evicted for it.
fn evict(run: &mut Run) {
    let full = counted(&[A, B, Y]).actor_after(&[one(A)], &[one(B)]);
    let full = full.actor_after(&[both(Y)], &[one(A)]);
    full.explore_openly(run);
    let two_more = counted(&[A, B, C, Y]).actor_after(&[one(A)], &[one(B)]);
    let two_more = two_more.actor_after(&[both(Y)], &[one(C)]);
    two_more.explore_openly(run);
}

/// In a full table an actor evicts a key in use for a new one, and stops forever before each of its
/// operations in turn. Another actor wants the same key, or a different one. Whichever of them
/// evicts, and whichever inserts the key, it is a newcomer until its second grant.
fn newcomers(run: &mut Run) {
    for other in [B, C] {
        let full = Scenario::at(two_slots).after(|limiter, _| {
            tables::check_stopped(limiter, &[A, B, C, Y]);
            for key in [B, C] {
                let slots = limiter.slots_of(&key);
                let mut slots = slots.into_iter();
                let is_one = slots.all(|(is_protected, is_newcomer)| is_newcomer != is_protected);
                assert!(is_one, "{key:#x} took the place of a key in use");
            }
            Vec::new()
        });
        let full = full.actor_after(&[one(A)], &[one(B)]);
        let full = full.actor_after(&[both(Y)], &[one(other)]);
        full.explore_stopping(run, 0);
    }
}

/// Two actors insert the same key into a full table: it is not evicted in favor of itself.
fn evict_for_one(run: &mut Run) {
    let told = [
        "1 at 5, 1 left | 1 at 5, 0 left",
        "1 at 5, 0 left | 1 at 5, 1 left",
    ];
    let same = counted(&[A, B, Y]).actor_after(&[one(A)], &[one(B)]);
    let same = same.actor_after(&[both(Y)], &[one(B)]);
    same.explore_to(run, &told);
}

fn overflowing(overflow: Overflow, keys: &'static [u64]) -> Scenario {
    let table = move || two_slots().with_overflow(overflow);
    tables::scenario(table, keys, NOW)
}

/// All slots are busy, or all but one, and more keys arrive than there is room for.
fn no_room(run: &mut Run) {
    for overflow in [Overflow::Deny, Overflow::Admit] {
        let all = overflowing(overflow, &[A, B, Y]).actor_after(&[one(A)], &[one(B)]);
        all.actor_after(&[one(Y)], &[one(A)]).explore(run);
        let goes = overflowing(overflow, &[A, B, Y]).actor_after(&[one(A)], &[one(B)]);
        goes.actor_after(&[one(Y)], &[forget(A)]).explore(run);
    }
    let last = overflowing(Overflow::Deny, &[A, B, Y]).actor_after(&[one(A)], &[one(B)]);
    last.actor(&[one(Y)]).explore(run);
    let same = overflowing(Overflow::Deny, &[A, B]).actor_after(&[one(A)], &[one(B)]);
    same.actor(&[one(B)]).explore(run);
}

/// The key is inserted into a slot that was already searched, while the only other slot is freed.
fn comes_behind(run: &mut Run) {
    let passed = || overflowing(Overflow::Deny, &[A, B, Y]);
    let (forgets, asks) = ([forget(B), one(A), one(Y)], [one(A)]);
    // The order of the actors decides which executions loom visits.
    let first = passed().actor_after(&[one(B)], &asks);
    first.actor(&forgets).explore(run);
    let first = passed().actor(&forgets);
    first.actor_after(&[one(B)], &asks).explore(run);
}

/// The first actor stops forever, before each of its operations in turn.
fn one_stops(run: &mut Run) {
    let casts: [(&[Action], [&[Action]; 2]); 6] = [
        (&[], [&[one(A)], &[one(A), one(A)]]),
        (&[], [&[one(A)], &[forget(A), both(A)]]),
        (&[one(A)], [&[one(A)], &[one(A), forget(A)]]),
        (&[one(A)], [&[forget(A)], &[one(A), one(A)]]),
        (&[one(A)], [&[ban(A, 100, NOW)], &[one(A), reset(A)]]),
        (&[], [&[ban(A, 100, NOW)], &[one(A), available(A, NOW)]]),
    ];
    for (before, [stops, goes_on]) in casts {
        let scenario = stopped(&[A, B, Y]).actor_after(before, stops);
        scenario.actor(goes_on).explore_stopping_in_order(run, 0);
    }
    // An actor that evicts reads the slots one after the other, so timing decides which key leaves.
    let crowded = stopped(&[A, B, Y]).actor(&[one(A)]);
    let crowded = crowded.actor(&[one(B), one(Y)]).rule(|played| {
        let fresh = played.after.iter().skip(1);
        let fresh = fresh
            .filter(|left| left.to_string() == BURST.to_string())
            .count();
        assert!(fresh <= 1, "{fresh} keys were evicted by one");
    });
    crowded.explore_stopping(run, 0);
}

/// The first actor stops in a full table. Even if it has claimed the last slot or the slot of an
/// evicted key, the other actor can use that slot.
fn one_stops_in_the_last_slot(run: &mut Run) {
    for overflow in [Overflow::Evict, Overflow::Deny] {
        let table = move || two_slots().with_overflow(overflow);
        let full = tables::stopped_scenario(table, &[A, B, Y], NOW);
        let full = full.actor_after(&[both(Y)], &[one(A)]).actor(&[one(B)]);
        let full = full.rule(move |played| {
            let told = &played.in_words()[1];
            let has_it = matches!(played.answers[0][..], [Answer::Granted(_)]);
            let has_it = has_it && overflow == Overflow::Deny;
            let right = if has_it { "never" } else { "1 at 5, 1 left" };
            assert_eq!(told, right, "the first actor got the slot: {has_it}");
        });
        full.explore_stopping(run, 0);
    }
}

const NO_ORDER: &str = "no order";
const SLOTS: &str = "slots";

#[test]
fn two_insert_the_same_key() {
    let name = "keyed::two_insert_the_same_key";
    model(name, None, two_insert).stored("no order | slots | add up");
    model(name, Some(3), both_slots)
        .finds([Fault::LooksOnce], SLOTS)
        .relaxed(tables::fence(), SLOTS)
        .finds([Fault::Blind(source::release())], "add up | no order");
}

#[test]
fn an_old_claim_is_not_a_new_one() {
    let name = "keyed::an_old_claim_is_not_a_new_one";
    model(name, Some(3), insert_again);
    model(name, Some(2), two_keys);
}

#[test]
fn three_at_once() {
    model("keyed::three_at_once", Some(1), three_insert);
}

#[test]
fn two_decide_on_a_key() {
    model("keyed::two_decide_on_a_key", None, decide).stored(NO_ORDER);
}

#[test]
fn a_key_leaves_during_a_decision() {
    let name = "keyed::a_key_leaves_during_a_decision";
    model(name, None, leave);
    model(name, Some(3), leave_and_come_again);
}

#[test]
fn a_key_is_evicted_during_a_decision() {
    let name = "keyed::a_key_is_evicted_during_a_decision";
    model(name, Some(3), evict);
    model(name, Some(3), evict_protected).finds([Fault::HighHalf(source::decision())], "permits");
    model(name, Some(3), evict_for_one);
}

#[test]
fn a_key_is_protected_by_its_second_grant_and_no_other() {
    let name = "keyed::a_key_is_protected_by_its_second_grant_and_no_other";
    model(name, Some(3), protect).finds(
        [Fault::HighHalf(source::decision())],
        "permits are available",
    );
}

#[test]
fn a_key_that_evicted_one_in_use_is_a_newcomer() {
    let name = "keyed::a_key_that_evicted_one_in_use_is_a_newcomer";
    model(name, Some(2), newcomers).finds([Fault::ForgetsTheEviction], "key in use");
}

#[test]
fn there_is_no_room() {
    let name = "keyed::there_is_no_room";
    model(name, Some(3), no_room).finds([Fault::TakesWhoIsBusy], NO_ORDER);
    model(name, Some(3), comes_behind).finds([Fault::BelievesTheFirstLook], NO_ORDER);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "keyed::a_stopped_thread_stops_no_other";
    model(name, Some(1), one_stops).finds([Fault::WaitsForClaims], NO_ORDER);
    model(name, Some(1), one_stops_in_the_last_slot);
}
