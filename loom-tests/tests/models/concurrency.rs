//! A concurrency limit: actors concurrently enter, leave, wait, give up and set the limit. No
//! waiter is overtaken or forgotten, and nothing is lost. (`concurrency_word.rs` has the models of
//! the word alone.)

use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};
use tollgate_loom_tests::Polled;
use tollgate_loom_tests::prelude::*;

pub(super) type Tested = Arc<Concurrency>;
type Guard = ConcurrencyGuard<Tested>;

pub(super) fn limiter(limit: u64) -> Tested {
    Arc::new(Concurrency::new(limit).expect("a limit"))
}

/// A limiter whose waiters wait for at most `waiting` permits.
fn bounded(limit: u64, waiting: u64) -> Tested {
    let limiter = Concurrency::new(limit).expect("a limit");
    Arc::new(limiter.max_waiting_permits(waiting))
}

/// A limiter, and a guard that is inside.
fn held(limiter: Tested, n: u64) -> (Tested, Guard) {
    let held = limiter.try_enter_owned(n).expect("room");
    (limiter, held)
}

/// A waiter that is polled by hand.
type Waiter = Polled<EnterFuture<Tested>>;

/// Begins to wait, and polls once.
fn waits(limiter: &Tested, n: u64) -> Waiter {
    Polled::new(Box::pin(limiter.enter_owned(n)))
}

/// Returns what a waiter was told when all actors have finished, polling again if necessary. Then
/// it leaves.
fn end(mut waiter: Waiter) -> &'static str {
    let at_once = waiter.answer.is_some();
    if !at_once {
        waiter.poll();
    }
    let woken = waiter.wake_flag.is_set();
    match (&waiter.answer, at_once || woken) {
        (Some(_), false) => "not woken",
        (Some(Err(_)), true) => "refused",
        (Some(Ok(_)), true) => "inside",
        (None, _) => "waits",
    }
}

/// Returns the result of `try_enter` as a word.
pub(super) fn said<T>(entered: &Result<T, Denied>) -> &'static str {
    match entered {
        Ok(_) => "inside",
        Err(denied) if denied.is_permanent() => "refused",
        Err(_) => "busy",
    }
}

/// Checks that nothing is counted after all have left.
pub(super) fn check_empty(limiter: &Concurrency) {
    let (inside, waiting) = (limiter.inside(), limiter.waiting());
    assert_eq!((inside, waiting), (0, 0), "something was lost");
}

/// One actor leaves a full limiter while two begin to wait. One of these wants the whole limit.
fn leave_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(2), 2);
        let wait = |n| {
            let limiter = Arc::clone(&limiter);
            actor(move || Some(waits(&limiter, n)))
        };
        let leave = actor(move || {
            drop(held);
            None
        });
        let told = layout.act(vec![leave, wait(2), wait(1)]);
        let mut waiters: Vec<Waiter> = told.into_iter().flatten().collect();
        // A waiter that is inside leaves first, which lets the other one in.
        waiters.sort_by_key(|waiter| waiter.answer.is_none());
        let inside = limiter.inside();
        let (first, other) = (waiters.remove(0), waiters.remove(0));
        let others_turn = other.wake_flag.is_set();
        let ends = match others_turn && first.answer.is_none() {
            true => [end(other), end(first)],
            false => [end(first), end(other)],
        };
        assert_eq!(ends, ["inside", "inside"], "a waiter was forgotten");
        assert!((1..=2).contains(&inside), "no waiter came in");
        check_empty(&limiter);
    });
}

/// The same with threads that sleep: loom would report one that is never woken.
fn threads_sleep(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(1), 1);
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let wait = move || one.enter().wait().map(|guard| guard.n());
        let leave = move || {
            drop(held);
            other.enter().wait().map(|guard| guard.n())
        };
        assert_eq!(layout.both(wait, leave), (Ok(1), Ok(1)));
        check_empty(&limiter);
    });
}

