//! A slot passes from an idle key to another. A late caller with the old key notices it, is counted
//! no earlier than the tick at which the key left, and gets no second burst. Skipped neighbors
//! hide no key, and keys that share a tag share nothing else. The models find faults in this.

use tollgate::keyed::Overflow;
use tollgate_audit::Bound;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::tables::{
    self, A, Action, B, C, Scenario, Table, Y, Z, available, bucket, forget, take,
};

const BURST: u64 = 2;
/// A tick at which a key that took everything at 5 is idle again.
const LATER: u64 = 100;

fn two_slots() -> Table {
    tables::table(bucket(BURST), 2)
}

/// A table with room for one more key: the other slot's key is in debt and busy to the end.
fn one_place() -> Table {
    let table = two_slots();
    let owes = table.key(&Z).at(Tick::ZERO).charge(1000);
    assert!(owes.debt() > 0);
    table
}

/// The same table, which denies instead of evicting.
fn one_place_denied() -> Table {
    one_place().with_overflow(Overflow::Deny)
}

/// One slot belongs to `A`, which took everything at 5 and is idle from 25. The grants of each key
/// keep its bound.
fn bounded(keys: &'static [u64]) -> Scenario {
    let bound = Bound::of_quota(bucket(BURST).quota()).expect("a quota");
    tables::bounded_scenario(one_place_denied, keys, 2 * LATER, bound)
}

fn all_of_a() -> [Action; 1] {
    [take(A, BURST, 5)]
}

/// `A` returns late: after `B` has taken its slot, perhaps once the slot of `Z` is free, or before
/// that.
fn late(run: &mut Run) {
    let late = bounded(&[A, B]).actor(&[take(B, 1, LATER), forget(Z)]);
    let late = late.actor_after(&all_of_a(), &[take(A, BURST, 15)]);
    late.explore_openly(run);
}

/// `A` decides twice, or queries first, also at a tick before the slot passes on.
fn late_twice(run: &mut Run) {
    for at in [16, LATER] {
        let late = bounded(&[A, B]).actor(&[take(B, 1, LATER)]);
        let late = late.actor_after(&all_of_a(), &[take(A, 1, 15), take(A, 1, at)]);
        late.explore_openly(run);
        let late = bounded(&[A, B]).actor(&[take(B, 1, LATER)]);
        let late = late.actor_after(&all_of_a(), &[available(A, at), take(A, 2, at)]);
        late.explore_openly(run);
    }
}

/// Two actors need the slot of the idle key, for the same new key or for different ones, at one
/// tick or at two.
fn two_take_over(run: &mut Run) {
    for (other, at) in [(B, LATER), (B, 60), (C, LATER), (C, 60), (Y, LATER)] {
        let two = bounded(&[A, B, C, Y]);
        let two = two.actor_after(&all_of_a(), &[take(B, 1, LATER)]);
        two.actor(&[take(other, 1, at)]).explore_openly(run);
    }
}

/// Two take the slot over at different ticks, and the key that left returns late.
fn three(run: &mut Run) {
    let bound = Bound::of_quota(bucket(BURST).quota()).expect("a quota");
    let three = tables::bounded_scenario(one_place_denied, &[A, B], 2 * LATER, bound);
    let three = three.actor_after(&all_of_a(), &[take(B, 1, 60), forget(Z)]);
    let three = three.actor(&[take(B, 1, LATER)]);
    three.actor(&[take(A, 2, 15)]).explore_openly(run);
}

/// A thread sleeps after it has claimed a slot and confirmed the claim. Meanwhile the key arrives,
/// leaves as idle, and its slot is claimed for it again. The stale claim is not mistaken for the
/// new one.
fn old_claim(run: &mut Run) {
    let again = [
        take(A, 2, 5),
        take(B, 1, LATER),
        forget(B),
        take(A, 1, LATER),
    ];
    let told = |played: &ScenarioOutcome| {
        let told = played.in_words();
        assert!(
            !told[0].starts_with("2 at 15") || told[1].starts_with("denied for"),
            "no order: a second burst, and {told:?}"
        );
    };
    let old = tables::scenario(one_place, &[A, B], 2 * LATER).rule(told);
    old.actor(&[take(A, 2, 15)])
        .actor(&again)
        .explore_rules(run);
}

/// The key is idle, but no longer when it is about to leave.
fn comes_back(run: &mut Run) {
    let back = tables::scenario(one_place_denied, &[A, B], LATER);
    let back = back.actor_after(&all_of_a(), &[take(B, 1, LATER)]);
    back.actor(&[take(A, 2, LATER), take(A, 1, LATER)])
        .explore(run);
}

