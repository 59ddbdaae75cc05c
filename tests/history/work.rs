//! What threads do to a limiter, and what they saw.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, History, Log, Summary};
use tollgate::{Debt, GiveBack, Limiter, ManualClock, Tick};

/// splitmix64, so that each thread has its own repeatable stream.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// What the threads do besides taking permits.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    undo: bool,
    refund: bool,
    charge: bool,
    reset: bool,
}

pub(crate) const TAKING: Mix = Mix {
    undo: false,
    refund: false,
    charge: false,
    reset: false,
};

pub(crate) const EVERYTHING: Mix = Mix {
    undo: true,
    refund: true,
    charge: true,
    reset: true,
};

/// One thread's work: time moves on by a few nanoseconds a turn, and this thread's idea of it is
/// up to `skew` behind or ahead.
fn work<A: GiveBack + Debt>(
    gate: &Limiter<A, ManualClock>,
    turns: u64,
    skew: u64,
    mix: Mix,
    random: &mut Random,
) -> Log {
    let mut log = Log::with_capacity(turns as usize);
    for _ in 0..turns {
        gate.clock().advance(Duration::from_nanos(random.below(4)));
        let begun = gate.now();
        let now = begun.as_nanos() + random.below(2 * skew + 1);
        let at = gate.at(Tick::from_nanos(now.saturating_sub(skew)));
        match random.below(64) {
            0 if mix.reset && random.below(500) == 0 => {
                at.reset();
                log.reset(at.now()).during(begun, gate.now());
            }
            1 if mix.charge => {
                let charged = at.charge(random.below(6));
                log.charged(&charged).during(begun, gate.now());
            }
            2 | 3 if mix.refund => {
                let n = at.refund(random.below(3));
                log.gave_back(at.now(), n).during(begun, gate.now());
            }
            4..=20 => {
                let granted = at.take_up_to(random.below(5));
                log.granted(&granted).during(begun, gate.now());
            }
            choice => {
                let n = random.below(4);
                if let Ok(granted) = at.try_acquire_n(n) {
                    assert_eq!(granted.n(), n);
                    log.granted(&granted).during(begun, gate.now());
                    if mix.undo && choice % 4 == 0 {
                        let n = at.undo(granted);
                        log.gave_back(at.now(), n).during(begun, gate.now());
                    }
                }
            }
        }
    }
    log
}

/// What so many threads saw, the later ones with more skew.
pub(crate) fn record<A: GiveBack + Debt + Send + Sync>(
    algorithm: A,
    threads: u64,
    turns: u64,
    mix: Mix,
) -> History {
    let gate = Limiter::with_clock(algorithm, ManualClock::at(Tick::from_nanos(1_000_000)));
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let (gate, start) = (&gate, &start);
                scope.spawn(move || {
                    start.wait();
                    work(gate, turns, 200 * id, mix, &mut Random(id))
                })
            })
            .collect();
        let logs = workers.into_iter().map(|worker| worker.join());
        logs.map(|log| log.expect("a worker panicked")).collect()
    })
}

pub(crate) fn kept(history: &History, bound: &Bound) -> Summary {
    match history.check(bound) {
        Ok(summary) => summary,
        Err(excess) => panic!("{excess}"),
    }
}
