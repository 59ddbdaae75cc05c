//! The map of keys. The word of a key that has left is retired and grants nothing, so a late
//! decision is counted together with later ones. A key that left as idle gets no second burst, even
//! for a caller with an old tick. There are never more keys than the capacity. A key that changes
//! its algorithm keeps its permits. A thread that stops while a key leaves stops no other. A key
//! with two grants is protected, and leaves after keys that are not. The models find faults in
//! this.
//!
//! The map itself is a stand-in (`src/keyed_map/entries_modeled.rs`) that guarantees no more than
//! the crate relies on.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use tollgate::audit::Bound;
use tollgate::clock::NoClock;
use tollgate::sync::model::{Conditions, Fault, under};
use tollgate::{KeyedMap, Overflow, Quota, Tick, TokenBucket};
use tollgate_loom_tests::{
    Action as Any, Answer, Run, Scenario as AnyScenario, ScenarioOutcome, Site, model, relaxed,
    stored, with_fault,
};

pub(crate) type Tested = KeyedMap<u64, TokenBucket, NoClock, IdentityHasher>;
pub(crate) type Action = Any<Tested, ()>;
pub(crate) type Scenario = AnyScenario<Tested, ()>;

/// A hasher that uses the key as its hash, so that a model knows where the key is.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl BuildHasher for IdentityHasher {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("keys are u64");
    }
}

/// A quota with this burst, and a permit every 10 ns.
pub(crate) fn quota(burst: u64) -> Quota {
    Quota::per(1, Duration::from_nanos(10)).burst(burst)
}

pub(crate) fn bucket(burst: u64) -> TokenBucket {
    TokenBucket::new(quota(burst)).expect("a quota")
}

pub(crate) fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

pub(crate) fn take(key: u64, n: u64, at: u64) -> Action {
    Action::new(
        format!("take {n} of {key} at {at}"),
        move |limiter, _| match limiter.try_acquire_n_at(&key, n, tick(at)) {
            Ok(granted) => Answer::Granted(granted),
            Err(denied) => Answer::Denied(denied),
        },
    )
}

/// Takes from another key first: loom sees more interleavings of actors that begin with a change.
pub(crate) fn visit(key: u64) -> Action {
    Action::new(format!("visit {key}"), move |limiter, _| {
        let _ = limiter.try_acquire_at(&key, tick(0));
        Answer::Done
    })
}

pub(crate) fn purge(steps: usize, at: u64) -> Action {
    Action::new(format!("purge {steps} at {at}"), move |limiter, _| {
        Answer::Count(limiter.purge_idle_at(tick(at), steps) as u64)
    })
}

pub(crate) fn remove(key: u64) -> Action {
    Action::new(format!("remove {key}"), move |limiter, _| {
        Answer::Is(limiter.remove(&key))
    })
}

pub(crate) fn give(key: u64, burst: u64, at: u64) -> Action {
    Action::new(format!("give {key} {burst} at {at}"), move |limiter, _| {
        let given = limiter.set_algorithm_at(&key, bucket(burst), tick(at));
        Answer::Is(given.is_ok())
    })
}

/// Asks how many keys are tracked.
fn len() -> Action {
    Action::new("len", |limiter, _| Answer::Count(limiter.len() as u64))
}

/// A map in which each key has this burst.
pub(crate) fn scenario_of(burst: u64, capacity: usize, overflow: Overflow) -> Scenario {
    Scenario::at(move || {
        let map = KeyedMap::with_clock(bucket(burst), capacity, NoClock).expect("a capacity");
        map.with_hasher(IdentityHasher(0)).with_overflow(overflow)
    })
}

/// A map in which each key has two permits at once.
pub(crate) fn scenario(capacity: usize, overflow: Overflow) -> Scenario {
    scenario_of(2, capacity, overflow)
}

/// A map with one key, which leaves only when idle: its grants keep the bound.
pub(crate) fn bounded() -> Scenario {
    let bound = Bound::of_quota(quota(2)).expect("a quota");
    scenario(2, Overflow::Deny).rule(move |played| played.check_bound(&bound))
}

pub(crate) fn granted<'p>(answers: impl IntoIterator<Item = &'p Answer>) -> u64 {
    let granted = answers.into_iter().map(|answer| match answer {
        Answer::Granted(granted) => granted.n(),
        _ => 0,
    });
    granted.sum()
}