/// A key that must not be evicted is not idle.
fn busy(run: &mut Run) {
    let table = || two_slots().with_overflow(Overflow::Deny);
    let busy = tables::scenario(table, &[A, B, Y], 15);
    let busy = busy.actor_after(&[take(A, 2, 5), take(Y, 1, 5)], &[take(B, 1, 15)]);
    busy.actor(&[take(A, 2, 15)]).explore(run);
}

/// The actor that takes the slot over, or the late one, stops forever, before each of its
/// operations in turn.
fn one_stops(run: &mut Run) {
    for (who, goes_on) in [
        (0, take(A, 2, 15)),
        (0, take(B, 1, 50)),
        (1, take(B, 1, LATER)),
    ] {
        let stops = if who == 0 {
            take(B, 1, LATER)
        } else {
            take(A, 2, 15)
        };
        let scenario = tables::stopped_scenario(one_place, &[A, B], 2 * LATER);
        let scenario = scenario
            .actor_after(&all_of_a(), &[stops])
            .actor(&[goes_on]);
        scenario.explore_stopping_in_order(run, 0);
    }
}

/// Keys of a table of two pairs of slots. The primary buckets of these keys are the first slot of
/// one pair and the second slot of the other; the neighbors are the other two.
const IN_BOTH: [u64; 2] = [0x100, 0x300];
/// A key whose first primary bucket is their second one.
const THERE: u64 = 0x600 | 0b11 << 58;
/// Two keys with the same tag, each with the other's primary buckets.
const ALIKE: [u64; 2] = [0x100, 0x100 | 0b11 << 58];

fn four_slots() -> Table {
    tables::table(bucket(BURST), 4)
}

/// A key is put into a neighbor because its primary buckets are full, one of them used for the
/// first time just before. An actor that inserts the same key once there is room may still see that
/// bucket as never used, and skips the neighbors.
fn neighbors(run: &mut Run) {
    let [key, other] = IN_BOTH;
    let skips = tables::scenario(four_slots, &[0x100, 0x300, THERE], 5);
    let skips = skips.actor_after(&[take(other, 1, 5)], &[take(THERE, 1, 5), take(key, 1, 5)]);
    let skips = skips.actor(&[forget(other), take(key, 2, 5)]);
    skips.explore(run);
}

/// The same key, and one with the same tag whose first pair is the other's second.
fn same_tag(run: &mut Run) {
    let [one, other] = ALIKE;
    let tables = tables::scenario(four_slots, &ALIKE, 5);
    let two = tables.actor(&[take(one, 1, 5), take(one, 2, 5)]);
    two.actor(&[take(other, 2, 5)]).explore(run);
}

const NO_ORDER: &str = "no order";

#[test]
fn a_late_caller_gets_no_second_burst() {
    let name = "keyed_turnover::a_late_caller_gets_no_second_burst";
    model(name, Some(3), late)
        .finds([Fault::RaisesAfterwards], "promised | no order")
        .finds([Fault::Zero(source::horizon())], "promised | no order");
    model(name, Some(2), late_twice);
}

#[test]
fn two_take_over_one_slot() {
    let name = "keyed_turnover::two_take_over_one_slot";
    model(name, Some(3), two_take_over);
    model(name, Some(3), comes_back);
}

#[test]
fn an_old_claim_is_not_a_new_one() {
    let name = "keyed_turnover::an_old_claim_is_not_a_new_one";
    model(name, Some(1), old_claim)
        .bound(Some(3))
        .finds([Fault::NumbersAlike], NO_ORDER);
}

#[test]
fn three_at_once() {
    let name = "keyed_turnover::three_at_once";
    deep_model(name, Some(1), three);
}

#[test]
fn a_busy_key_stays() {
    model("keyed_turnover::a_busy_key_stays", Some(3), busy)
        .finds([Fault::TakesWhoIsBusy], NO_ORDER);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "keyed_turnover::a_stopped_thread_stops_no_other";
    model(name, Some(2), one_stops);
}

#[test]
fn skipped_neighbors_hide_no_key() {
    let name = "keyed_turnover::skipped_neighbors_hide_no_key";
    // Alternatively a thread claims and releases the free slot in a loop, since the key is there.
    let skips = "slots | no order | maximum number of branches";
    model(name, Some(3), neighbors)
        .finds([Fault::SkipsByFree], skips)
        .relaxed(tables::fence(), "slots | no order");
}

#[test]
fn keys_that_share_a_tag_share_nothing_else() {
    let name = "keyed_turnover::keys_that_share_a_tag_share_nothing_else";
    model(name, Some(2), same_tag).finds([Fault::IgnoresThePair], NO_ORDER);
}
