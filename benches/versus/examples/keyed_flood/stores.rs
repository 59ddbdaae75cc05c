//! A common trait of `Keyed` and `KeyedMap`.

use foldhash::quality::FixedState;
use tollgate::clock::SystemClock;
use tollgate::{Keyed, KeyedMap, Overflow, Tick, TokenBucket};

use crate::scene::bucket;

/// A limit for each key.
pub(crate) trait Table {
    /// Takes `n` permits of a key, and returns whether they were granted.
    fn takes(&self, key: u64, n: u64, now: Tick) -> bool;

    /// Returns how many permits a key has, without writing.
    fn has(&self, key: u64, now: Tick) -> u64;

    fn counts(&self) -> Counts;
}

/// What happened to keys without a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Keys that were evicted.
    pub(crate) evicted: u64,
    /// Requests that found no slot.
    pub(crate) no_room: u64,
}

macro_rules! tables {
    ($($table:ty),*) => {$(
        impl Table for $table {
            fn takes(&self, key: u64, n: u64, now: Tick) -> bool {
                self.key(&key).at(now).try_acquire_n(n).is_ok()
            }

            fn has(&self, key: u64, now: Tick) -> u64 {
                self.key(&key).at(now).available()
            }

            fn counts(&self) -> Counts {
                let stats = self.stats();
                Counts {
                    evicted: stats.evicted,
                    no_room: stats.no_room,
                }
            }
        }
    )*};
}

tables!(
    Keyed<TokenBucket, SystemClock, FixedState>,
    KeyedMap<u64, TokenBucket, SystemClock, FixedState>
);

/// The type of a table, and its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Keyed(u64),
    KeyedMap(u64),
}

impl Store {
    pub(crate) const fn capacity(self) -> u64 {
        let (Self::Keyed(capacity) | Self::KeyedMap(capacity)) = self;
        capacity
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Keyed(_) => "`Keyed`",
            Self::KeyedMap(_) => "`KeyedMap`",
        }
    }

    /// Returns an empty table. The seed determines how keys are hashed.
    pub(crate) fn with_overflow(self, overflow: Overflow, seed: u64) -> Box<dyn Table> {
        let (capacity, hasher) = (self.capacity() as usize, FixedState::with_seed(seed));
        match self {
            Self::Keyed(_) => {
                let table = Keyed::new(bucket(), capacity).expect("a valid capacity");
                Box::new(table.with_hasher(hasher).with_overflow(overflow))
            }
            Self::KeyedMap(_) => {
                let map = KeyedMap::new(bucket(), capacity).expect("a valid capacity");
                Box::new(map.with_hasher(hasher).with_overflow(overflow))
            }
        }
    }
}