/// Runs scenarios with counted loads: otherwise loom misses too much of actors that only read.
pub(crate) fn counting_loads(run: &mut Run, scenarios: impl FnOnce(&mut Run)) {
    let conditions = Conditions {
        counts_loads: true,
        ..Conditions::now()
    };
    under(conditions, || scenarios(run));
}

pub(crate) const TOO_MUCH: &str = "more than was promised";

/// One actor purges the idle key and takes from its new entry; the other was about to take from the
/// old one.
fn late(run: &mut Run) {
    let told: [&[&str]; 4] = [
        // The other is first, and the key is no longer idle.
        &["0 available, denied for 20", "2 at 20, 0 left"],
        &["0 available, 2 at 20, 0 left", "denied for 20"],
        // The key is idle and leaves, and then the other is first.
        &["1 available, denied for 20", "2 at 20, 0 left"],
        &["1 available, 2 at 20, 0 left", "denied for 20"],
    ];
    // The second outcome is not required: the key stays and this actor is first only if the other's
    // exchange comes in between.
    let reached = [told[0], told[2], told[3]];
    let leaves = bounded().actor_after(&[take(1, 1, 0)], &[purge(1, 20), take(1, 2, 20)]);
    leaves.actor(&[take(1, 2, 20)]).explore_to(run, &reached);
}

fn late_at_once(run: &mut Run) {
    let leaves = bounded().actor_after(&[take(1, 1, 0)], &[purge(1, 20), take(1, 2, 20)]);
    leaves.actor(&[take(1, 2, 20)]).explore_rules(run);
}

/// Each removal that returns `true` allows one more burst, and no more.
pub(crate) fn removed(run: &mut Run) {
    let at_most_a_burst_for_each = |played: &ScenarioOutcome| {
        let removals = played
            .all()
            .filter(|answer| matches!(answer, Answer::Is(true)));
        let allowed = 2 + 2 * removals.count() as u64;
        let granted = granted(played.all());
        assert!(granted <= allowed, "{TOO_MUCH}: {granted} of {allowed}");
    };
    let scenario = || scenario(2, Overflow::Deny).rule(at_most_a_burst_for_each);
    let removes = scenario().actor_after(&[take(1, 1, 0)], &[remove(1), take(1, 2, 0)]);
    removes.actor(&[take(1, 1, 0)]).explore_rules(run);
    let both = scenario().actor_after(&[take(1, 2, 0)], &[remove(1), take(1, 2, 0)]);
    both.actor(&[remove(1), take(1, 2, 0)]).explore_rules(run);
}

/// The key left as idle at 20; an actor arrives with an earlier tick.
fn an_old_tick(run: &mut Run) {
    let leaves = bounded().actor_after(&[take(1, 2, 0)], &[purge(1, 30)]);
    let comes = leaves.actor(&[visit(2), take(1, 2, 5)]);
    counting_loads(run, |run| comes.explore_rules(run));
}

/// The same, while another actor inserts the key, uses its burst and has it leave.
fn in_between(run: &mut Run) {
    let comes_and_goes = bounded().actor(&[take(1, 2, 5), purge(1, 30)]);
    comes_and_goes.actor(&[take(1, 2, 5)]).explore_rules(run);
}

/// Two actors insert one key each, and there is room for one.
fn the_last_room(run: &mut Run) {
    let never_more = |played: &ScenarioOutcome| {
        let lens = played.all().filter_map(|answer| match answer {
            Answer::Count(len) => Some(*len),
            _ => None,
        });
        assert!(lens.max() <= Some(1), "more than there is room for");
    };
    let one_is_granted = |played: &ScenarioOutcome| {
        assert_eq!(granted(played.all()), 1, "more than there is room for");
    };
    let denied = scenario(1, Overflow::Deny)
        .rule(never_more)
        .rule(one_is_granted)
        .actor(&[take(1, 1, 0), len()]);
    denied.actor(&[take(2, 1, 0), len()]).explore_rules(run);
    let evicted = scenario(1, Overflow::Evict)
        .rule(never_more)
        .actor(&[take(1, 1, 0), len()]);
    evicted.actor(&[take(2, 1, 0), len()]).explore_rules(run);
}

/// Two actors insert the same key: it is there once, with one burst.
fn twice(run: &mut Run) {
    let told: [&[&str]; 2] = [
        &["2 at 0, 0 left", "denied for 20"],
        &["denied for 20", "2 at 0, 0 left"],
    ];
    let comes = bounded().actor(&[take(1, 2, 0)]);
    comes.actor(&[take(1, 2, 0)]).explore_to(run, &told);
}

