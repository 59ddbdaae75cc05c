//! Tables of a few slots, and what is known of their keys without them.

use std::hash::{BuildHasherDefault, DefaultHasher};

use tollgate::algorithm::{Algorithm, ChangeQuota};
use tollgate::clock::Clock;
use tollgate::{Denied, Granted, Keyed, Overflow, Tick};

/// A clock that stands still. Ticks are given by hand.
#[derive(Debug, Clone, Copy)]
pub struct Standing(pub Tick);

impl Clock for Standing {
    fn now(&self) -> Tick {
        self.0
    }
}

/// Keys are hashed alike in each execution.
type Alike = BuildHasherDefault<DefaultHasher>;

/// A table whose keys are numbers.
pub type Table<A> = Keyed<A, Standing, Alike>;

/// A table of so many slots with these plans.
///
/// # Panics
///
/// Never: these are plans, and a capacity.
pub fn table<A: ChangeQuota>(
    plans: impl IntoIterator<Item = A>,
    slots: usize,
    overflow: Overflow,
) -> Table<A> {
    let limiter = Keyed::with_plans(plans, slots, Standing(Tick::from_nanos(1000)));
    let limiter = limiter.expect("a table").with_hasher(Alike::default());
    assert_eq!(limiter.slots(), slots);
    limiter.with_overflow(overflow)
}

/// What a thread, or all of them, did to each of `KEYS` keys.
#[derive(Debug, Clone)]
pub struct Books<const KEYS: usize> {
    /// How many permits were asked for, one by one.
    pub asked: [u64; KEYS],
    /// What was granted, and not undone.
    pub grants: [Vec<Granted>; KEYS],
    /// How often it was removed.
    pub removed: [u64; KEYS],
    /// How often there was no room.
    pub no_room: u64,
}

impl<const KEYS: usize> Default for Books<KEYS> {
    fn default() -> Self {
        Self {
            asked: [0; KEYS],
            grants: [(); KEYS].map(|()| Vec::new()),
            removed: [0; KEYS],
            no_room: 0,
        }
    }
}

impl<const KEYS: usize> Books<KEYS> {
    /// Enters an answer.
    pub fn enter(&mut self, key: usize, n: u64, answer: Result<Granted, Denied>) {
        self.asked[key] += n;
        match answer {
            Ok(granted) => self.grants[key].push(granted),
            Err(Denied::NoRoom { .. }) => self.no_room += 1,
            Err(_) => {}
        }
    }

    /// The sum of all.
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

    /// How many permits of a key are held.
    pub fn held(&self, key: usize) -> u64 {
        self.grants[key].iter().map(Granted::n).sum()
    }
}

/// What must hold of a table whose threads have come to their end: no key has two slots, none is
/// claimed (but by those who stopped for ever), and the statistics add up.
///
/// # Panics
///
/// If it does not.
pub fn check_table<A: Algorithm, const KEYS: usize>(limiter: &Table<A>, stopped: usize) {
    let stats = limiter.stats();
    let left = stats.expired + stats.evicted + stats.removed;
    assert_eq!(
        stats.tracked,
        limiter.len() as u64,
        "not as many keys: {stats:?}"
    );
    assert_eq!(
        stats.inserted,
        stats.tracked + left,
        "not as many keys: {stats:?}"
    );
    let mut tracked = 0;
    for key in 0..KEYS {
        let slots = limiter.slots_of(&key);
        assert!(slots <= 1, "two slots of a key");
        tracked += slots as u64;
    }
    assert_eq!(stats.tracked, tracked, "a slot of no key");
    assert!(limiter.claims() <= stopped, "a claim is left");
}
