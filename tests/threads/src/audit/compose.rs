//! Threads whose requests take from several limits at once, beside callers of single limits.

use std::time::Duration;

use tollgate::audit::{Audit, Bound, Bounded, Log};
use tollgate::compose::{All, AllGranted, Members, SettleMembers};
use tollgate::traits::{DebtLimiter, GiveBackLimiter};
use tollgate::{
    AnyAlgorithm, Concurrency, Granted, Limiter, ManualClock, Quota, RateLimiter, Sharded,
    SlidingLog, SlottedWindow, Tick,
};

use super::work::{START, TakesBack, kept};
use crate::deadline::deadline;
use crate::random::Random;
use crate::support::{algorithm, on_threads, scaled};

type Word = Limiter<AnyAlgorithm, ManualClock>;

const THREADS: u64 = 4;

/// Each round has fresh limits. Together, a release build makes more than ten million operations.
const ROUNDS: u64 = scaled(1, 4, 40);
const TURNS: u64 = scaled(20, 2_500, 16_000);

fn word(text: &str, clock: &ManualClock) -> Word {
    Limiter::with_clock(algorithm(text), clock.clone())
}

fn slots(n: u64, period: u64, clock: &ManualClock) -> SlottedWindow<ManualClock> {
    let quota = Quota::per(n, Duration::from_nanos(period));
    SlottedWindow::with_clock(quota, 4, clock.clone()).expect("slots")
}

/// What threads do with a composition, and how they record it.
struct Work<'a, M, const N: usize> {
    all: &'a All<M, ManualClock>,
    /// The members that the audit checks, for callers of a single limit. The others are `None`.
    plain: [Option<&'a (dyn TakesBack<Clock = ManualClock> + Sync)>; N],
    clock: &'a ManualClock,
    /// By how many nanoseconds a turn moves the clock, at most.
    step: u64,
    /// Changes a quota.
    change: Option<&'a (dyn Fn(u64) + Sync)>,
}

type Answer<'a, M> = AllGranted<&'a All<M, ManualClock>, M, ManualClock>;

/// What one thread did: a log for each member, and what it kept of each.
struct Told<const N: usize> {
    logs: [Log; N],
    sums: [u64; N],
    granted: u64,
    denied: u64,
}

impl<'a, M: SettleMembers<ManualClock> + Sync, const N: usize> Work<'a, M, N>
where
    M::Grants: Send,
{
    /// The work of one thread: composed requests, of which it keeps some, undoes some and settles
    /// some later, and requests to single members.
    fn work(&self, id: u64, random: &mut Random) -> Told<N> {
        let mut told = Told {
            logs: [(); N].map(|()| Log::new()),
            sums: [0; N],
            granted: 0,
            denied: 0,
        };
        let mut held: Vec<Answer<'a, M>> = Vec::new();
        for _ in 0..TURNS {
            self.clock.advance(Duration::from_nanos(random.below(self.step)));
            let begun = self.clock.now();
            match random.below(16) {
                0..=8 => {
                    let costs: [u64; N] = std::array::from_fn(|_| random.below(4));
                    match self.all.try_acquire_each(costs) {
                        Ok(granted) => {
                            self.took(&mut told, &granted, begun);
                            held.push(granted);
                        }
                        Err(_) => told.denied += 1,
                    }
                }
                9 | 10 => self.plain(&mut told, begun, random),
                11 if id == 0 && random.one_in(8) => {
                    if let Some(change) = self.change {
                        change(random.below(4));
                    }
                }
                _ if held.is_empty() => {}
                _ => {
                    let which = random.below(held.len() as u64) as usize;
                    let granted = held.swap_remove(which);
                    match random.below(12) {
                        0 => drop(granted),
                        1 => self.settle(&mut told, granted, random),
                        _ => self.undo(&mut told, granted, begun),
                    }
                }
            }
            if held.len() > 4 {
                let granted = held.swap_remove(0);
                self.undo(&mut told, granted, begun);
            }
        }
        told
    }

    /// Records a grant of each member.
    fn took(&self, told: &mut Told<N>, granted: &Answer<'a, M>, begun: Tick) {
        told.granted += 1;
        for member in 0..N {
            let part = granted.member(member).expect("a grant");
            told.logs[member].granted(part).during(begun, self.clock.now());
            told.sums[member] += part.n();
        }
    }

    /// Undoes a grant. It says what came back in sum, so the grants' own numbers are recorded: a
    /// member may have got back less, never more.
    fn undo(&self, told: &mut Told<N>, granted: Answer<'a, M>, begun: Tick) {
        let parts: [u64; N] = std::array::from_fn(|member| of(&granted, member));
        let back = granted.undo();
        let sum: u64 = parts.iter().sum();
        assert!(back <= sum, "{back} came back of {sum}");
        for member in 0..N {
            let log = &mut told.logs[member];
            log.gave_back(begun, parts[member]).during(begun, self.clock.now());
            told.sums[member] -= parts[member];
        }
    }

    /// Settles a grant at what it estimated: then every grant stays, and a weight leaves.
    fn settle(&self, told: &mut Told<N>, granted: Answer<'a, M>, random: &mut Random) {
        let begun = self.clock.now();
        let parts: [u64; N] = std::array::from_fn(|member| of(&granted, member));
        let actual = parts.map(|n| random.below(n + 1));
        let settled = granted.settle(actual);
        assert_eq!(settled.charged, 0);
        for member in 0..N {
            let back = parts[member] - actual[member];
            let log = &mut told.logs[member];
            log.gave_back(begun, back).during(begun, self.clock.now());
            told.sums[member] -= back;
        }
    }

    /// A request to one member alone, which may be undone.
    fn plain(&self, told: &mut Told<N>, begun: Tick, random: &mut Random) {
        let member = random.below(N as u64) as usize;
        let Some(limit) = self.plain[member] else { return };
        let Ok(granted) = limit.try_acquire_n(random.below(4)) else { return };
        let log = &mut told.logs[member];
        log.granted(&granted).during(begun, self.clock.now());
        told.sums[member] += granted.n();
        if random.below(8) > 0 {
            let (now, n) = (self.clock.now(), granted.n());
            let back = limit.undo_at(granted, now);
            log.gave_back(now, back).during(now, self.clock.now());
            if self.step == 1 {
                assert_eq!(back, n);
            }
            told.sums[member] -= n;
        }
    }

    fn run(&self, seed: u64) -> Told<N> {
        let told = on_threads(0..THREADS, |id| self.work(id, &mut Random(seed * THREADS + id)));
        let mut told = told.into_iter();
        let first = told.next().expect("a thread");
        told.fold(first, |mut sum, told| {
            for (member, log) in told.logs.into_iter().enumerate() {
                sum.sums[member] = sum.sums[member].wrapping_add(told.sums[member]);
                sum.all[member].push(log);
            }
            sum
        })
    }
}

fn of<M: Members<ManualClock>>(granted: &Answer<'_, M>, member: usize) -> u64 {
    granted.member(member).map_or(0, Granted::n)
}
