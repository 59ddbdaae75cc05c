//! Shards: threads take from each other's shards and from several at once, and roll back what they
//! cannot use, while others take, give back, charge and reset. No permit is granted twice. At a
//! fixed tick every permit can be taken. A thread that stops does not hold up the others. The
//! models find faults in this.

use tollgate_audit::Bounded;
use tollgate_loom_tests::calls;
use tollgate_loom_tests::prelude::*;

pub(super) type Tested = Sharded<AnyAlgorithm, NoClock>;
pub(super) type Action = calls::Call<Tested>;
pub(super) type Scenario = AnyScenario<Tested, Option<Granted>>;

/// The tick at which scenarios begin.
pub(super) const NOW: u64 = 100;
/// The tick at which a shard has its next permit.
const NEXT: u64 = NOW + 4;

/// Three permits, and one every 2 ns. Each of two shards has one and a half, and gets one every 4
/// ns.
pub(super) fn bucket() -> AnyAlgorithm {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(3);
    TokenBucket::new(quota).expect("a quota").into()
}

/// Three permits in each 4 ns: from 96, from 100 and so on.
fn windows() -> AnyAlgorithm {
    let quota = Quota::per(3, Duration::from_nanos(4));
    FixedWindow::new(quota).expect("a quota").into()
}

/// Three permits in each 4 ns, which begin with a permit.
fn first_hit() -> AnyAlgorithm {
    let windows = FixedWindow::new(Quota::per(3, Duration::from_nanos(4))).expect("a quota");
    windows.opened_by_first_hit().expect("a window").into()
}

/// Takes `n` permits, starting at shard `first`.
pub(super) fn take_at(n: u64, first: usize, at: u64) -> Action {
    let name = format!("take {n} at {at}, from {first} on");
    Action::new(name, move |limiter, memory| {
        let view = limiter.at(Tick::from_nanos(at)).from_shard(first);
        calls::remember(memory, view.try_acquire_n(n))
    })
}

pub(super) fn take(n: u64, first: usize) -> Action {
    take_at(n, first, NOW)
}

/// Takes the permit of the second shard, and keeps the earlier grant in memory.
pub(super) fn take_from_second() -> Action {
    Action::new("take 1 from 1 on, and forget it", |limiter, _| {
        take(1, 1).act(limiter, &mut None)
    })
}

fn take_up_to_at(n: u64, first: usize, at: u64) -> Action {
    let name = format!("take up to {n} at {at}, from {first} on");
    Action::new(name, move |limiter, memory| {
        let view = limiter.at(Tick::from_nanos(at)).from_shard(first);
        calls::remember(memory, Ok(view.take_up_to(n)))
    })
}

pub(super) fn undo() -> Action {
    calls::undo(NOW)
}

pub(super) fn refund(n: u64) -> Action {
    calls::refund(n, NOW)
}

pub(super) fn reset() -> Action {
    Action::new("reset", |limiter, _| {
        limiter.reset();
        Answer::Done
    })
}

pub(super) fn charge(n: u64) -> Action {
    calls::charge(n, NOW)
}

fn available() -> Action {
    calls::available(NOW)
}

/// A scenario on this many shards.
pub(super) fn split(algorithm: fn() -> AnyAlgorithm, shards: usize) -> Scenario {
    Scenario::at(move || {
        Sharded::starting_at(algorithm(), shards, NoClock, Tick::ZERO).expect("it splits")
    })
}

/// A scenario on two shards. At its end everything available is taken, at the tick `last` and again
/// 4 ns later.
fn play_until(algorithm: fn() -> AnyAlgorithm, last: u64) -> Scenario {
    split(algorithm, 2).after(move |limiter, _| {
        let ticks = [last, last + 4];
        let drains = ticks.map(|at| take_up_to_at(9, 0, at).act(limiter, &mut None));
        drains.to_vec()
    })
}

/// A rule: at most `most` permits are taken beyond those that come back, and at least `least`.
fn balanced(least: u64, most: u64) -> impl Fn(&ScenarioOutcome) {
    move |played| {
        let (taken, back) = balance(played);
        let what = format!("{taken} were taken, and {back} came back");
        assert!(taken <= most + back, "{what}");
        assert!(taken >= least + back, "permits were lost: {what}");
    }
}

/// A scenario at one tick in which permits are only taken and given back: at its end, everything
/// unused is available.
fn standing() -> Scenario {
    play_until(bucket, NOW).rule(balanced(3, 3))
}