#[test]
fn no_waiter_is_forgotten() {
    let why = "a waiter was forgotten";
    model("one leaves, two wait", Some(3), leave_against_enter)
        .bound(Some(2))
        .finds([Fault::LetsNoneIn], why)
        .finds([Fault::Blind(source::wait())], why);
    model("two sleep in turn", Some(3), threads_sleep);
}

/// One actor leaves while another tries to enter and a third waits in line.
fn leave_against_try(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(2), 2);
        let waiter = waits(&limiter, 2);
        let newcomer = Arc::clone(&limiter);
        let ((), told) = layout.both(
            move || drop(held),
            move || said(&newcomer.try_enter_owned(1)),
        );
        let end = end(waiter);
        assert_eq!((told, end), ("busy", "inside"), "a waiter was overtaken");
        check_empty(&limiter);
    });
}

#[test]
fn no_waiter_is_overtaken() {
    model("one leaves, one tries, one waits", None, leave_against_try)
        .finds([Fault::Overtakes], "a waiter was overtaken");
}

/// Two actors wait. One that is inside leaves while the first waiter gives up. That waiter may
/// already have been admitted.
fn leave_against_give_up(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(1), 1);
        let (first, second) = (waits(&limiter, 1), waits(&limiter, 1));
        layout.both(move || drop(held), move || drop(first));
        let end = end(second);
        assert_eq!(end, "inside", "capacity that was handed over was lost");
        check_empty(&limiter);
    });
}

/// The first waiter wants more than is available and gives up. Meanwhile a newcomer arrives that
/// fits.
fn enter_against_give_up(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(2), 1);
        let large = waits(&limiter, 2);
        let newcomer = Arc::clone(&limiter);
        let ((), waiter) = layout.both(move || drop(large), move || waits(&newcomer, 1));
        let end = end(waiter);
        drop(held);
        assert_eq!(end, "inside", "a waiter was forgotten");
        check_empty(&limiter);
    });
}

#[test]
fn a_waiter_that_gives_up_loses_nothing() {
    let name = "one leaves, one gives up, one waits";
    let why = "capacity that was handed over was lost";
    model(name, None, leave_against_give_up).finds([Fault::KeepsWhatWasHanded], why);
    model("one gives up, one arrives", None, enter_against_give_up)
        .finds([Fault::LetsNoneIn], "a waiter was forgotten");
}

/// The only waiter that the line holds gives up while another one arrives.
fn give_up_against_a_bound(run: &mut Run) {
    run.explore_all(vec!["refused", "waits"], move |layout| {
        let (limiter, held) = held(bounded(1, 1), 1);
        let first = waits(&limiter, 1);
        let newcomer = Arc::clone(&limiter);
        let arrives = move || end(waits(&newcomer, 1));
        let ((), arrived) = layout.both(move || drop(first), arrives);
        let next = end(waits(&limiter, 1));
        assert_eq!(next, "waits", "a waiter that left is counted");
        drop(held);
        check_empty(&limiter);
        arrived
    });
}

/// One actor leaves while two arrive, of which one may wait.
fn leave_against_a_bound(run: &mut Run) {
    run.explore_all(vec!["both", "one"], move |layout| {
        let (limiter, held) = held(bounded(1, 1), 1);
        let wait = || {
            let limiter = Arc::clone(&limiter);
            actor(move || Some(waits(&limiter, 1)))
        };
        let leave = actor(move || {
            drop(held);
            None
        });
        let told = layout.act(vec![leave, wait(), wait()]);
        let (refused, waiters): (Vec<_>, Vec<_>) = told
            .into_iter()
            .flatten()
            .partition(|waiter| matches!(waiter.answer, Some(Err(_))));
        assert!(
            refused.len() <= 1,
            "a waiter was refused although there was room"
        );
        let standing = limiter.waiting();
        assert!(standing <= 1, "a line holds more than its bound");
        let said = ["both", "one"][refused.len()];
        // The waiter that was let in leaves first, which lets the other one in.
        let mut waiters = waiters;
        waiters.sort_by_key(|waiter| waiter.answer.is_none() && !waiter.wake_flag.is_set());
        for waiter in waiters {
            assert_eq!(end(waiter), "inside", "a waiter was forgotten");
        }
        check_empty(&limiter);
        said
    });
}

