//! Threads whose requests take from several limits at once, beside callers of single limits.

use std::array;
use std::thread;
use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::audit::{Audit, Bound, Bounded, Log};
use tollgate::compose::All;
use tollgate::keyed::Key;
use tollgate::{
    Adjustable, AnyAlgorithm, Concurrency, Granted, Keyed, Limiter, ManualClock, Quota, Sharded,
    SlidingLog, SlottedWindow, Tick,
};

use super::stopping::Stopping;
use super::work::{START, TakesBack, kept};
use crate::deadline::deadline;
use crate::random::Random;
use crate::support::{algorithm, on_threads, scaled};

const THREADS: u64 = 4;

/// Each round has fresh limits. In a release build, all rounds of a test make more than ten million
/// requests, or undo or settle one.
const ROUNDS: u64 = scaled(1, 4, 100);
const TURNS: u64 = scaled(20, 4_000, 32_000);

/// How many weights fit.
const INSIDE: u64 = 20;

/// The members: the last one is the concurrency.
const N: usize = 7;

struct Limits {
    word: Limiter<Stopping, ManualClock>,
    window: Limiter<Stopping, ManualClock>,
    adjustable: Adjustable<AnyAlgorithm, ManualClock>,
    keys: Keyed<Stopping, ManualClock>,
    slotted: SlottedWindow<ManualClock>,
    sharded: Sharded<Stopping, ManualClock>,
    inside: Concurrency,
}

type Tuple<'a> = (
    &'a Limiter<Stopping, ManualClock>,
    &'a Limiter<Stopping, ManualClock>,
    &'a Adjustable<AnyAlgorithm, ManualClock>,
    Key<'a, Stopping, ManualClock>,
    &'a SlottedWindow<ManualClock>,
    &'a Sharded<Stopping, ManualClock>,
    &'a Concurrency,
);

type Plain<'a> = &'a (dyn TakesBack<Clock = ManualClock> + Sync);

/// The quotas of the members but the concurrency. That of the adjustable one is the larger of two.
const TEXTS: [&str; N - 1] = [
    "token-bucket 3/64ns burst 40",
    "sliding-window 40/777ns",
    "token-bucket 1/20ns burst 40",
    "gcra 1/20ns burst 40",
    "40/900ns in slots",
    "token-bucket 3/64ns burst 40",
];

const SLOTS: usize = 4;

fn slots_quota() -> Quota {
    Quota::per(40, Duration::from_nanos(900))
}

impl Limits {
    fn new() -> Self {
        let clock = ManualClock::at(START);
        let of = |member: usize| Stopping(algorithm(TEXTS[member]));
        Self {
            word: Limiter::with_clock(of(0), clock.clone()),
            window: Limiter::with_clock(of(1), clock.clone()),
            adjustable: Adjustable::with_clock(of(2).0, clock.clone()),
            keys: Keyed::with_clock(of(3), 1, clock.clone()).expect("a table"),
            slotted: SlottedWindow::with_clock(slots_quota(), SLOTS, clock.clone()).expect("slots"),
            sharded: Sharded::with_shards(of(5), 3, clock).expect("three shards"),
            inside: Concurrency::new(INSIDE).expect("a limit"),
        }
    }

    fn tuple(&self) -> Tuple<'_> {
        let key = self.keys.key("alice");
        let (word, window, adjustable) = (&self.word, &self.window, &self.adjustable);
        (
            word,
            window,
            adjustable,
            key,
            &self.slotted,
            &self.sharded,
            &self.inside,
        )
    }

    fn bounds() -> [Bound; N - 1] {
        array::from_fn(|member| match member {
            4 => Bound::of_slots(slots_quota(), SLOTS).expect("a quota"),
            _ => algorithm(TEXTS[member]).bound(),
        })
    }
}

/// What a thread did: the grants that it kept of each member, and their sums.
struct Told {
    logs: Vec<Log>,
    sums: [u64; N],
    granted: u64,
    denied: u64,
    undone: u64,
}

/// What threads do with a set of limits.
#[derive(Clone, Copy)]
struct Mix {
    /// By how many nanoseconds less than this a turn moves the clock.
    step: u64,
    /// Whether one thread changes a quota.
    changes: bool,
    /// Whether a grant can be settled at more than its estimate.
    charges: bool,
}

