//! Shards: threads take from each other's parts, and from several at once, and put back what they can't use,
//! while others take, give back, charge and reset. Never is one granted too many; at a standing tick nothing is
//! stranded; who stops stops nobody. And mistakes in that are found.

#![cfg(tollgate_loom)]

use std::sync::Arc;
use std::time::Duration;

use tollgate::history::Bounded;
use tollgate::primitive::modelled::Mistake;
use tollgate::{
    Algorithm, AnyAlgorithm, FixedWindow, Granted, NoClock, Quota, Sharded, Tick, TokenBucket,
};
use tollgate_loom_tests::{
    Answer, Deed as Any, Play as AnyPlay, Played, Run, mistaken, model, stored,
};

type Gate = Sharded<AnyAlgorithm, NoClock>;
type Deed = Any<Gate, Option<Granted>>;
type Play = AnyPlay<Gate, Option<Granted>>;

/// When plays begin.
const NOW: u64 = 100;
/// A part's permit comes again.
const NEXT: u64 = NOW + 4;

/// Three permits, one each 2 ns. Of two parts the first has two and the other one, and each gets one in 4 ns.
fn bucket() -> AnyAlgorithm {
    let quota = Quota::per(1, Duration::from_nanos(2)).burst(3);
    TokenBucket::new(quota).expect("a quota").into()
}

/// Three permits in each 4 ns: from 96, from 100 and so on.
fn windows() -> AnyAlgorithm {
    let quota = Quota::per(3, Duration::from_nanos(4));
    FixedWindow::new(quota).expect("a quota").into()
}

fn granted(granted: Granted, memory: &mut Option<Granted>) -> Answer {
    *memory = Some(granted);
    Answer::Granted(granted)
}

/// Takes `n` from home on.
fn take_at(n: u64, home: usize, at: u64) -> Deed {
    let name = format!("take {n} at {at}, from {home} on");
    Deed::new(name, move |gate, memory| {
        let view = gate.at(Tick::from_nanos(at)).from_shard(home);
        match view.try_acquire_n(n) {
            Ok(grant) => granted(grant, memory),
            Err(denied) => Answer::Denied(denied),
        }
    })
}

fn take(n: u64, home: usize) -> Deed {
    take_at(n, home, NOW)
}

fn take_up_to_at(n: u64, home: usize, at: u64) -> Deed {
    let name = format!("take up to {n} at {at}, from {home} on");
    Deed::new(name, move |gate, memory| {
        let view = gate.at(Tick::from_nanos(at)).from_shard(home);
        granted(view.take_up_to(n), memory)
    })
}

fn undo() -> Deed {
    Deed::new("undo", |gate, memory| match memory.take() {
        Some(granted) => Answer::CameBack(gate.at(Tick::from_nanos(NOW)).undo(granted)),
        None => Answer::Done,
    })
}

fn refund(n: u64) -> Deed {
    Deed::new(format!("refund {n}"), move |gate, _| {
        Answer::CameBack(gate.at(Tick::from_nanos(NOW)).refund(n))
    })
}

fn reset() -> Deed {
    Deed::new("reset", |gate, _| {
        gate.reset();
        Answer::Done
    })
}

fn available() -> Deed {
    Deed::new("available", |gate, _| {
        Answer::Count(gate.at(Tick::from_nanos(NOW)).available())
    })
}

/// A play at two shards. When all have come to their end all that is there at this tick is taken, and what
/// comes in the next one.
fn play_until(algorithm: fn() -> AnyAlgorithm, last: u64) -> Play {
    let make =
        move || Sharded::starting_at(algorithm(), 2, NoClock, Tick::ZERO).expect("it splits");
    Play::at(make).after(move |gate, _| {
        let ticks = [last, last + 4];
        let drains = ticks.map(|at| take_up_to_at(9, 0, at).act(gate, &mut None));
        drains.to_vec()
    })
}

/// The same at one tick, where permits only are taken and come back: then all that was not used is there.
fn standing() -> Play {
    play_until(bucket, NOW).rule(|played| {
        let (taken, back) = balance(played);
        assert!(
            taken <= 3 + back,
            "{taken} were taken, and {back} came back"
        );
        assert!(taken == 3 + back, "{} permits were lost", 3 + back - taken);
    })
}

/// What was taken, and came back, until the end of the first drain.
fn balance(played: &Played) -> (u64, u64) {
    let (mut taken, mut back) = (0, 0);
    for answer in played.all().take(played.all().count() - 1) {
        match answer {
            Answer::Granted(granted) => taken += granted.n(),
            Answer::CameBack(n) => back += n,
            _ => {}
        }
    }
    (taken, back)
}

/// Takes from the own part, and then from the sibling.
fn siblings(run: &mut Run) {
    let one = standing().actor(&[take(1, 0), take(1, 0)]);
    one.actor(&[take(1, 1), take(1, 1)]).explore(run);
    let one = standing().actor_after(&[take(1, 0)], &[take(1, 1)]);
    one.actor(&[take(1, 1)]).explore(run);
    let all = standing().actor(&[take_up_to_at(3, 0, NOW)]);
    all.actor(&[take_up_to_at(3, 1, NOW)]).explore_openly(run);
}

/// Takes from both parts, of which each has one.
fn several(run: &mut Run) {
    let both: [&[&str]; 2] = [
        &["2 at 100, 0 left", "not for 4"],
        &["not for 4", "1 at 100, 0 left"],
    ];
    let play = standing().actor_after(&[take(1, 0)], &[take(2, 0)]);
    play.actor(&[take(1, 1)]).explore_to(run, &both);
    let play = standing().actor_after(&[take(1, 0)], &[take(2, 1)]);
    play.actor(&[take(1, 1)]).explore_to(run, &both);
    let two = standing().actor_after(&[take(1, 0)], &[take(2, 0)]);
    two.actor(&[take(2, 1)]).explore_openly(run);
    let two = standing().actor_after(&[take(1, 0)], &[take(2, 0)]);
    two.actor(&[take(2, 0)]).explore_openly(run);
}

#[test]
fn takes_from_siblings() {
    model("shards::takes_from_siblings", None, siblings);
}
#[test]
fn takes_from_several() {
    model("shards::takes_from_several", None, several);
}
