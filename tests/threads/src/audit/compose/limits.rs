//! The limits, and the compositions of them.

use std::array;

use tollgate::compose::{BoxMember, OrElse};
use tollgate::keyed::Key;
use tollgate::{Adjustable, Keyed};

use super::recorded::{Record, Recorded};
use crate::audit::stopping::Stopping;
use crate::audit::work::{START, TakesBack};
use crate::support::*;

/// How many weights fit.
pub(super) const INSIDE: u64 = 20;

/// The limits but the concurrency.
pub(super) const N: usize = 12;
pub(super) const SLIDING: usize = 3;
pub(super) const FIXED: usize = 4;
pub(super) const SHARDED: usize = 5;
pub(super) const ADJUSTABLE: usize = 6;
pub(super) const SLOTTED: usize = 8;
pub(super) const SHARE: usize = 9;
pub(super) const POOL: usize = 10;
pub(super) const LOG: usize = 11;

/// The quotas of the limits. That of the adjustable one is the larger of two.
pub(super) const TEXTS: [&str; N] = [
    "token-bucket 1/20ns burst 40",
    "gcra 1/20ns burst 40",
    "leaky-meter 1/20ns burst 40",
    "sliding-window 40/780ns",
    "fixed-window 40/500ns",
    "token-bucket 3/64ns burst 40",
    "token-bucket 1/20ns burst 40",
    "gcra 1/20ns burst 40",
    "40/900ns in slots",
    "token-bucket 1/20ns burst 40",
    "token-bucket 1/20ns burst 40",
    "40/800ns in a log",
];

const SLOTS: usize = 4;

const fn of_nanos(period: u64) -> Quota {
    Quota::per(40, Duration::from_nanos(period))
}

pub(super) fn bound(limit: usize) -> Bound {
    match limit {
        SLOTTED => Bound::of_slots(of_nanos(900), SLOTS).expect("a quota"),
        LOG => Bound::of_log(of_nanos(800)).expect("a quota"),
        _ => algorithm(TEXTS[limit]).bound(),
    }
}

type One = Limiter<Stopping, ManualClock>;
type AnyKey<'l> = Key<&'l Keyed<Stopping, ManualClock>>;

pub(super) struct Limits {
    word: One,
    keys: Keyed<Stopping, ManualClock>,
    leaky: One,
    sliding: One,
    fixed: One,
    sharded: Sharded<Stopping, ManualClock>,
    pub(super) adjustable: Adjustable<AnyAlgorithm, ManualClock>,
    other_keys: Keyed<Stopping, ManualClock>,
    slotted: SlottedWindow<ManualClock>,
    share: One,
    pool: One,
    log: SlidingLog<ManualClock>,
    pub(super) inside: Concurrency,
}

impl Limits {
    pub(super) fn new() -> Self {
        let clock = ManualClock::at(START);
        let of = |limit: usize| Stopping(algorithm(TEXTS[limit]));
        let one = |limit: usize| Limiter::with_clock(of(limit), clock.clone());
        let slots = SlottedWindow::with_clock(of_nanos(900), SLOTS, clock.clone());
        Self {
            word: one(0),
            keys: Keyed::with_clock(of(1), 1, clock.clone()).expect("a table"),
            leaky: one(2),
            sliding: one(SLIDING),
            fixed: one(FIXED),
            sharded: Sharded::with_shards(of(SHARDED), 3, clock.clone()).expect("three shards"),
            adjustable: Adjustable::with_clock(of(ADJUSTABLE).0, clock.clone()),
            other_keys: Keyed::with_clock(of(7), 1, clock.clone()).expect("a table"),
            slotted: slots.expect("slots"),
            share: one(SHARE),
            pool: one(POOL),
            log: SlidingLog::with_clock(of_nanos(800), clock).expect("a log"),
            inside: Concurrency::new(INSIDE).expect("a limit"),
        }
    }

    pub(super) fn clock(&self) -> &ManualClock {
        self.word.clock()
    }

    fn key(&self) -> AnyKey<'_> {
        self.keys.key("alice")
    }

    fn other_key(&self) -> AnyKey<'_> {
        self.other_keys.key("alice")
    }

    /// Returns how many permits each limit but the log has, less its debt.
    pub(super) fn balances(&self) -> [i64; LOG] {
        let (key, other_key) = (self.key(), self.other_key());
        let all: [&dyn TakesBack<Clock = ManualClock>; LOG] = [
            &self.word,
            &key,
            &self.leaky,
            &self.sliding,
            &self.fixed,
            &self.sharded,
            &self.adjustable,
            &other_key,
            &self.slotted,
            &self.share,
            &self.pool,
        ];
        all.map(|limit| limit.available() as i64 - limit.charge(0).debt() as i64)
    }
}