/// One actor asks for more than is available while another takes the rest. A request that a full
/// limiter could grant is not denied forever.
fn told_when(run: &mut Run) {
    let says_when = standing().rule(|played| {
        for answer in played.all() {
            let is_told = |denied: &tollgate::Denied| denied.retry_after().is_some();
            assert!(
                !matches!(answer, Answer::Denied(denied) if !is_told(denied)),
                "denied forever"
            );
        }
    });
    let asks = says_when.actor_after(&[take(1, 1)], &[take(3, 0)]);
    asks.actor(&[take(2, 0)]).explore(run);
}

#[test]
fn a_denial_of_a_request_that_fits_says_when() {
    let name = "shards::a_denial_of_a_request_that_fits_says_when";
    model(name, Some(3), told_when);
}

/// Returns what was taken, and what came back, until the end of the first drain.
pub(super) fn balance(played: &ScenarioOutcome) -> (u64, u64) {
    let (mut taken, mut back) = (0, 0);
    for answer in played.all().take(played.all().count() - 1) {
        match answer {
            Answer::Granted(granted) => taken += granted.n(),
            Answer::Returned(n) => back += n,
            _ => {}
        }
    }
    (taken, back)
}

/// Takes a permit from the thread's own shard, from the other shard, and half a permit from each.
fn siblings(run: &mut Run) {
    let one = standing().actor(&[take(1, 0), take(1, 0)]);
    one.actor(&[take(1, 1), take(1, 1)]).explore_openly(run);
    let one = standing().actor_after(&[take(1, 0)], &[take(1, 1)]);
    one.actor(&[take(1, 1)]).explore_openly(run);
    let all = standing().actor(&[take_up_to_at(3, 0, NOW)]);
    all.actor(&[take_up_to_at(3, 1, NOW)]).explore_openly(run);
}

/// Requests that find both shards full begin the windows of both, and others come meanwhile. No
/// window has more than its permits, and what all want together is granted.
fn windows_begin(run: &mut Run) {
    let cases: [[&[Action]; 2]; 4] = [
        [&[take(1, 0)], &[take(1, 1)]],
        [&[take(1, 0)], &[take(2, 1)]],
        [&[take(1, 0)], &[take_up_to_at(2, 1, NOW)]],
        [&[take(1, 0), undo()], &[take(1, 1)]],
    ];
    for [one, other] in cases {
        let scenario = play_until(first_hit, NOW).rule(balanced(3, 3));
        scenario.actor(one).actor(other).explore_openly(run);
    }
}

#[test]
fn windows_of_all_shards_begin_at_once() {
    let name = "shards::windows_of_all_shards_begin_at_once";
    model(name, deeper(2, 3), windows_begin)
        .bound(Some(3))
        .stored("were taken | no order");
}

/// Takes from both shards, each of which has one permit.
fn several(run: &mut Run) {
    // A request for one permit takes half of it from each shard, and another thread may see the
    // first half taken.
    let told = [
        "2 at 100, 0 left | denied for 2",
        "denied for 2 | 1 at 100, 0 left",
        "denied for 2 | 1 at 100, 1 left",
        "denied for 1 | 1 at 100, 1 left",
    ];
    for first in [0, 1] {
        let scenario = standing().actor_after(&[take(1, 0)], &[take(2, first)]);
        scenario.actor(&[take(1, 1)]).explore_to(run, &told);
    }
}

/// Two actors take from both shards, starting at different shards and at the same one.
fn two_of_several(run: &mut Run) {
    let ends = standing().actor_after(&[take(1, 0)], &[take(2, 0)]);
    ends.actor(&[take(2, 1)]).explore_openly(run);
    let same = standing().actor_after(&[take(1, 0)], &[take(2, 0)]);
    same.actor(&[take(2, 0)]).explore_openly(run);
}

/// Each verb against each other from each state, at one tick. Permits that are returned during a
/// rollback may be refused, and those that the rolled-back request had taken may be lost: fewer
/// than the three that it wanted. But no permit is granted twice.
fn each_verb_against_each_other(run: &mut Run) {
    let states: [&[Action]; 3] = [&[], &[take(1, 0)], &[take(2, 0), take(1, 1)]];
    let verbs = |at| {
        [
            take_at(1, 0, at),
            take_at(1, 1, at),
            take_at(2, 1, at),
            take_at(3, 0, at),
            take_up_to_at(3, 1, at),
            undo(),
            refund(1),
            available(),
        ]
    };
    for state in states {
        for (one, other) in pairs(verbs, NOW, &[NOW]) {
            let scenario = play_until(bucket, NOW).rule(balanced(1, 3));
            let scenario = scenario.actor_after(state, &[one]);
            scenario.actor(&[other]).explore_openly(run);
        }
    }
}

