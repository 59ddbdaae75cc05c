//! Threads that take while one changes the quota.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bounded, History, Log};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{
    Adjustable, Algorithm, AnyAlgorithm, ConfigError, Denied, Granted, Keep, ManualClock, NoClock,
    Quota, Requota, Settings, Tick, TokenBucket,
};

use crate::Random;

/// A limit that is kept in many words, so that it shows if words of two limits are mixed.
#[derive(Debug, Clone)]
struct Whole([u64; 8]);

impl Whole {
    fn limit(&self) -> u64 {
        let [first, others @ ..] = self.0;
        assert!(
            others.iter().all(|other| *other == first),
            "mixed: {self:?}"
        );
        first
    }
}

/// The word counts what was taken, in units of the limit: a word of another limit is no whole number.
impl Algorithm for Whole {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        match n <= self.available(word, now) {
            true => Ok((word + n * self.limit(), Granted::new(n, now))),
            false => Err(Denied::never(n, self.limit())),
        }
    }
    fn available(&self, word: u64, _now: Tick) -> u64 {
        assert_eq!(word % self.limit(), 0, "a word of another limit");
        self.limit() - word / self.limit()
    }
    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl Requota for Whole {
    fn quota(&self) -> Quota {
        Quota::per_second(self.limit())
    }
    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self([quota.permits(); 8]))
    }
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        (next.limit() - self.available(word, now)) * next.limit()
    }
}

impl Settings for Whole {
    const WORDS: usize = 8;
    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.iter().for_each(|word| write(*word));
    }
    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        Some(Self([(); 8].map(|()| read())))
    }
}

/// Counts a thread less, also if it panics.
struct Ends<'c>(&'c AtomicU64);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed. It only ends the changes.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn no_decision_mixes_two_quotas_and_every_permit_is_had_once() {
    const THERE: u64 = 20_000;
    for threads in [2, 4, 8] {
        let gate = Adjustable::starting_at(Whole([THERE; 8]), NoClock, Tick::ZERO);
        let (start, left) = (Barrier::new(threads), AtomicU64::new(threads as u64 - 1));
        let taken = thread::scope(|scope| {
            let takers: Vec<_> = (1..threads)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let _ends = Ends(&left);
                        let mut taken = 0;
                        while gate.at(Tick::ZERO).try_acquire().is_ok() {
                            taken += 1;
                            let _ = gate.at(Tick::ZERO).try_acquire_n(THERE + 7);
                        }
                        taken
                    })
                })
                .collect();
            start.wait();
            let mut changes = 0;
            // ORDERING: Relaxed, as above.
            while left.load(Ordering::Relaxed) > 0 || changes < 3 {
                changes += 1;
                let quota = Quota::per_second(THERE + changes % 5);
                let view = gate.at(Tick::ZERO);
                view.set_quota(quota, Keep::AsIs).expect("it is one");
            }
            assert_eq!(gate.version(), changes);
            takers
                .into_iter()
                .map(|taker| taker.join().expect("no panic"))
                .sum::<u64>()
        });
        assert_eq!(taken, THERE);
    }
}

#[test]
fn at_a_standing_tick_a_burst_is_had_whatever_the_quotas_are() {
    let quotas = [1_000, 1_007, 3_001].map(|burst| Quota::per_second(10).burst(burst));
    let bucket = TokenBucket::new(quotas[0]).expect("a quota");
    let gate = Adjustable::with_clock(bucket, ManualClock::at(Tick::from_nanos(77)));
    let start = Barrier::new(4);
    let taken: u64 = thread::scope(|scope| {
        let takers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    (0..2000).filter(|_| gate.try_acquire().is_ok()).count() as u64
                })
            })
            .collect();
        start.wait();
        for quota in quotas.into_iter().cycle().take(300) {
            gate.set_quota(quota, Keep::AsIs).expect("a quota");
        }
        takers
            .into_iter()
            .map(|taker| taker.join().expect("no panic"))
            .sum()
    });
    assert_eq!((taken, gate.available()), (1_000, 0));
}

