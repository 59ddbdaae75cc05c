//! Those who wait while the quota changes: they keep their ticks, and who comes after it has the new quota's.

use std::time::Duration;

use tollgate::history::{Bounded, History, Log};
use tollgate::{Adjustable, Keep, ManualClock, Quota, Tick, TokenBucket};

type Gate = Adjustable<TokenBucket, ManualClock>;

fn gate(quota: Quota) -> (ManualClock, Gate) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Adjustable::with_clock(bucket, clock))
}

fn millis(tick: Tick) -> u64 {
    tick.as_nanos() / 1_000_000
}

#[test]
fn a_reservation_keeps_its_tick() {
    for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
        let (_, gate) = gate(Quota::per_second(10).burst(1));
        let dues: Vec<_> = (0..3).map(|_| gate.reserve(1).expect("in time")).collect();
        gate.set_quota(Quota::per_second(100).burst(1), keep)
            .expect("a quota");
        let dues: Vec<_> = dues.iter().map(|one| millis(one.due())).collect();
        assert_eq!(dues, [0, 100, 200]);
        // Two are owed, and are owed at the new rate; or nothing is.
        let expected = if keep == Keep::Fresh { 0 } else { 30 };
        let next = gate.reserve(1).expect("in time");
        assert_eq!(millis(next.due()), expected, "{keep:?}");
    }
}

#[test]
fn of_a_reservation_from_before_a_change_nothing_comes_back() {
    let (_, gate) = gate(Quota::per_second(10).burst(1));
    let old = [gate.reserve(1), gate.reserve(1)].map(|one| one.expect("in time"));
    gate.set_quota(Quota::per_second(20).burst(1), Keep::AsIs)
        .expect("a quota");
    for one in old {
        let cancelled = one.cancel();
        assert_eq!((cancelled.came_back, cancelled.lost), (0, 1));
    }
    // Of those since then, as ever.
    assert_eq!(gate.reserve(1).expect("in time").cancel().came_back, 1);
    let over = gate.reserve(1).expect("in time").settle(3);
    assert_eq!((over.charged, over.came_back), (2, 0));
}

#[test]
fn it_waits_as_a_limiter_does() {
    let (clock, gate) = gate(Quota::per_second(10).burst(2));
    assert!(gate.acquire_n(2).is_ok());
    assert!(gate.acquire_timeout(1, Duration::from_millis(99)).is_err());
    let waited = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| gate.acquire().expect("it will be there").at());
        while !waiter.is_finished() {
            match clock.next_sleeper() {
                Some(tick) => clock.set(tick),
                None => std::thread::yield_now(),
            }
        }
        waiter.join().expect("nobody panicked")
    });
    assert_eq!(millis(waited), 100);
    assert!(gate.acquire_n(3).unwrap_err().is_permanent());
}

/// Threads reserve and cancel while the quota changes; what goes of each version's keeps that version's bound.
#[test]
fn what_goes_keeps_the_bound_of_the_quota_it_was_taken_under() {
    let quotas = [
        Quota::per_second(1000).burst(3),
        Quota::per_second(7777).burst(9),
        Quota::per_second(100).burst(1),
    ];
    let (clock, gate) = gate(quotas[0]);
    let mut goes = 0;
    for round in 0..60 {
        let logs: Vec<(Log, u64)> = std::thread::scope(|scope| {
            let gate = &gate;
            let workers: Vec<_> = (0..4)
                .map(|i| scope.spawn(move || reserve_some(gate, i)))
                .collect();
            let logs = workers.into_iter().map(|worker| worker.join());
            logs.map(|log| log.expect("nobody panicked")).collect()
        });
        goes += logs.iter().map(|(_, goes)| goes).sum::<u64>();
        let history: History = logs.into_iter().map(|(log, _)| log).collect();
        history.check(&gate.algorithm().bound()).expect("the bound");
        clock.advance(Duration::from_micros(1234 * (round % 7)));
        gate.set_quota(quotas[round as usize % 3], Keep::AsIs)
            .expect("a quota");
    }
    assert!(goes > 300, "{goes}");
}

fn reserve_some(gate: &Gate, seed: u64) -> (Log, u64) {
    let (mut log, mut goes) = (Log::new(), 0);
    let mut held = Vec::new();
    for i in 0..50 {
        let n = (i + seed) % 3 + 1;
        if let Ok(one) = gate.reserve_within(n, Duration::from_millis(30)) {
            held.push(one);
        }
        if i % 4 == 3 {
            if let Some(last) = held.pop() {
                if last.is_due() {
                    held.push(last);
                } else {
                    last.cancel();
                }
            }
        }
    }
    for one in held {
        log.granted(&one.granted().when_due());
        goes += one.n();
    }
    (log, goes)
}