/// Returns when each member counted its part of a grant, and how much.
fn parts(granted: impl Fn(usize) -> Option<(Tick, u64)>) -> [(Tick, u64); N] {
    array::from_fn(|member| granted(member).expect("a grant of each member"))
}

fn part(granted: &Granted) -> (Tick, u64) {
    (granted.at(), granted.n())
}

impl Mix {
    /// The work of one thread: composed requests, most of which it undoes or settles some turns
    /// later, and requests to single members, most of which it undoes at once.
    fn work(self, id: u64, limits: &Limits, random: &mut Random) -> Told {
        let clock = limits.word.clock();
        let all = All::new(limits.tuple()).expect("seven limits");
        let key = limits.keys.key("alice");
        let plain: [Plain<'_>; N - 1] = [
            &limits.word,
            &limits.window,
            &limits.adjustable,
            &key,
            &limits.slotted,
            &limits.sharded,
        ];
        let mut told = Told {
            logs: vec![Log::new(); N],
            sums: [0; N],
            granted: 0,
            denied: 0,
            undone: 0,
        };
        let keep = |told: &mut Told, member: usize, (at, _), n: u64| {
            told.logs[member].grant(at, n);
            told.sums[member] += n;
        };
        let mut held = Vec::new();
        for _ in 0..TURNS {
            clock.advance(Duration::from_nanos(random.below(self.step)));
            match random.below(16) {
                0..=7 => {
                    let costs: [u64; N] = array::from_fn(|_| random.below(4));
                    match all.try_acquire_each(costs) {
                        Ok(granted) => {
                            told.granted += 1;
                            held.push(granted);
                        }
                        Err(_) => told.denied += 1,
                    }
                }
                8 | 9 => {
                    let member = random.below(N as u64 - 1) as usize;
                    let Ok(granted) = plain[member].try_acquire_n(random.below(4)) else {
                        continue;
                    };
                    if random.one_in(100) {
                        keep(&mut told, member, (granted.at(), 0), granted.n());
                    } else {
                        let n = granted.n();
                        let back = plain[member].undo(granted);
                        assert!(back <= n);
                    }
                }
                10 if id == 0 && self.changes && random.one_in(8) => {
                    let period = Duration::from_nanos(20 + random.below(2) * 40);
                    let quota = Quota::per(1, period).burst(40 - random.below(2) * 10);
                    let changed = limits.adjustable.set_quota(quota, Keep::AsIs);
                    changed.expect("a quota");
                }
                _ if held.is_empty() => {}
                _ => {
                    let which = random.below(held.len() as u64) as usize;
                    let mut granted = held.swap_remove(which);
                    let parts = parts(|member| granted.member(member).map(part));
                    let sum: u64 = parts.iter().map(|(_, n)| n).sum();
                    match random.below(400) {
                        0 => {
                            drop(granted);
                            for (member, part) in parts.into_iter().enumerate().take(N - 1) {
                                keep(&mut told, member, part, part.1);
                            }
                        }
                        1..=3 => {
                            let more = u64::from(self.charges) * random.below(3);
                            let actual = parts.map(|(_, n)| random.below(n + 1) / 2 + more);
                            let settled = granted.settle(actual).expect("a cost for each");
                            assert!(self.charges || settled.charged == 0);
                            for (member, part) in parts.into_iter().enumerate().take(N - 1) {
                                keep(&mut told, member, part, actual[member]);
                            }
                        }
                        _ => {
                            told.undone += 1;
                            let back = granted.undo();
                            assert!(back <= sum, "{back} came back of {sum}");
                        }
                    }
                }
            }
            while held.len() > 4 {
                told.undone += 1;
                held.swap_remove(0).undo();
            }
        }
        for granted in held {
            granted.undo();
        }
        told
    }

    /// Runs the threads, and returns what each did.
    fn run(self, limits: &Limits, seed: u64) -> Vec<Told> {
        on_threads(0..THREADS, |id| {
            self.work(id, limits, &mut Random(seed * THREADS + id))
        })
    }
}

/// Collects what all threads kept of each member.
fn audits(told: &[Told]) -> Vec<Audit> {
    let of = |member: usize| told.iter().map(|told| told.logs[member].clone()).collect();
    (0..N - 1).map(of).collect()
}