/// What a thread was granted, with the version of the quota if that is certain.
type Seen = Vec<(Option<u64>, Granted)>;

fn take(gate: &Adjustable<AnyAlgorithm, ManualClock>, turns: u64, skew: u64, seed: u64) -> Seen {
    let (mut random, mut seen) = (Random(seed), Vec::new());
    for _ in 0..turns {
        gate.clock().advance(Duration::from_nanos(random.below(4)));
        let before = gate.version();
        let now = (gate.now().as_nanos() + random.below(2 * skew + 1)).saturating_sub(skew);
        let granted = gate.at(Tick::from_nanos(now)).take_up_to(random.below(4));
        if granted.n() > 0 {
            seen.push(((before == gate.version()).then_some(before), granted));
        }
    }
    seen
}

/// What was granted under each quota keeps its bound, by itself.
fn each_quota_keeps_its_bound(kinds: &[&str], keep: Keep, threads: u64) -> usize {
    let algorithms = kinds.iter().map(|text| text.parse().expect(text));
    let algorithms: Vec<AnyAlgorithm> = algorithms.collect();
    let clock = ManualClock::at(Tick::from_nanos(1_000_000));
    let gate = Adjustable::with_clock(algorithms[0], clock);
    let start = Barrier::new(threads as usize + 1);
    let mut seen: Vec<Seen> = thread::scope(|scope| {
        let (gate, start) = (&gate, &start);
        let takers: Vec<_> = (0..threads)
            .map(|id| {
                scope.spawn(move || {
                    start.wait();
                    take(gate, 10_000, 50 * id, id)
                })
            })
            .collect();
        start.wait();
        while takers.iter().any(|taker| !taker.is_finished()) {
            let next = gate.version() as usize + 1;
            gate.set(algorithms[next % algorithms.len()], keep);
            gate.clock().advance(Duration::from_nanos(100));
            thread::yield_now();
        }
        takers
            .into_iter()
            .map(|taker| taker.join().expect("no panic"))
            .collect()
    });
    let mut certain = 0;
    for version in 0..=gate.version() {
        let logs = seen.iter_mut().map(|seen| {
            let mut log = Log::new();
            // By time, so those of this version are first.
            let of_it = seen
                .iter()
                .take_while(|(of, _)| of.is_none_or(|of| of <= version));
            let many = of_it.count();
            for (of, granted) in seen.drain(..many) {
                if of == Some(version) {
                    log.granted(&granted);
                    certain += 1;
                }
            }
            log
        });
        let history: History = logs.collect();
        let algorithm = &algorithms[version as usize % algorithms.len()];
        if let Err(excess) = history.check(&algorithm.bound()) {
            panic!("{excess}, by {algorithm}, {keep:?}, version {version}");
        }
    }
    certain
}

#[test]
fn each_quota_keeps_its_bound_by_itself() {
    let families: [&[&str]; 5] = [
        &[
            "token-bucket 1/10ns burst 7",
            "token-bucket 3/40ns burst 20",
            "token-bucket 1/1us burst 3",
        ],
        &[
            "fixed-window 9/500ns",
            "fixed-window 30/700ns",
            "fixed-window 5/300ns first-hit",
        ],
        &[
            "sliding-window 9/500ns",
            "sliding-window 30/700ns rounding down",
        ],
        &[
            "intervals 9/500ns burst 20",
            "intervals 5/300ns burst 9",
            "intervals 5/300ns burst 9 greedy",
        ],
        &[
            "leaky-meter 1/20ns burst 5",
            "sliding-window 9/500ns",
            "gcra 1/70ns tolerance 333ns",
        ],
    ];
    for family in families {
        for (keep, threads) in [
            (Keep::AsIs, 2),
            (Keep::AsIs, 6),
            (Keep::Scaled, 3),
            (Keep::Fresh, 3),
        ] {
            let certain = each_quota_keeps_its_bound(family, keep, threads);
            assert!(certain > 50, "{certain} of {family:?}");
        }
    }
}
