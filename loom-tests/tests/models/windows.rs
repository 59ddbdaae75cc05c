//! The leaky bucket, the windows, the intervals and `AnyAlgorithm`: every model of the token
//! bucket, with ticks on both sides of a window's edge. Each model also fails on a broken word.

use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::samples::windows;
use tollgate_loom_tests::suite::Subjected;

/// A suite, its bound on preemptions, and its message for a word that compares and stores.
struct Suite<A> {
    name: &'static str,
    explore: fn(&Subject<A>, &mut Run),
    bound: Option<usize>,
    why: &'static str,
    /// Whether it only shows that the steps of another algorithm are pure too, which the pairs also
    /// show. The same suite of a token bucket covers the loop itself (`verbs.rs`, `cell.rs`).
    repeats: bool,
}

impl<A> Suite<A> {
    fn new(
        name: &'static str,
        explore: fn(&Subject<A>, &mut Run),
        bound: Option<usize>,
        why: &'static str,
    ) -> Self {
        Self {
            name,
            explore,
            bound,
            why,
            repeats: false,
        }
    }

    fn repeating(self) -> Self {
        let repeats = true;
        Self { repeats, ..self }
    }
}

fn pairs<A: Subjected>() -> Suite<A> {
    let explore = suite::each_verb_against_each_other;
    Suite::new("each against each other", explore, None, "granted twice")
}

fn after_a_grant<A: Subjected>() -> Suite<A> {
    let explore = suite::each_verb_after_a_grant;
    Suite::new("each after a grant", explore, None, "no order").repeating()
}

fn among_three<A: Subjected>() -> Suite<A> {
    let (explore, why) = (suite::each_verb_among_three, "more than was promised");
    Suite::new("each among three", explore, Some(3), why).repeating()
}

fn starts<A: Subjected>() -> Suite<A> {
    Suite::new("it starts once", suite::each_verb_starts, None, "no order")
}

fn at_one_tick<A: Subjected>() -> Suite<A> {
    let name = "exactly the available permits at one tick";
    let explore = suite::exactly_the_burst_at_one_tick;
    Suite::new(name, explore, None, "granted twice").repeating()
}

fn at_different_ticks<A: Subjected>() -> Suite<A> {
    let explore = suite::the_bound_at_different_ticks;
    Suite::new("at different ticks", explore, Some(3), "no order")
}

fn explore<A: Subjected, const N: usize>(
    name: &str,
    make: fn(MakeWord) -> Subject<A>,
    suites: [Suite<A>; N],
) {
    for suite in suites {
        let title = format!("windows::{name}, {}", suite.name);
        if suite.repeats && !deep(&title) {
            continue;
        }
        make(words::cell).holds(&title, suite.bound, suite.explore);
        let title = format!("{title}, compares and stores");
        make(words::stores).fails(&title, suite.why, suite.bound, suite.explore);
    }
}

/// Runs all suites except the start, which has nothing special for words that start at 0.
fn explore_all<A: Subjected>(name: &str, make: fn(MakeWord) -> Subject<A>) {
    let suites = [
        pairs(),
        after_a_grant(),
        among_three(),
        at_one_tick(),
        at_different_ticks(),
    ];
    explore(name, make, suites);
}

#[test]
fn leaky_queue() {
    let suites = [pairs(), among_three(), at_one_tick(), at_different_ticks()];
    explore("leaky queue", windows::queue, suites);
}

/// Three permits are taken from a queue at one tick, and two of them are free of delay: the last
/// one waits 2 ns, the time of one permit.
fn turns_in_the_queue(subject: &Subject<LeakyBucket>, run: &mut Run) {
    let one = || (Verb::take(1), subject.tick());
    let scenario = subject.scenario(&[], &[&[one(), one()], &[one()]]);
    let told = [
        "1 at 20, 2 left, 1 at 20, 1 left | 1 at 20, 0 left, in 2",
        "1 at 20, 2 left, 1 at 20, 0 left, in 2 | 1 at 20, 1 left",
        "1 at 20, 1 left, 1 at 20, 0 left, in 2 | 1 at 20, 2 left",
    ];
    scenario.explore_to(run, &told);
}

#[test]
fn each_caller_in_a_queue_is_told_its_turn() {
    windows::queue(words::cell).holds("windows::turns in the queue", None, turns_in_the_queue);
    let (name, why) = ("windows::turns, compares and stores", "granted twice");
    windows::queue(words::stores).fails(name, why, None, turns_in_the_queue);
}

#[test]
fn fixed_window() {
    explore_all("fixed window", windows::fixed);
}

#[test]
fn fixed_window_opened_by_the_first_hit() {
    explore_all("first hit", windows::first_hit);
}

#[test]
fn sliding_window() {
    explore_all("sliding window", windows::sliding);
}

#[test]
fn sliding_window_rounded_down() {
    let suites = [pairs(), at_different_ticks()];
    explore("rounded down", windows::sliding_down, suites);
}

#[test]
fn intervals() {
    explore_all("intervals", windows::intervals);
}

#[test]
fn intervals_that_start_empty() {
    explore("empty intervals", windows::empty_intervals, [starts()]);
}

#[test]
fn intervals_greedy() {
    explore_all("greedy intervals", windows::greedy);
}

#[test]
fn any_algorithm() {
    let suites = [pairs(), at_different_ticks()];
    explore("any", windows::any, suites);
}