#[test]
fn a_line_holds_at_most_its_bound() {
    let name = "one gives up, one arrives, one may wait";
    model(name, Some(3), give_up_against_a_bound)
        .finds([Fault::KeepsItsPermits], "a waiter that left is counted");
    let name = "one leaves, two arrive, one may wait";
    model(name, Some(2), leave_against_a_bound);
}

/// One actor leaves while a waiter's time runs out: the waiter is either let in or too late.
fn leave_against_timeout(run: &mut Run) {
    run.explore_all(vec!["inside", "busy"], move |layout| {
        let (limiter, held) = held(limiter(1), 1);
        let other = Arc::clone(&limiter);
        // The timeout has already passed at the first check.
        let waits = move || said(&other.enter_owned(1).wait_timeout(Duration::from_nanos(1)));
        let ((), told) = layout.both(move || drop(held), waits);
        check_empty(&limiter);
        told
    });
}

#[test]
fn a_waiter_that_times_out_loses_nothing() {
    model("one leaves, one times out", None, leave_against_timeout)
        .finds([Fault::KeepsWhatWasHanded], "something was lost");
}

/// The limit is raised while a newcomer arrives.
fn raise_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(1), 1);
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let raises = move || assert_eq!(one.set_limit(2), Ok(1));
        let ((), waiter) = layout.both(raises, move || waits(&other, 1));
        let end = end(waiter);
        drop(held);
        assert_eq!(end, "inside", "a waiter was forgotten");
        assert_eq!(limiter.limit(), 2);
        check_empty(&limiter);
    });
}

/// The limit is lowered while a newcomer arrives that wants the whole old limit.
fn lower_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, held) = held(limiter(2), 1);
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let lowers = move || assert_eq!(one.set_limit(1), Ok(2));
        let ((), waiter) = layout.both(lowers, move || waits(&other, 2));
        let end = end(waiter);
        drop(held);
        assert_eq!(end, "refused", "a waiter waits for more than the limit");
        check_empty(&limiter);
    });
}

/// The limit is lowered while an actor leaves and enters again.
fn lower_against_leave(run: &mut Run) {
    run.explore_all(vec!["inside", "busy"], move |layout| {
        let limiter = limiter(3);
        let stays = limiter.try_enter_owned(1).expect("room");
        let goes = limiter.try_enter_owned(1).expect("room");
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let lowers = move || assert_eq!(one.set_limit(2), Ok(3));
        let ((), entered) = layout.both(lowers, move || {
            drop(goes);
            other.try_enter_owned(2)
        });
        let (said, inside) = (said(&entered), limiter.inside());
        drop((entered, stays));
        let right = if said == "inside" { 3 } else { 1 };
        assert_eq!(inside, right, "an actor is not counted");
        assert_eq!(limiter.limit(), 2, "the limit was not set");
        check_empty(&limiter);
        said
    });
}

#[test]
fn the_limit_changes_while_others_enter() {
    let name = "the limit is raised, one arrives";
    model(name, None, raise_against_enter).finds([Fault::LetsNoneIn], "a waiter was forgotten");
    let name = "the limit is lowered, one arrives";
    let why = "a waiter waits for more than the limit";
    model(name, None, lower_against_enter).finds([Fault::LowersSilently], why);
    let name = "the limit is lowered, one leaves and enters again";
    let why = "not counted | was lost | was not set";
    model(name, None, lower_against_leave).finds([Fault::Blind(source::new_limit())], why);
}
