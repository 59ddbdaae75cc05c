//! Threads take turns together, on clocks that differ and while the rate changes. None is early,
//! nothing is lost, and the bound holds over every interval.

use tollgate_smooth::SmoothReservation;

use crate::support::*;

const THREADS: u64 = 4;
const CALLS: u64 = 400;

/// Returns the turns of four threads.
fn turns(
    ask: impl Fn(&mut Random, u64) -> Option<SmoothReservation> + Sync,
) -> Vec<SmoothReservation> {
    let turns = on_threads(0..THREADS, |thread| {
        let mut random = Random(thread);
        let turns = (0..CALLS).filter_map(|call| ask(&mut random, call));
        turns.collect::<Vec<_>>()
    });
    let mut turns: Vec<_> = turns.into_iter().flatten().collect();
    // Of two turns with the same due tick, the one that was paid at once comes first.
    turns.sort_by_key(|turn| (turn.due(), turn.n()));
    turns
}

/// Returns the largest excess over `stored + rate * interval`, over intervals from one due tick to
/// another. All turns in the interval count except the last, which must be paid within it.
fn excess(turns: &[SmoothReservation], rate: f64, stored: f64) -> f64 {
    let mut worst = f64::NEG_INFINITY;
    for first in 0..turns.len() {
        let mut sum = 0;
        for pair in turns[first..].windows(2) {
            sum += pair[0].n();
            let interval = pair[1].due().saturating_since(turns[first].due());
            worst = worst.max(sum as f64 - stored - rate * interval.as_secs_f64());
        }
    }
    worst
}

#[test]
fn a_turn_that_comes_too_early_is_detected() {
    let turns = |early: u64| {
        let dues = [0, SECOND, 2 * SECOND - early, 3 * SECOND];
        dues.map(|due| bursty(1.0).reserve_at(10, tick(due)).expect("a turn"))
    };
    assert_eq!(excess(&turns(0), 10.0, 0.0), 0.0);
    assert!(excess(&turns(1), 10.0, 0.0) > 0.0);
    assert!(excess(&turns(1), 10.0, 1.0) < 0.0);
}

/// At a standing tick each turn begins when another one's cost ends.
#[test]
fn turns_at_one_tick_follow_each_other_without_gaps() {
    let limiter = bursty(1_000.0);
    let mut next = 0;
    for turn in turns(|random, _| limiter.reserve_at(1 + random.below(5), Tick::ZERO).ok()) {
        assert_eq!(turn.due(), tick(next));
        next += turn.n() * SECOND / 1_000;
    }
    assert_eq!(limiter.next_free_at(Tick::ZERO), tick(next));
}

/// Returns a millisecond for each call, up to 20 of them ahead or behind, with a pause now and
/// then.
fn skewed(random: &mut Random, call: u64) -> Tick {
    tick((call + call / 100 * 700 + random.below(20)) * 1_000_000)
}

#[test]
fn no_interval_exceeds_the_bound() {
    for rate in [3_000.0, 7_777.7] {
        let limiter = bursty(rate);
        let of_bursty = turns(|random, call| {
            let (n, now) = (1 + random.below(4), skewed(random, call));
            let turn = match random.below(3) {
                0 => limiter.try_acquire_n_at(n, now),
                1 => limiter.reserve_within_at(n, Duration::from_millis(30), now),
                _ => limiter.reserve_at(n, now),
            };
            turn.ok()
        });
        let most = excess(&of_bursty, rate, rate);
        assert!(most <= 1e-6, "{most} too many");
        // Permits stored while warm are not free.
        let limiter = warming_up(rate, Duration::from_millis(300));
        let of_warming_up = turns(|random, call| {
            let (n, now) = (1 + random.below(4), skewed(random, call));
            limiter.reserve_at(n, now).ok()
        });
        let most = excess(&of_warming_up, rate, 0.0);
        assert!(most <= 1e-6, "{most} too many");
    }
}

/// While the rate changes, each cost at a standing tick follows one of the rates.
#[test]
fn each_cost_follows_one_rate() {
    let limiter = bursty(1_000.0);
    let mut turns = turns(|_, call| {
        // Two changes between two turns of each thread.
        for rate in [10.0, 1_000.0] {
            limiter.set_rate_at(rate, Tick::ZERO).expect("a rate");
        }
        limiter.reserve_at(1 + call % 2, Tick::ZERO).ok()
    });
    let end = bursty(1.0).reserve_at(1, limiter.next_free_at(Tick::ZERO));
    turns.push(end.expect("a turn"));
    let mut beyond = 0;
    for pair in turns.windows(2) {
        let cost = pair[1].due().saturating_since(pair[0].due()).as_nanos() as u64;
        let rate = if cost >= SECOND / 10 { 10 } else { 1_000 };
        // Allows for the nanosecond that each sixteenth change of the rate costs.
        beyond += cost - pair[0].n() * SECOND / rate;
    }
    assert_eq!(turns.len() as u64, THREADS * CALLS + 1);
    assert!(beyond <= 2 * THREADS * CALLS / 16, "{beyond}");
}
