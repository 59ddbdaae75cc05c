//! What threads do to a limiter, and what they saw.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, History, Log, Summary};
use tollgate::{Debt, GiveBack, Limiter, ManualClock, Tick};

use crate::verbs::Verbs;

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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    undo: bool,
    refund: bool,
    charge: bool,
    reset: bool,
    /// The most permits in a request.
    most: u64,
    /// One turn in 64 times as many resets.
    rare: u64,
}

impl Mix {
    pub(crate) const fn up_to(self, most: u64) -> Self {
        Self { most, ..self }
    }

    pub(crate) const fn resetting_often(self) -> Self {
        Self { rare: 50, ..self }
    }

    pub(crate) const fn without_charges(self) -> Self {
        Self {
            charge: false,
            ..self
        }
    }
}

pub(crate) const TAKING: Mix = Mix {
    undo: false,
    refund: false,
    charge: false,
    reset: false,
    most: 4,
    rare: 500,
};

pub(crate) const EVERYTHING: Mix = Mix {
    undo: true,
    refund: true,
    charge: true,
    reset: true,
    most: 4,
    rare: 500,
};

/// One thread's work: time moves on by a few nanoseconds a turn, and this thread's idea of it is
/// up to `skew` behind or ahead.
fn work<G: Verbs>(gate: &G, turns: u64, skew: u64, mix: Mix, random: &mut Random) -> Log {
    let mut log = Log::with_capacity(turns as usize);
    for _ in 0..turns {
        gate.time().advance(Duration::from_nanos(random.below(4)));
        let begun = gate.now();
        let now = begun.as_nanos() + random.below(2 * skew + 1);
        let now = Tick::from_nanos(now.saturating_sub(skew));
        match random.below(64) {
            0 if mix.reset && random.below(mix.rare) == 0 => {
                if gate.reset() {
                    log.reset(now).during(begun, gate.now());
                }
            }
            1 if mix.charge => {
                let charged = gate.charge(random.below(6), now);
                log.charged(&charged).during(begun, gate.now());
            }
            2 | 3 if mix.refund => {
                let n = gate.refund(random.below(3), now);
                log.gave_back(now, n).during(begun, gate.now());
            }
            4..=20 => {
                let granted = gate.take_up_to(random.below(mix.most + 1), now);
                log.granted(&granted).during(begun, gate.now());
            }
            choice => {
                let n = random.below(mix.most);
                if let Ok(granted) = gate.try_acquire_n(n, now) {
                    assert_eq!(granted.n(), n);
                    log.granted(&granted).during(begun, gate.now());
                    if mix.undo && choice % 4 == 0 {
                        let n = gate.undo(granted, now);
                        log.gave_back(now, n).during(begun, gate.now());
                    }
                }
            }
        }
    }
    log
}

/// What so many threads saw of a limiter with this algorithm.
pub(crate) fn record<A: GiveBack + Debt + Send + Sync>(
    algorithm: A,
    threads: u64,
    turns: u64,
    mix: Mix,
) -> History {
    let clock = ManualClock::at(START);
    let gate = Limiter::with_clock(algorithm, clock);
    record_of(&gate, threads, turns, mix)
}

/// When the clocks begin.
pub(crate) const START: Tick = Tick::from_nanos(1_000_000);

/// What so many threads saw, the later ones with more skew.
pub(crate) fn record_of<G: Verbs>(gate: &G, threads: u64, turns: u64, mix: Mix) -> History {
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|id| {
                let start = &start;
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
