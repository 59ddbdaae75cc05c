//! Tables of a few slots, and an independent record of what happened to their keys.

use std::hash::{BuildHasherDefault, DefaultHasher};

use tollgate::algorithm::{Algorithm, ChangeQuota};
use tollgate::clock::Clock;
use tollgate::keyed::Overflow;
use tollgate::{Denied, Granted, Keyed, Tick};

/// A clock that stands still. Calls pass their ticks explicitly.
#[derive(Debug, Clone, Copy)]
pub struct FrozenClock(pub Tick);

impl Clock for FrozenClock {
    fn now(&self) -> Tick {
        self.0
    }
}

/// A hasher that is the same in each execution.
type Alike = BuildHasherDefault<DefaultHasher>;

/// A table whose keys are numbers.
pub type Table<A> = Keyed<A, FrozenClock, Alike>;

/// Returns a table with this many slots and these plans.
pub fn table<A: ChangeQuota>(
    plans: impl IntoIterator<Item = A>,
    slots: usize,
    overflow: Overflow,
) -> Table<A> {
    let limiter = Keyed::with_plans(plans, slots, FrozenClock(Tick::from_nanos(1000)));
    let limiter = limiter.expect("a table").with_hasher(Alike::default());
    assert_eq!(limiter.slots(), slots);
    limiter.with_overflow(overflow)
}

/// What one thread, or all threads together, did to each of `KEYS` keys.
#[derive(Debug, Clone)]
pub struct Ledger<const KEYS: usize> {
    /// Permits requested, whether granted or not.
    pub asked: [u64; KEYS],
    /// Grants that were not undone.
    pub grants: [Vec<Granted>; KEYS],
    /// How often the key was removed.
    pub removed: [u64; KEYS],
    /// How often a request was denied because the table was full.
    pub no_room: u64,
}

impl<const KEYS: usize> Default for Ledger<KEYS> {
    fn default() -> Self {
        Self {
            asked: [0; KEYS],
            grants: [(); KEYS].map(|()| Vec::new()),
            removed: [0; KEYS],
            no_room: 0,
        }
    }
}

impl<const KEYS: usize> Ledger<KEYS> {
    /// Records an answer.
    pub fn enter(&mut self, key: usize, n: u64, answer: Result<Granted, Denied>) {
        self.asked[key] += n;
        match answer {
            Ok(granted) => self.grants[key].push(granted),
            Err(Denied::NoRoom { .. }) => self.no_room += 1,
            Err(_) => {}
        }
    }

    /// Asks for a permit of each of two keys, in a batch.
    pub fn batch<A: Algorithm>(&mut self, limiter: &Table<A>, keys: [usize; 2], now: Tick) {
        let mut outcomes = [Err(Denied::busy(1)); 2];
        let length = limiter.try_acquire_batch_at(0, &keys, &mut outcomes, now);
        length.expect("there are two");
        for (key, outcome) in keys.into_iter().zip(outcomes) {
            self.enter(key, 1, outcome);
        }
    }

    /// Returns the sum of all records.
    #[must_use]
    pub fn of_all(all: Vec<Self>) -> Self {
        let mut sum = Self::default();
        for one in all {
            for key in 0..KEYS {
                sum.asked[key] += one.asked[key];
                sum.grants[key].extend(&one.grants[key]);
                sum.removed[key] += one.removed[key];
            }
            sum.no_room += one.no_room;
        }
        sum
    }

    /// Returns how many permits of a key are held.
    pub fn held(&self, key: usize) -> u64 {
        self.grants[key].iter().map(Granted::n).sum()
    }
}

/// Checks a table after its threads have ended. No key has two slots, no slot is claimed (except by
/// stopped threads), and the statistics add up.
pub fn check_table<A: Algorithm, const KEYS: usize>(limiter: &Table<A>, stopped: usize) {
    let stats = limiter.stats();
    let left = stats.expired + stats.evicted + stats.removed;
    assert_eq!(
        stats.tracked,
        limiter.len() as u64,
        "the statistics do not add up: {stats:?}"
    );
    assert_eq!(
        stats.inserted,
        stats.tracked + left,
        "the statistics do not add up: {stats:?}"
    );
    let mut tracked = 0;
    for key in 0..KEYS {
        let slots = limiter.slots_of(&key).len();
        assert!(slots <= 1, "a key has two slots");
        tracked += slots as u64;
    }
    assert_eq!(stats.tracked, tracked, "a slot has no key");
    assert!(limiter.claims() <= stopped, "a claim remains");
}