/// Two actors insert the same key, and there is room for one key: none evicts the other's.
fn twice_in_the_last_room(run: &mut Run) {
    let bound = Bound::of_quota(quota(2)).expect("a quota");
    let full = scenario(1, Overflow::Evict).rule(move |played| played.check_bound(&bound));
    let full = full.rule(|played| assert_eq!(granted(played.all()), 2, "denied for want of room"));
    let comes = full.actor(&[take(1, 2, 0)]);
    comes.actor(&[take(1, 2, 0)]).explore_rules(run);
}

/// A key gets another algorithm: the permits taken and those left add up.
fn changed(run: &mut Run) {
    let adds_up = |played: &ScenarioOutcome| {
        let there: u64 = played.after.iter().map(count).sum();
        let taken = granted(played.all());
        assert_eq!(taken + there, 2, "more than was promised, or less");
    };
    let scenario = || {
        let there = |limiter: &std::sync::Arc<Tested>, _: &mut [()]| {
            vec![Answer::Count(limiter.key(&1).at(tick(0)).available())]
        };
        scenario(2, Overflow::Deny).after(there).rule(adds_up)
    };
    let gives = scenario().actor_after(&[take(1, 1, 0)], &[give(1, 3, 0)]);
    gives.actor(&[take(1, 1, 0)]).explore_rules(run);
    let again = scenario().actor_after(&[take(1, 1, 0)], &[give(1, 3, 0), give(1, 4, 0)]);
    again
        .actor(&[take(1, 1, 0), purge(1, 0)])
        .explore_rules(run);
}

pub(crate) fn count(answer: &Answer) -> u64 {
    match answer {
        Answer::Count(n) => *n,
        _ => 0,
    }
}

/// An actor stops forever while a key leaves, arrives or is removed; the others finish.
fn one_stops(run: &mut Run) {
    let leaves = bounded().actor_after(&[take(1, 1, 0)], &[purge(1, 20)]);
    leaves.actor(&[take(1, 2, 20)]).explore_stopping(run, 0);
    let comes = bounded().actor(&[take(1, 2, 20)]);
    comes.actor(&[take(1, 2, 20)]).explore_stopping(run, 0);
    let removes = scenario(2, Overflow::Deny).actor_after(&[take(1, 2, 0)], &[remove(1)]);
    removes.actor(&[take(1, 2, 0)]).explore_stopping(run, 0);
}

const UNPROTECTED: &str = "evicted as if it were not protected";

/// A map with three permits at once for each key. Asks at the end how many keys were evicted, and
/// how many of them were protected.
fn evicting(capacity: usize) -> Scenario {
    let after = |limiter: &std::sync::Arc<Tested>, _: &mut [()]| {
        let stats = limiter.stats();
        vec![
            Answer::Count(stats.evicted),
            Answer::Count(stats.evicted_protected),
        ]
    };
    scenario_of(3, capacity, Overflow::Evict).after(after)
}

/// Returns whether the first actor's grant was a second one of its key, and not the first one of a
/// key that was inserted again.
fn is_second(played: &ScenarioOutcome) -> bool {
    let mut answers = played.answers.iter().flatten();
    matches!(answers.next(), Some(Answer::Granted(granted)) if granted.remaining() == 1)
}

/// A key gets its second grant while it is evicted. If it is evicted after the grant, it counts as
/// protected.
fn a_second_grant(run: &mut Run) {
    let is_counted = |played: &ScenarioOutcome| {
        let [evicted, protected] = [0, 1].map(|at| played.after.get(at).map_or(0, count));
        let right = u64::from(is_second(played) && evicted > 0);
        assert!(protected >= right, "{UNPROTECTED}");
    };
    let second = evicting(1).rule(is_counted);
    let second = second.actor_after(&[take(1, 1, 0)], &[take(1, 1, 0)]);
    second.actor(&[take(2, 1, 0)]).explore_rules(run);
}

/// The newer of two keys is about to be evicted, and gets its second grant: then the other key is
/// evicted.
fn the_other_leaves(run: &mut Run) {
    let none_is_protected = |played: &ScenarioOutcome| {
        let protected = played.after.get(1).map_or(0, count);
        assert!(!is_second(played) || protected == 0, "{UNPROTECTED}");
    };
    let second = evicting(2).rule(none_is_protected);
    let second = second.actor_after(&[take(1, 1, 0), take(2, 1, 0)], &[take(2, 1, 0)]);
    second.actor(&[take(3, 1, 0)]).explore_rules(run);
}