/// A reset, and a charge into debt, against requests that take from both shards and against
/// give-backs, after `before` permits were taken.
fn resets_and_charges(run: &mut Run, before: u64) {
    let others = [take(1, 0), take(3, 0), take(2, 1), undo(), refund(1)];
    for other in others {
        // A reset allows one more burst.
        let resets = play_until(bucket, NOW).rule(balanced(0, 6));
        let resets = resets.actor_after(&[take(before, 0)], std::slice::from_ref(&other));
        resets.actor(&[reset(), take(1, 1)]).explore_openly(run);

        let charges = play_until(bucket, NOW).rule(|played| {
            let (taken, back) = balance(played);
            let charged = played.all().map(|answer| match answer {
                Answer::Charged(charged) => charged.n() - charged.debt(),
                _ => 0,
            });
            let taken = taken + charged.sum::<u64>();
            assert!(
                taken <= 3 + back,
                "{taken} were taken, and {back} came back"
            );
        });
        let charges = charges.actor_after(&[take(before, 0)], std::slice::from_ref(&other));
        charges.actor(&[charge(2)]).explore_openly(run);
    }
}

/// Checks that no more than `limit` is granted at this tick, although permits came back before.
fn at_most(limit: u64, tick: u64, scenario: Scenario) -> Scenario {
    scenario.rule(move |played| {
        let then = played.all().map(|answer| match answer {
            Answer::Granted(granted) if granted.at().as_nanos() == tick => granted.n(),
            _ => 0,
        });
        let then = then.sum::<u64>();
        assert!(then <= limit, "{then} were granted at one tick");
    })
}

/// Eight permits, and one every 2 ns: two shards of four, from which single permits are taken.
pub(super) fn large() -> AnyAlgorithm {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(8);
    TokenBucket::new(quota).expect("a quota").into()
}

/// One thread asks for two permits, one in each shard, and another thread takes the second first.
/// Then permits come back and, once the shards are full, one more is taken. Now the first shard's
/// word equals the one that the first thread left.
fn the_same_word_again(run: &mut Run) {
    let full = NOW + 12;
    let before = [take(8, 0), refund(2)];
    let other = [take_from_second(), refund(2), take_at(1, 0, full)];
    let scenario = at_most(8, full, play_until(large, full));
    let scenario = scenario.actor_after(&before, &[take(2, 0)]);
    scenario.actor(&other).explore_rules(run);
}

/// The same with a different word: later, each shard has two permits more than were left.
fn another_word(run: &mut Run) {
    let later = NOW + 8;
    let other = [take(1, 1), take_at(1, 0, later)];
    let scenario = at_most(5, later, play_until(large, later));
    let scenario = scenario.actor_after(&[take(6, 0)], &[take(2, 0)]);
    scenario
        .actor(&other)
        .rule(|played| played.check_bound(&large().bound()))
        .explore_rules(run);
}

/// 128 permits: a shard may have two fewer than the fullest shard had at the last check.
fn loose() -> AnyAlgorithm {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(128);
    TokenBucket::new(quota).expect("a quota").into()
}

/// Three permits are left in each shard, and a check of all shards has stored a limit. Requests
/// take from their own shard and from the fullest one without another check, while others take and
/// give back.
fn after_a_look(run: &mut Run) {
    let cases: [[&[Action]; 2]; 4] = [
        [&[take(1, 0), take(1, 0)], &[take(1, 1)]],
        [&[take(1, 0), take(1, 0)], &[take(1, 0)]],
        [&[take(1, 0), take(1, 0)], &[take(3, 1)]],
        [&[take(1, 0), undo()], &[take(1, 0), take(1, 1)]],
    ];
    for [one, other] in cases {
        let scenario = play_until(loose, NOW).rule(balanced(128, 128));
        let before = [take(120, 0), take(1, 0), take(1, 1)];
        let scenario = scenario.actor_after(&before, one);
        scenario.actor(other).explore_openly(run);
    }
}

/// Threads at different ticks together keep the bound of the whole limiter.
fn at_different_ticks(run: &mut Run) {
    for algorithm in [bucket, windows] {
        let cases: [[&[Action]; 2]; 4] = [
            [&[take(3, 0)], &[take_at(1, 1, NEXT), take(1, 0)]],
            [&[take(2, 1)], &[take(1, 0), take_at(2, 0, NEXT)]],
            [&[take_at(3, 0, NEXT)], &[take(2, 1)]],
            [
                &[take_at(1, 0, NEXT), take(2, 0)],
                &[take_up_to_at(3, 1, NOW)],
            ],
        ];
        for [one, other] in cases {
            let scenario = play_until(algorithm, NEXT).actor(one).actor(other);
            let bound = algorithm().bound();
            scenario
                .rule(move |played| played.check_bound(&bound))
                .explore_openly(run);
        }
    }
}

