//! Every permit that was reserved was used, came back or was declared lost; and what was used keeps the bound at
//! the ticks at which it was due, among threads that reserve, cancel and settle.

#![cfg(feature = "history")]

use std::thread;
use std::time::Duration;

use tollgate::history::{Bounded, History, Log};
use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};

/// Numbers that look random, the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[derive(Default)]
struct Sums {
    reserved: u64,
    used: u64,
    came_back: u64,
    lost: u64,
}

type Gate = Limiter<TokenBucket, ManualClock>;

/// One thread's work. All are at the same tick, so that what one cancels it has not used.
fn work(gate: &Gate, seed: u64, burst: u64) -> (Log, Sums) {
    let (mut log, mut sums) = (Log::new(), Sums::default());
    let mut numbers = Numbers(seed);
    let mut held = Vec::new();
    for _ in 0..400 {
        let n = 1 + numbers.below(burst);
        if let Ok(reservation) = gate.reserve_within(n, Duration::from_millis(50)) {
            sums.reserved += n;
            held.push(reservation);
        }
        if !held.is_empty() && numbers.below(2) == 0 {
            let one = held.swap_remove(numbers.below(held.len() as u64) as usize);
            let was_due = one.due() <= gate.now();
            if was_due {
                // It may have been used by now.
                sums.used += one.n();
                log.granted(&one.granted().when_due());
            } else {
                let cancelled = one.cancel();
                sums.came_back += cancelled.came_back;
                sums.lost += cancelled.lost;
            }
        }
    }
    for one in held {
        sums.used += one.n();
        log.granted(&one.granted().when_due());
    }
    (log, sums)
}

fn threads_reserve_and_cancel(threads: u64, quota: Quota) {
    let clock = ManualClock::at(Tick::from_nanos(5));
    let gate = Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone());
    let (mut logs, mut all) = (Vec::new(), Sums::default());
    for round in 0..10 {
        let seen = thread::scope(|scope| {
            let gate = &gate;
            let workers: Vec<_> = (0..threads)
                .map(|i| scope.spawn(move || work(gate, round * 64 + i + 1, quota.burst_size())))
                .collect();
            let seen = workers.into_iter().map(|worker| worker.join());
            seen.map(|seen| seen.expect("nobody panicked"))
                .collect::<Vec<_>>()
        });
        for (log, sums) in seen {
            logs.push(log);
            all.reserved += sums.reserved;
            all.used += sums.used;
            all.came_back += sums.came_back;
            all.lost += sums.lost;
        }
        clock.advance(Duration::from_micros(7_321));
    }
    assert_eq!(all.used + all.came_back + all.lost, all.reserved);
    assert!(all.came_back > 0 && all.lost > 0 && all.used > 0);
    let history: History = logs.into_iter().collect();
    let summary = history.check(&gate.algorithm().bound()).expect("the bound");
    assert_eq!(summary.granted, all.used.into());
}

#[test]
fn among_threads() {
    for threads in [2, 8] {
        threads_reserve_and_cancel(threads, Quota::per_second(10_000).burst(7));
        threads_reserve_and_cancel(threads, Quota::per_second(7_777).burst(1));
        threads_reserve_and_cancel(threads, Quota::per_second(700).burst(3));
    }
}

#[test]
fn one_permit_too_many_is_found() {
    let quota = Quota::per_second(1000).burst(2);
    let gate = Limiter::with_clock(
        TokenBucket::new(quota).expect("a quota"),
        ManualClock::new(),
    );
    let mut log = Log::new();
    for _ in 0..50 {
        log.granted(
            &gate
                .reserve(1)
                .expect("it will be there")
                .granted()
                .when_due(),
        );
    }
    let check = |log: &Log| {
        [log.clone()]
            .into_iter()
            .collect::<History>()
            .check(&gate.algorithm().bound())
    };
    assert!(check(&log).is_ok());
    log.grant(Tick::from_nanos(20_000_000), 1);
    assert!(check(&log).is_err());
}
