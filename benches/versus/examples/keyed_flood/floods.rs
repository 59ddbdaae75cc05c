//! The kinds of flood, and their effect on keys that have spent their burst.

use std::time::Duration;

use foldhash::quality::FixedState;
use tollgate::clock::SystemClock;
use tollgate::{Keyed, Tick, TokenBucket};
use tollgate_versus::keys::key;

use crate::scene::{BURST, START, refilled};

/// A table whose keys have the same slots in each run.
pub(crate) type Table = Keyed<TokenBucket, SystemClock, FixedState>;

/// What happened to keys without a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Keys that were evicted.
    pub(crate) evicted: u64,
    /// Requests that found no slot.
    pub(crate) no_room: u64,
}

/// The grants that each key of a flood requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flood {
    OnePermit,
    WholeBurst,
    /// The whole burst in two grants, so each key is used twice.
    TwoHalves,
}

impl Flood {
    pub(crate) const ALL: [Self; 3] = [Self::OnePermit, Self::WholeBurst, Self::TwoHalves];

    const fn grants(self) -> &'static [u64] {
        match self {
            Self::OnePermit => &[1],
            Self::WholeBurst => &[BURST],
            Self::TwoHalves => &[BURST / 2, BURST / 2],
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OnePermit => "one permit",
            Self::WholeBurst => "its burst at once",
            Self::TwoHalves => "its burst in two grants",
        }
    }
}

/// How a victim spent its burst. A key with one grant looks like a key of the flood.
const SPENT_BY: [&[u64]; 2] = [&[BURST / 4; 4], &[BURST]];

/// Two numbers: for victims that spent their burst in several grants, and in one.
pub(crate) type ByGrants<T> = [T; 2];

/// A table whose victims have spent their burst. Keys that have just taken one permit each fill the
/// rest of its capacity.
pub(crate) struct Flooded {
    table: Table,
    /// The number of victims of each sort.
    victims: u64,
    /// The number of the next new key.
    next: u64,
    now: Tick,
    step: Duration,
}

impl Flooded {
    /// Fills an empty table of this capacity. Each new key advances the time by `step`.
    pub(crate) fn new(table: Table, capacity: u64, victims: u64, step: Duration) -> Self {
        let flooded = Self {
            table,
            victims,
            next: capacity,
            now: START,
            step,
        };
        for number in 0..2 * victims {
            let [several, one] = SPENT_BY;
            let grants = if number < victims { several } else { one };
            assert!(flooded.asks(number, grants), "a victim spends its burst");
        }
        for number in 2 * victims..capacity {
            flooded.asks(number, &[1]);
        }
        assert_eq!(flooded.reset(), [0, 0], "all victims are in the table");
        flooded
    }

    /// Requests these grants for a key, until one is denied.
    fn asks(&self, number: u64, grants: &[u64]) -> bool {
        let mut grants = grants.iter();
        grants.all(|n| (self.table.key(&key(number)).at(self.now).try_acquire_n(*n)).is_ok())
    }

    /// Makes the requests of a new key.
    fn new_key(&mut self, flood: Flood) {
        self.now = self.now.saturating_add(self.step);
        self.asks(self.next, flood.grants());
        self.next += 1;
    }

    /// Floods the table with new keys. Returns how many victims were reset, and the table's counts.
    pub(crate) fn flood(&mut self, flood: Flood, keys: u64) -> (ByGrants<u64>, Counts) {
        let before = self.table.stats();
        for _ in 0..keys {
            self.new_key(flood);
        }
        let after = self.table.stats();
        let counts = Counts {
            evicted: after.evicted - before.evicted,
            no_room: after.no_room - before.no_room,
        };
        (self.reset(), counts)
    }

    /// Returns after how many new keys the first victim of each sort was reset, if one was.
    pub(crate) fn until_reset(&mut self, flood: Flood, keys: u64) -> ByGrants<Option<u64>> {
        let mut reset_after = [None; 2];
        for came in 1..=keys {
            self.new_key(flood);
            for (after, reset) in reset_after.iter_mut().zip(self.reset()) {
                if reset > 0 && after.is_none() {
                    *after = Some(came);
                }
            }
            if reset_after.iter().all(Option::is_some) {
                break;
            }
        }
        reset_after
    }

    /// Returns how many victims have more permits than their quota gives.
    fn reset(&self) -> ByGrants<u64> {
        let due = refilled(self.now);
        assert!(due < BURST, "a full bucket would not show a reset");
        let is_reset = |number| {
            let has = self.table.key(&key(number)).at(self.now).available();
            assert!(has >= due, "a victim has {has} permits, and {due} are due");
            has > due
        };
        let of = |from| (from..from + self.victims).filter(|number| is_reset(*number));
        [of(0).count() as u64, of(self.victims).count() as u64]
    }
}