/// Three threads, one of which asks for everything.
fn three_threads(run: &mut Run) {
    let scenario = standing().actor(&[take(3, 0)]).actor(&[take(1, 1)]);
    scenario.actor(&[take(1, 0)]).explore_rules(run);
}

/// Three threads ask for four permits, and there are three. A thread that took half a permit and
/// finds the rest taken cannot roll back its half if another thread has changed the shard since.
fn three_threads_for_four(run: &mut Run) {
    let scenario = play_until(bucket, NOW).rule(balanced(2, 3));
    let scenario = scenario.actor(&[take(1, 0)]).actor(&[take(1, 1)]);
    scenario
        .actor(&[take_up_to_at(2, 0, NOW)])
        .explore_openly(run);
}

/// The first actor stops forever, before each of its operations in turn. Only what it had taken is
/// lost.
fn one_stops(run: &mut Run) {
    let cases: [[&[Action]; 3]; 2] = [
        [&[take(1, 0)], &[take(2, 1)], &[take(1, 0)]],
        [&[take(1, 0)], &[undo()], &[take(2, 1)]],
    ];
    stopping(run, &cases);
}

/// The same, with more actions of the other meanwhile.
fn one_stops_long_before(run: &mut Run) {
    let cases: [[&[Action]; 3]; 2] = [
        [&[], &[take(3, 0)], &[take(1, 1), take(1, 0)]],
        [
            &[take(2, 0)],
            &[take_up_to_at(3, 1, NOW)],
            &[take(1, 0), refund(1)],
        ],
    ];
    stopping(run, &cases);
}

/// Runs these cases: what was done before, the actor that stops, and the one that goes on.
fn stopping(run: &mut Run, cases: &[[&[Action]; 3]]) {
    for [before, stops, goes_on] in cases {
        let scenario = play_until(bucket, NOW).rule(|played| {
            let (taken, back) = balance(played);
            // A stopped undo may have given back a permit without an answer.
            let back = back + 1;
            assert!(
                taken <= 3 + back,
                "{taken} were taken, and {back} came back"
            );
        });
        let scenario = scenario.actor_after(before, stops);
        scenario.actor(goes_on).explore_stopping(run, 0);
    }
}

/// The exchange that rolls back a shard's word.
fn roll_back() -> Operation {
    Source(&["sharded/shard.rs"]).site("compare_exchange(taken.after, taken.before)")
}

#[test]
fn takes_from_siblings() {
    model("shards::takes_from_siblings", Some(3), siblings).stored("were taken | no order");
}

#[test]
fn takes_from_several() {
    model("shards::takes_from_several", None, several)
        .finds([Fault::Idle(roll_back())], "permits were lost");
}

#[test]
fn two_take_from_several() {
    model("shards::two_take_from_several", Some(2), two_of_several);
}

#[test]
fn a_stored_limit_grants_no_more() {
    let name = "shards::a_stored_limit_grants_no_more";
    model(name, Some(3), after_a_look).stored("were taken | no order");
}

#[test]
fn each_against_each() {
    let name = "shards::each_against_each";
    model(name, Some(2), each_verb_against_each_other);
    let longer = "shards::each_against_each, of three preemptions";
    deep_model(longer, Some(3), each_verb_against_each_other);
}

#[test]
fn resets_and_debts() {
    model("shards::resets_and_debts", Some(1), |run| {
        resets_and_charges(run, 2);
    });
    let longer = "shards::resets_and_debts, of two preemptions";
    deep_model(longer, Some(2), |run| resets_and_charges(run, 2));
    let name = "shards::resets_and_debts_of_one";
    deep_model(name, Some(2), |run| resets_and_charges(run, 1));
}

#[test]
fn never_one_too_many() {
    let name = "shards::never_one_too_many";
    let longer = "shards::never_one_too_many, of three preemptions";
    let why = "were granted at one tick";
    model(name, Some(2), the_same_word_again)
        .bound(Some(3))
        .finds([Fault::EntersAnyhow], why);
    deep_model(longer, Some(3), the_same_word_again);
    model("shards::never_one_too_many, touched", Some(3), another_word)
        .finds([Fault::Blind(roll_back())], why);
}

#[test]
fn the_bound_of_the_whole() {
    let name = "shards::the_bound_of_the_whole";
    model(name, Some(2), at_different_ticks);
}

#[test]
fn three_at_once() {
    model("shards::three_at_once", deeper(1, 2), three_threads);
    let name = "shards::three_at_once_for_four";
    deep_model(name, Some(2), three_threads_for_four);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "shards::a_stopped_thread_stops_no_other";
    model(name, Some(2), one_stops);
    let name = "shards::a_thread_stopped_long_before";
    deep_model(name, Some(2), one_stops_long_before);
}
