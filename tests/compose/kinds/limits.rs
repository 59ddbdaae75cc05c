//! Limits of every kind, of which each run has two equal sets: the members and their twins.

use tollgate::compose::{BoxMember, Member};
use tollgate::concurrency::ConcurrencyGuard;
use tollgate::outcome::Settled;
use tollgate::traits::SettleLimiter;
use tollgate::{Adjustable, TryAcquire};

use crate::support::*;

/// Small bursts and short periods, so that a run meets every outcome.
const WORDS: [&str; 14] = [
    "token-bucket 3/64ns burst 5",
    "token-bucket 7/100ns burst 12 initial 4",
    "gcra 1/13ns tolerance 40ns",
    "gcra 3/64ns burst 9",
    "leaky-meter 3/64ns burst 7",
    "leaky-queue 1/20ns burst 6 free 2",
    "fixed-window 7/200ns",
    "fixed-window 5/300ns first-hit",
    "sliding-window 9/250ns",
    "sliding-window 9/250ns rounding down",
    "intervals 4/90ns burst 11",
    "intervals 4/90ns burst 6 greedy",
    "token-bucket 1/1ns burst 30",
    "token-bucket 1/40ns",
];

/// Those that can be split.
const SHARDED: [&str; 5] = [
    "token-bucket 3/64ns burst 8",
    "gcra 3/64ns burst 9",
    "fixed-window 7/200ns",
    "sliding-window 9/250ns",
    "intervals 4/90ns burst 11",
];

/// How many limits of a kind a set has.
pub(super) const EACH: usize = 3;

/// A set of limits.
pub(super) struct Limits {
    pub(super) words: [Limiter<AnyAlgorithm, ManualClock>; EACH],
    pub(super) adjustable: Adjustable<AnyAlgorithm, ManualClock>,
    pub(super) sharded: Sharded<AnyAlgorithm, ManualClock>,
    pub(super) slotted: SlottedWindow<ManualClock>,
    pub(super) keys: Keyed<AnyAlgorithm, ManualClock>,
    pub(super) other_keys: Keyed<AnyAlgorithm, ManualClock>,
    pub(super) inside: Arc<Concurrency>,
    pub(super) log: SlidingLog<ManualClock>,
}

/// One limit of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Word(usize),
    Adjustable,
    Sharded,
    Slotted,
    Key(u64),
    OtherKey(u64),
    Inside,
    Log,
}

fn any(texts: &[&str], random: &mut Random) -> AnyAlgorithm {
    algorithm(texts[random.below(texts.len() as u64) as usize])
}

impl Limits {
    /// Makes a set. The same random numbers make an equal one.
    pub(super) fn new(mut random: Random, clock: &ManualClock) -> Self {
        let random = &mut random;
        let clock = || clock.clone();
        let per = |n, ns| Quota::per(n, std::time::Duration::from_nanos(ns));
        let mut word = || any(&WORDS, random);
        let words = [word(), word(), word()];
        let (adjustable, key, other_key) = (word(), word(), word());
        let slots = 1 + random.below(5) as usize;
        Self {
            words: words.map(|word| Limiter::with_clock(word, clock())),
            adjustable: Adjustable::with_clock(adjustable, clock()),
            sharded: Sharded::with_shards(any(&SHARDED, random), 1, clock()).expect("a shard"),
            slotted: SlottedWindow::with_clock(per(9, 240), slots, clock()).expect("slots"),
            keys: Keyed::with_clock(key, 100, clock()).expect("a table"),
            other_keys: Keyed::with_clock(other_key, 100, clock()).expect("a table"),
            inside: Arc::new(Concurrency::new(1 + random.below(9)).expect("a limit")),
            log: SlidingLog::with_clock(per(8, 220), clock()).expect("a log"),
        }
    }

    pub(super) fn limit(&self, pick: Pick) -> Limit<'_> {
        match pick {
            Pick::Word(word) => Limit::settles(&self.words[word]),
            Pick::Adjustable => Limit::settles(&self.adjustable),
            Pick::Sharded => Limit::settles(&self.sharded),
            Pick::Slotted => Limit::settles(&self.slotted),
            Pick::Key(key) => Limit::settles(self.keys.key(&key)),
            Pick::OtherKey(key) => Limit::settles(self.other_keys.key(&key)),
            Pick::Inside => Limit::Inside(&self.inside),
            Pick::Log => Limit::Log(&self.log),
        }
    }
}

/// Any limit on its own.
pub(super) enum Limit<'a> {
    Settles(
        Box<dyn SettleLimiter<Clock = ManualClock> + 'a>,
        BoxMember<'a, ManualClock>,
    ),
    Inside(&'a Arc<Concurrency>),
    Log(&'a SlidingLog<ManualClock>),
}

/// A grant of a limit on its own.
#[derive(Debug)]
pub(super) enum Kept {
    Granted(Granted),
    Inside(ConcurrencyGuard<Arc<Concurrency>>),
    Logged(Granted),
}

impl<'a> Limit<'a> {
    fn settles<L>(limiter: L) -> Self
    where
        L: SettleLimiter<Clock = ManualClock> + Member<ManualClock> + Copy + Send + Sync + 'a,
    {
        Self::Settles(Box::new(limiter), Box::new(limiter))
    }

    /// Returns the limit as a member.
    pub(super) fn member(self) -> BoxMember<'a, ManualClock> {
        match self {
            Self::Settles(_, member) => member,
            Self::Inside(limit) => Box::new(limit),
            Self::Log(log) => Box::new(log),
        }
    }

    pub(super) fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        match self {
            Self::Settles(limiter, _) => limiter.check_n_at(n, now),
            Self::Inside(limit) => limit.try_enter_n(n).map(drop),
            Self::Log(log) => log.check_n_at(n, now),
        }
    }

    pub(super) fn take(&self, n: u64, now: Tick) -> Kept {
        match self {
            Self::Settles(limiter, _) => {
                Kept::Granted(limiter.try_acquire_n_at(n, now).expect("it has them"))
            }
            Self::Inside(limit) => Kept::Inside(limit.try_enter_owned(n).expect("it has room")),
            Self::Log(log) => Kept::Logged(log.try_acquire_n_at(n, now).expect("it has them")),
        }
    }

    pub(super) fn available(&self, now: Tick) -> u64 {
        match self {
            Self::Settles(limiter, _) => limiter.available_at(now),
            Self::Inside(limit) => limit.limit().saturating_sub(limit.inside()),
            Self::Log(log) => TryAcquire::available_at(*log, now),
        }
    }

    pub(super) fn undo(&self, kept: Kept, now: Tick) -> u64 {
        match (self, kept) {
            (Self::Settles(limiter, _), Kept::Granted(granted)) => limiter.undo_at(granted, now),
            (_, Kept::Inside(guard)) => guard.n(),
            (_, kept) => unreachable!("{kept:?}"),
        }
    }

    pub(super) fn settle(&self, kept: Kept, actual: u64, now: Tick) -> [u64; 3] {
        match (self, kept) {
            (Self::Settles(limiter, _), Kept::Granted(granted)) => {
                numbers(limiter.settle_at(granted, actual, now))
            }
            (_, Kept::Inside(..)) => [0; 3],
            (_, kept) => unreachable!("{kept:?}"),
        }
    }
}

pub(super) fn numbers(settled: Settled) -> [u64; 3] {
    [settled.returned, settled.lost, settled.charged]
}
