//! Algorithms of single keys: a table of fixed size, in which they are found by a key's hash.
//!
//! A key with an override has a slot of the plan [`OWN`]. In the place of the version such a slot
//! has the last bits of the override's number, which no other override has. An override is never
//! rewritten: a key's next algorithm is put into another place, with the next number, and the place
//! of the old one is given up when no slot has its number any more. So the slot alone says which
//! algorithm its word is of, and an exchange of the slot changes both.
//!
//! ```text
//!  keys                                        sets
//! ┌───────────────────┬───────────┬──────┐    ┌────────┬────────────────────────────┐
//! │ 63   hash   4     │ leaves (1)│ used │    │ number │ parameters: up to 15 words │
//! └───────────────────┴───────────┴──────┘    └────────┴────────────────────────────┘
//! ```
//!
//! A hash is looked for from its home place on, as far as the farthest override is from its own.

use core::fmt;
use std::boxed::Box;
use std::collections::HashMap;
use std::sync::PoisonError;
use std::vec::Vec;

use super::slot::{PLANS, SlotState, TAG_SHIFT, VERSIONS};
use crate::algorithm::{MAX_SETTINGS, Settings, Visit};
use crate::quota::ConfigError;
use crate::seq_lock::SeqLock;
use crate::sync::{AtomicU64, Ordering, SettersMutex};

/// The plan of a slot whose key has an override, in a table that has overrides.
pub(super) const OWN: u8 = PLANS as u8 - 1;
/// The most overrides that a table can have.
const MAX_OVERRIDES: usize = 1 << 20;

const USED: u64 = 1;
/// A key that comes into the table comes without it; a slot that has its number still goes by it.
const LEAVES: u64 = 1 << 1;
const HASH_SHIFT: u32 = 4;

/// The parameters of an override.
type Set = SeqLock<MAX_SETTINGS>;

/// The overrides of a table.
pub(super) struct Overrides<A> {
    /// Twice as many places as there may be overrides, or more: a power of two.
    keys: Box<[AtomicU64]>,
    sets: Box<[Set]>,
    /// How far an override may be from its home.
    reach: AtomicU64,
    /// The number of the last override that was set.
    latest: AtomicU64,
    max: usize,
    /// What only an algorithm that has settings can do.
    read: fn(&Set, u64) -> Option<A>,
    /// The overrides by their hashes, with all that parameters may leave out. A thread that sets one
    /// holds the lock.
    owners: SettersMutex<HashMap<u64, A>>,
}

impl<A: Settings + Clone> Overrides<A> {
    /// Room for this number of overrides.
    pub(super) fn new(overrides: usize) -> Result<Self, ConfigError> {
        // They fit, or it does not compile.
        const { MAX_SETTINGS - A::WORDS };
        if overrides == 0 {
            return Err(ConfigError::ZeroOverrides);
        }
        let max = MAX_OVERRIDES;
        let too_many = ConfigError::TooManyOverrides { overrides, max };
        if overrides > max {
            return Err(too_many);
        }
        let places = (2 * overrides).next_power_of_two();
        let mut owners = HashMap::new();
        owners.try_reserve(overrides).map_err(|_| too_many)?;
        Ok(Self {
            keys: filled(places, || AtomicU64::new(0)).ok_or(too_many)?,
            sets: filled(places, Set::new).ok_or(too_many)?,
            reach: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            max: overrides,
            read: |set, number| set.read(number, Cloned),
            owners: SettersMutex::new(owners),
        })
    }

