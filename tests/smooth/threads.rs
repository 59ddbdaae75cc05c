//! Threads that take turns together, on clocks that differ and while the rate changes: nobody is early, nothing is
//! lost, and the bound holds over every interval.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tollgate::smooth::Turn;
use tollgate::{NoClock, SmoothBursty, SmoothWarmingUp, Tick};

use crate::bound::{Gone, excess};
use crate::random::Random;
use crate::{SECOND, bursty, tick, warming_up};

const THREADS: u64 = 4;

/// What four threads got, each asking by `ask` with a random generator of its own.
fn turns<G: Send + Sync + 'static>(
    gate: &Arc<G>,
    ask: impl Fn(&G, &mut Random, u64) -> Option<Turn> + Send + Sync + Copy + 'static,
) -> Vec<Turn> {
    let threads = (0..THREADS).map(|thread| {
        let gate = Arc::clone(gate);
        thread::spawn(move || {
            let mut random = Random(thread);
            let turns = (0..400).filter_map(|call| ask(&gate, &mut random, call));
            turns.collect::<Vec<_>>()
        })
    });
    let threads: Vec<_> = threads.collect();
    let turns = threads
        .into_iter()
        .map(|thread| thread.join().expect("turns"));
    turns.flatten().collect()
}

fn gone(turns: &[Turn]) -> Vec<Gone> {
    let gone = turns.iter().map(|turn| Gone {
        due: turn.due().as_nanos(),
        n: turn.n(),
    });
    gone.collect()
}

/// At a standing tick each turn begins where another one's cost ends: nothing is lost and nothing is given twice.
#[test]
fn costs_add_up() {
    let gate = Arc::new(bursty(1_000.0));
    let mut turns = turns(&gate, |gate, random, _| {
        gate.reserve_at(1 + random.below(5), Tick::ZERO).ok()
    });
    turns.sort_by_key(Turn::due);
    let mut next = 0;
    for turn in &turns {
        assert_eq!(turn.due(), tick(next));
        next += turn.n() * SECOND / 1_000;
    }
    assert_eq!(gate.next_free_at(Tick::ZERO), tick(next));
}

fn skewed(random: &mut Random, call: u64) -> Tick {
    // A millisecond a call, up to 20 of them ahead or behind, and a pause now and then.
    tick((call + call / 100 * 700 + random.below(20)) * 1_000_000)
}

fn ask_bursty(gate: &SmoothBursty<NoClock>, random: &mut Random, call: u64) -> Option<Turn> {
    let (n, now) = (1 + random.below(4), skewed(random, call));
    match random.below(3) {
        0 => gate.try_acquire_n_at(n, now).ok(),
        1 => gate
            .try_acquire_timeout_at(n, Duration::from_millis(30), now)
            .ok(),
        _ => gate.reserve_at(n, now).ok(),
    }
}

fn ask_warming_up(gate: &SmoothWarmingUp<NoClock>, random: &mut Random, call: u64) -> Option<Turn> {
    gate.reserve_at(1 + random.below(4), skewed(random, call))
        .ok()
}

#[test]
fn no_interval_has_too_many() {
    for rate in [3_000.0, 7_777.7] {
        let gate = Arc::new(bursty(rate));
        let turns = turns(&gate, ask_bursty);
        assert!(turns.len() > 400);
        let most = excess(&mut gone(&turns), rate, rate);
        assert!(most <= 1e-6, "{most} too many");
        // What is stored when it is warm is not free.
        let gate = Arc::new(warming_up(rate, Duration::from_millis(300)));
        let turns = turns_of_warming_up(&gate);
        let most = excess(&mut gone(&turns), rate, 0.0);
        assert!(most <= 1e-6, "{most} too many");
    }
}

fn turns_of_warming_up(gate: &Arc<SmoothWarmingUp<NoClock>>) -> Vec<Turn> {
    turns(gate, ask_warming_up)
}

/// Rates that change while turns are taken: at a standing tick each cost is that of one of the rates, whole.
#[test]
fn each_cost_is_that_of_one_rate() {
    let gate = Arc::new(bursty(1_000.0));
    let setter = Arc::clone(&gate);
    let sets = thread::spawn(move || {
        for set in 0..4_000_u64 {
            let rate = if set % 2 == 0 { 10.0 } else { 1_000.0 };
            setter.set_rate_at(rate, Tick::ZERO).expect("a rate");
        }
    });
    let mut turns = turns(&gate, |gate, _, _| gate.reserve_at(1, Tick::ZERO).ok());
    sets.join().expect("sets");
    turns.sort_by_key(Turn::due);
    let mut dues: Vec<_> = turns.iter().map(|turn| turn.due().as_nanos()).collect();
    dues.push(gate.next_free_at(Tick::ZERO).as_nanos());
    let (mut slow, mut beyond) = (0, 0);
    for pair in dues.windows(2) {
        let cost = pair[1] - pair[0];
        // And the nanoseconds that changes of the rate cost: one for sixteen.
        slow += u64::from(cost >= SECOND / 10);
        let over = cost
            - if cost >= SECOND / 10 {
                SECOND / 10
            } else {
                SECOND / 1_000
            };
        assert!(over <= 4_000 / 16, "{cost}");
        beyond += over;
    }
    assert!(beyond <= 4_000 / 16, "{beyond}");
    assert!(slow <= turns.len() as u64);
    assert_eq!(turns.len() as u64, THREADS * 400);
}