/// The clock moves, and one member's quota changes. Grants that are undone later count as not
/// granted at all, and the others keep each member's bound.
#[test]
fn composed_requests_keep_the_bound_of_every_member() {
    deadline("threads on a composition", || {
        let mix = Mix {
            step: 4,
            changes: true,
            charges: false,
        };
        let (mut granted, mut denied, mut undone) = (0, 0, 0);
        for round in 0..ROUNDS {
            let limits = Limits::new();
            let told = mix.run(&limits, round);
            let audits = audits(&told);
            for (member, (audit, bound)) in audits.iter().zip(Limits::bounds()).enumerate() {
                kept(audit, &bound, TEXTS[member]);
            }
            assert!(limits.inside.peak() <= INSIDE);
            assert_eq!(limits.inside.inside(), 0);
            granted += told.iter().map(|told| told.granted).sum::<u64>();
            denied += told.iter().map(|told| told.denied).sum::<u64>();
            undone += told.iter().map(|told| told.undone).sum::<u64>();
        }
        println!("{granted} granted, {denied} denied, {undone} undone");
        assert!(granted > ROUNDS && denied > ROUNDS && undone > ROUNDS);
    });
}

/// The clock stands still, and no quota changes: at the end each member counts exactly the grants
/// that were kept.
#[test]
fn at_the_end_each_member_counts_what_was_kept() {
    deadline("threads on a composition", || {
        for charges in [false, true] {
            let mix = Mix {
                step: 1,
                changes: false,
                charges,
            };
            for round in 0..ROUNDS.div_ceil(2) {
                let limits = Limits::new();
                let told = mix.run(&limits, round);
                let key = limits.keys.key("alice");
                let all: [Plain<'_>; N - 1] = [
                    &limits.word,
                    &limits.window,
                    &limits.adjustable,
                    &key,
                    &limits.slotted,
                    &limits.sharded,
                ];
                for (member, limit) in all.into_iter().enumerate() {
                    let kept: u64 = told.iter().map(|told| told.sums[member]).sum();
                    let counted = 40 - limit.available() + limit.charge(0).debt();
                    match member {
                        // A permit that was put together from several shards may come back in
                        // part.
                        5 => assert!(counted >= kept, "{counted}, but {kept} were kept"),
                        _ => assert_eq!(counted, kept, "member {member}, round {round}"),
                    }
                    assert!(charges || kept <= 40, "{kept} were granted");
                }
                assert_eq!(limits.inside.inside(), 0);
                assert!(limits.inside.peak() <= INSIDE);
            }
        }
    });
}

/// A log can't undo. It is taken from last, so it never has to.
#[test]
fn a_log_in_a_composition_counts_exactly_what_was_granted() {
    deadline("threads on a composition with a log", || {
        for round in 0..ROUNDS {
            let limits = Limits::new();
            let quota = Quota::per(40, Duration::from_nanos(800));
            let clock = limits.word.clock();
            let log = SlidingLog::with_clock(quota, clock.clone()).expect("a log");
            let logs = on_threads(0..THREADS, |id| {
                let mut random = Random(round * THREADS + id);
                let members = (&log, &limits.word, &limits.window, &limits.inside);
                let all = All::new(members).expect("four limits");
                let mut logs = [(); 3].map(|()| Log::new());
                for turn in 0..TURNS {
                    clock.advance(Duration::from_nanos(random.below(4)));
                    let costs: [u64; 4] = array::from_fn(|_| random.below(4));
                    if turn % 5 == 0 {
                        // A caller of the log alone.
                        if let Ok(granted) = log.try_acquire_n(costs[0]) {
                            logs[0].granted(&granted);
                        }
                    } else if let Ok(granted) = all.try_acquire_each(costs) {
                        for (member, log) in logs.iter_mut().enumerate() {
                            log.granted(granted.member(member).expect("a grant"));
                        }
                        if turn % 7 == 0 {
                            thread::yield_now();
                        }
                    }
                }
                logs
            });
            let bound = Bound::of_log(quota).expect("a quota");
            let bounds = [bound, Limits::bounds()[0], Limits::bounds()[1]];
            for (member, bound) in bounds.into_iter().enumerate() {
                let audit: Audit = logs.iter().map(|logs| logs[member].clone()).collect();
                let summary = kept(&audit, &bound, &format!("member {member}"));
                assert!(summary.granted >= 40 || ROUNDS == 1, "{summary:?}");
            }
            assert_eq!(limits.inside.inside(), 0);
        }
    });
}