    /// Gives a hash an override, which is the one in force at once, and returns its number. `None`
    /// if there is no place. The caller holds the lock.
    pub(super) fn put(&self, hash: u64, algorithm: &A) -> Option<u64> {
        let home = self.home(tag_of(hash));
        let number = self.next_number(hash)?;
        for distance in 0..self.keys.len() as u64 {
            let (key, set) = self.place(home, distance)?;
            // ORDERING: Relaxed. As above.
            if key.load(Ordering::Relaxed) != 0 {
                continue;
            }
            set.write(number, algorithm);
            // ORDERING: Relaxed. The next stores publish it: a thread that does not see it yet does
            // not see this override, which is then not in force yet.
            self.reach.fetch_max(distance, Ordering::Relaxed);
            // ORDERING: Release. It publishes the parameters. It pairs with the load of `number_at`.
            // Model: keyed_overrides::a_change_reaches_the_key
            key.store(hash << HASH_SHIFT | USED, Ordering::Release);
            // ORDERING: Release. A thread that finds the place of an older override given up finds
            // this number, too, and looks again. Model: keyed_overrides::a_change_reaches_the_key
            self.latest.store(number, Ordering::Release);
            return Some(number);
        }
        None
    }
}

impl<A> Overrides<A> {
    /// The number of the next override: its last bits, which a slot has, are not those of an older
    /// override of this hash, which some slot may still go by.
    fn next_number(&self, hash: u64) -> Option<u64> {
        // ORDERING: Relaxed. A thread that sets an override holds the lock.
        let latest = self.latest.load(Ordering::Relaxed);
        let mut next = (1..=VERSIONS).map(|later| latest.wrapping_add(later));
        next.find(|number| {
            let is_alike = |(_, set): (_, &Set)| set.version() % VERSIONS == number % VERSIONS;
            !self.places_of(hash).any(is_alike)
        })
    }