#[test]
fn a_late_decision_counts_with_later_ones() {
    let name = "keyed_map::a_late_decision_counts_with_later_ones";
    model(name, Some(2), late);
    stored(name, TOO_MUCH, Some(2), late_at_once);
    with_fault(
        "keyed_map",
        Fault::RemovesUnretired,
        TOO_MUCH,
        None,
        late_at_once,
    );
}

#[test]
fn a_removal_allows_one_burst() {
    let name = "keyed_map::a_removal_allows_one_burst";
    model(name, Some(1), removed);
    with_fault(
        "keyed_map, removed",
        Fault::RemovesUnretired,
        TOO_MUCH,
        Some(3),
        removed,
    );
}

#[test]
fn a_late_tick_gets_no_second_burst() {
    let name = "keyed_map::a_late_tick_gets_no_second_burst";
    model(name, Some(3), an_old_tick);
    model(
        "keyed_map::a_late_tick_gets_no_second_burst, in between",
        Some(2),
        in_between,
    );
    for fault in [Fault::RaisesAfterwards, Fault::CountsAtOwnTick] {
        with_fault("keyed_map", fault, TOO_MUCH, Some(2), an_old_tick);
    }
    with_fault(
        "keyed_map",
        Fault::ReadsTheHorizonFirst,
        TOO_MUCH,
        Some(3),
        in_between,
    );
}

#[test]
fn never_more_than_the_capacity() {
    let name = "keyed_map::never_more_than_the_capacity";
    model(name, Some(2), the_last_room);
    let why = "more than there is room for";
    with_fault(
        "keyed_map",
        Fault::LooksForRoomFirst,
        why,
        Some(3),
        the_last_room,
    );
}

#[test]
fn a_key_is_inserted_once() {
    let name = "keyed_map::a_key_is_inserted_once";
    model(name, Some(3), twice);
    model(
        &format!("{name}, in the last room"),
        Some(3),
        twice_in_the_last_room,
    );
    with_fault(
        "keyed_map",
        Fault::EvictsItsOwnKey,
        TOO_MUCH,
        Some(3),
        twice_in_the_last_room,
    );
}

#[test]
fn an_algorithm_is_changed() {
    model("keyed_map::an_algorithm_is_changed", Some(2), changed);
    for fault in [Fault::TakesOutMoving, Fault::CarriesUnretired] {
        with_fault("keyed_map", fault, TOO_MUCH, Some(2), changed);
    }
}

#[test]
fn a_second_grant_protects_a_key() {
    let name = "keyed_map::a_second_grant_protects_a_key";
    model(name, Some(2), a_second_grant);
    model(&format!("{name}, of two"), Some(3), the_other_leaves);
    with_fault(
        "keyed_map",
        Fault::ProtectsAfterwards,
        UNPROTECTED,
        Some(3),
        a_second_grant,
    );
    with_fault(
        "keyed_map",
        Fault::EvictsAsItWas,
        UNPROTECTED,
        Some(3),
        the_other_leaves,
    );
}

#[test]
fn a_stopped_thread_stops_no_other() {
    model(
        "keyed_map::a_stopped_thread_stops_no_other",
        Some(1),
        one_stops,
    );
}

#[test]
fn weaker_orderings_are_found() {
    let entry = |operation| Site {
        file: "keyed_map/entry.rs",
        text: include_str!("../../../src/keyed_map/entry.rs"),
        operation,
    };
    let retire = |operation| Site {
        file: "keyed_map/retire.rs",
        text: include_str!("../../../src/keyed_map/retire.rs"),
        operation,
    };
    for site in [
        entry("// after it was found"),
        retire("// before it is retired"),
    ] {
        relaxed("keyed_map", site, TOO_MUCH, Some(2), an_old_tick);
    }
    for operation in ["// after the word was read", "// before the second grant"] {
        relaxed(
            "keyed_map",
            entry(operation),
            UNPROTECTED,
            Some(3),
            a_second_grant,
        );
    }
    let moves = retire("// before it is moved");
    relaxed("keyed_map", moves, TOO_MUCH, Some(2), changed);
    let finishes = Site {
        file: "keyed_map/decide.rs",
        text: include_str!("../../../src/keyed_map/decide.rs"),
        operation: "// after it was found retired or moved",
    };
    relaxed("keyed_map", finishes, TOO_MUCH, Some(2), changed);
}