type Part<'r, L> = Recorded<'r, &'r L>;

pub(super) type Eleven<'r> = (
    (
        Part<'r, One>,
        Recorded<'r, AnyKey<'r>>,
        Part<'r, One>,
        Part<'r, One>,
    ),
    [Part<'r, One>; 1],
    (
        Part<'r, Sharded<Stopping, ManualClock>>,
        Part<'r, Adjustable<AnyAlgorithm, ManualClock>>,
        Recorded<'r, AnyKey<'r>>,
        Part<'r, SlottedWindow<ManualClock>>,
    ),
    OrElse<Part<'r, One>, Part<'r, One>>,
    &'r Concurrency,
);

pub(super) type Two<'r> = (Part<'r, One>, Part<'r, One>);

type OfAnyType<'r> = BoxMember<'r, ManualClock>;

pub(super) type Boxed<'r> = Vec<OfAnyType<'r>>;

pub(super) type Five<'r> = (
    Recorded<'r, AnyKey<'r>>,
    Part<'r, Sharded<Stopping, ManualClock>>,
    Part<'r, One>,
    Recorded<'r, AnyKey<'r>>,
    Part<'r, One>,
);

pub(super) type WithLog<'r> = (
    Part<'r, SlidingLog<ManualClock>>,
    Part<'r, One>,
    Part<'r, SlottedWindow<ManualClock>>,
    &'r Concurrency,
);

/// The compositions of one thread: of each size that the crate treats in its own way, and in orders
/// that differ.
pub(super) struct Compositions<'r> {
    pub(super) eleven: All<Eleven<'r>, ManualClock>,
    pub(super) two: All<Two<'r>, ManualClock>,
    pub(super) five: All<Five<'r>, ManualClock>,
    pub(super) boxed: All<Boxed<'r>, ManualClock>,
    pub(super) with_log: All<WithLog<'r>, ManualClock>,
}

/// The limits of each composition's members. `SHARE` stands for the share or the pool, and `N` for
/// the concurrency.
pub(super) const ELEVEN: &[usize] = &[
    0, 1, 2, SLIDING, FIXED, SHARDED, ADJUSTABLE, 7, SLOTTED, SHARE, N,
];
pub(super) const TWO: &[usize] = &[SLIDING, 0];
pub(super) const FIVE: &[usize] = &[7, SHARDED, FIXED, 1, 2];
pub(super) const BOXED: &[usize] = &[POOL, SLOTTED, ADJUSTABLE, 0];
pub(super) const WITH_LOG: &[usize] = &[LOG, 2, SLOTTED, N];

impl<'r> Compositions<'r> {
    pub(super) fn new(limits: &'r Limits, records: &'r [Record; N]) -> Self {
        let clock = limits.clock();
        macro_rules! part {
            ($index:expr, $limit:expr) => {
                Recorded::new($limit, &records[$index], clock)
            };
        }
        let word = part!(0, &limits.word);
        let key = part!(1, limits.key());
        let leaky = part!(2, &limits.leaky);
        let sliding = part!(SLIDING, &limits.sliding);
        let fixed = part!(FIXED, &limits.fixed);
        let sharded = part!(SHARDED, &limits.sharded);
        let adjustable = part!(ADJUSTABLE, &limits.adjustable);
        let other_key = part!(7, limits.other_key());
        let slotted = part!(SLOTTED, &limits.slotted);
        let share = part!(SHARE, &limits.share);
        let pool = part!(POOL, &limits.pool);
        let log = part!(LOG, &limits.log);
        let eleven = (
            (word, key, leaky, sliding),
            [fixed],
            (sharded, adjustable, other_key, slotted),
            OrElse::new(share, pool),
            &limits.inside,
        );
        let five = (other_key, sharded, fixed, key, leaky);
        let boxed: [OfAnyType<'r>; 4] = [
            Box::new(pool),
            Box::new(slotted),
            Box::new(adjustable),
            Box::new(word),
        ];
        Self {
            eleven: All::new(eleven).expect("eleven limits"),
            two: All::new((sliding, word)).expect("two limits"),
            five: All::new(five).expect("five limits"),
            boxed: All::new(Vec::from(boxed)).expect("four limits"),
            with_log: All::new((log, leaky, slotted, &limits.inside)).expect("four limits"),
        }
    }
}

/// Makes the records of one thread.
pub(super) fn records() -> [Record; N] {
    array::from_fn(|_| Record::default())
}