    /// How many there may be.
    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// No other thread sets an override, or changes a quota, while `act` runs.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut HashMap<u64, A>) -> T) -> T {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut owners)
    }

    /// A key of this hash that comes into the table from now on comes without its override. The
    /// caller holds the lock.
    pub(super) fn leave(&self, hash: u64) {
        for (key, _) in self.places_of(hash) {
            // ORDERING: Relaxed. The fence of `move_to` follows.
            // Model: keyed_overrides::a_change_reaches_the_key
            key.store(hash << HASH_SHIFT | USED | LEAVES, Ordering::Relaxed);
        }
    }

    /// Gives up the places of all overrides of this hash but the one with this number. No slot has
    /// the number of another one. The caller holds the lock.
    pub(super) fn vacate_but(&self, hash: u64, number: Option<u64>) {
        for (key, set) in self.places_of(hash) {
            if Some(set.version()) != number {
                // ORDERING: Release. A thread that finds the place given up knows of what was put
                // before: see `number_of`. Model: keyed_overrides::a_change_reaches_the_key
                key.store(0, Ordering::Release);
            }
        }
    }

    /// Gives up all places.
    pub(super) fn clear(&mut self) {
        self.change(HashMap::clear);
        for key in &self.keys {
            // ORDERING: Relaxed. No other thread uses the table.
            key.store(0, Ordering::Relaxed);
        }
    }

    /// The number of the override that a key with this hash comes into the table with.
    pub(super) fn number_of(&self, hash: u64) -> Option<u64> {
        // ORDERING: Acquire. It pairs with the store of `put`: the override that was put last is
        // there. Model: keyed_overrides::a_change_reaches_the_key
        let mut latest = self.latest.load(Ordering::Acquire);
        loop {
            let is_it = |key: u64| key == hash << HASH_SHIFT | USED;
            let numbers = self.numbers(tag_of(hash), is_it).map(|(number, _)| number);
            if let newest @ Some(_) = numbers.max() {
                return newest;
            }
            // ORDERING: Acquire. As above. An override may have gone from a place that was not
            // looked at yet to one that was: then a number was given meanwhile.
            let now = self.latest.load(Ordering::Acquire);
            if now == latest {
                return None;
            }
            latest = now;
        }
    }

    /// The number of the override that a slot of the plan [`OWN`] goes by. `None` if its key goes
    /// by another one now.
    pub(super) fn number_in(&self, held: SlotState, hash: u64) -> Option<u64> {
        let is_it = |key: u64| key >> HASH_SHIFT == hash;
        let mut numbers = self.numbers(tag_of(hash), is_it).map(|(number, _)| number);
        numbers.find(|number| number % VERSIONS == held.version())
    }

    /// Does something with the override of a number, which is of this hash. `None` if that is over.
    pub(super) fn with<T>(&self, hash: u64, number: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        let is_it = |key: u64| key >> HASH_SHIFT == hash;
        let mut numbers = self.numbers(tag_of(hash), is_it);
        let (_, set) = numbers.find(|(known, _)| *known == number)?;
        Some(act(&(self.read)(set, number)?))
    }

    /// Asks the word of a slot of the plan [`OWN`]. `None` if its key goes by another override now,
    /// or if two keys with overrides are so much alike that it can't be told which one it is.
    pub(super) fn ask<T>(&self, held: SlotState, ask: impl FnOnce(&A, u64) -> T) -> Option<T> {
        let is_it = |key: u64| tag_of(key >> HASH_SHIFT) == held.tag();
        let numbers = self.numbers(held.tag(), is_it);
        let mut its = numbers.filter(|(number, _)| number % VERSIONS == held.version());
        match (its.next(), its.next()) {
            (Some((number, set)), None) => Some(ask(&(self.read)(set, number)?, held.word)),
            _ => None,
        }
    }

    /// The numbers of the overrides whose keys are such.
    fn numbers(&self, tag: u64, is_it: impl Fn(u64) -> bool) -> impl Iterator<Item = (u64, &Set)> {
        let places = self.places(tag);
        places.filter_map(move |(key, set)| Some((number_at(key, set, &is_it)?, set)))
    }

    /// The places of this hash's overrides. The caller holds the lock.
    fn places_of(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, &Set)> {
        let its = move |key: u64| key & USED != 0 && key >> HASH_SHIFT == hash;
        // ORDERING: Relaxed. A thread that sets an override holds the lock.
        self.places(tag_of(hash))
            .filter(move |(key, _)| its(key.load(Ordering::Relaxed)))
    }

    /// The places where an override of a key with this tag may be.
    fn places(&self, tag: u64) -> impl Iterator<Item = (&AtomicU64, &Set)> {
        let home = self.home(tag);
        // ORDERING: Relaxed. It is as far as it was when the latest number was given that is known,
        // or farther.
        let reach = self.reach.load(Ordering::Relaxed);
        (0..=reach).filter_map(move |distance| self.place(home, distance))
    }

    fn place(&self, home: u64, distance: u64) -> Option<(&AtomicU64, &Set)> {
        let place = home.wrapping_add(distance) as usize & (self.keys.len() - 1);
        Some((self.keys.get(place)?, self.sets.get(place)?))
    }

    fn home(&self, tag: u64) -> u64 {
        tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }
}

/// The number of the override at a place, if its key is such.
fn number_at(key: &AtomicU64, set: &Set, is_it: impl Fn(u64) -> bool) -> Option<u64> {
    let is_it = |key: u64| key & USED != 0 && is_it(key);
    // ORDERING: Acquire. It pairs with the store of `put`: the number and the parameters are there.
    // Model: keyed_overrides::a_change_reaches_the_key
    if !is_it(key.load(Ordering::Acquire)) {
        return None;
    }
    let number = set.version();
    // The number of another override is announced after the key of this one has left.
    // ORDERING: Acquire. As above: what comes next knows what a key that left has left behind.
    is_it(key.load(Ordering::Acquire)).then_some(number)
}

/// The tag of a hash, where a slot has it.
const fn tag_of(hash: u64) -> u64 {
    hash << TAG_SHIFT
}

/// A slice of this length; `None` if there is no memory for it.
fn filled<T>(length: usize, make: impl Fn() -> T) -> Option<Box<[T]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(length).ok()?;
    all.extend((0..length).map(|_| make()));
    Some(all.into())
}

struct Cloned;

impl<A: Clone> Visit<A> for Cloned {
    type Output = A;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> A {
        algorithm.clone()
    }
}

impl<A> fmt::Debug for Overrides<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides")
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}
