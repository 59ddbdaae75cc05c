//! Overrides: algorithms of single keys, in a table of fixed size that is indexed by the key's
//! hash.
//!
//! A key with an override has a slot of the plan [`OVERRIDE`]. In place of the version, the slot
//! has the last bits of the override's number, which is unique. An override is never overwritten. A
//! key's next algorithm goes to another place, with the next number, and the old place is freed
//! when no slot has its number any more. So the slot alone identifies the algorithm of its word,
//! and one exchange of the slot changes both.
//!
//! ```text
//!  keys                                        sets
//! ┌───────────────────┬───────────┬──────┐    ┌────────┬────────────────────────────┐
//! │ 63   hash   4     │ leaves (1)│ used │    │ number │ parameters: up to 15 words │
//! └───────────────────┴───────────┴──────┘    └────────┴────────────────────────────┘
//! ```
//!
//! A search is linear probing: it starts at the home place of the hash, and ends at the largest
//! distance that any override has from its home.

use std::boxed::Box;
use std::collections::HashMap;
use std::sync::PoisonError;
use std::vec::Vec;

use super::changes::Cloned;

use crate::algorithm::{MAX_SETTINGS, Settings};
use crate::keyed::find::{PLANS, SlotState, VERSIONS, tag_of};
use crate::limiter_error::LimiterError;
use crate::seq_lock::SeqLock;
use crate::sync::{AtomicU64, Ordering, SettersMutex};

/// The plan of a slot whose key has an override, in a table with overrides.
pub(crate) const OVERRIDE: u8 = PLANS as u8 - 1;
/// The most overrides of a table.
const MAX_OVERRIDES: usize = 1 << 20;

const USED: u64 = 1;
/// The override is being removed. A key that enters the table does so without it, but a slot that
/// has its number still uses it.
const LEAVES: u64 = 1 << 1;
const HASH_SHIFT: u32 = 4;

/// The parameters of an override.
type Set = SeqLock<MAX_SETTINGS>;

/// The overrides of a table.
pub(super) struct Overrides<A> {
    /// The key of each place. The number of places is a power of two, and at least twice the
    /// maximum of overrides.
    keys: Box<[AtomicU64]>,
    sets: Box<[Set]>,
    /// The largest distance of an override from its home.
    reach: AtomicU64,
    /// The number of the override that was set last.
    latest: AtomicU64,
    max: usize,
    /// Reads an algorithm. A function pointer, so that only the constructor needs `A: Settings`.
    read: fn(&Set, u64) -> Option<A>,
    /// The algorithms by hash, as they were given. ([`Settings`] may leave out what decisions don't
    /// read.) A thread that sets or removes an override holds the lock.
    given: SettersMutex<HashMap<u64, A>>,
}

impl<A: Settings + Clone> Overrides<A> {
    /// Allocates this number of overrides.
    pub(super) fn new(overrides: usize) -> Result<Self, LimiterError> {
        // An algorithm with too many parameters does not compile.
        const { MAX_SETTINGS - A::WORDS };
        if overrides == 0 {
            return Err(LimiterError::ZeroOverrides);
        }
        let max = MAX_OVERRIDES;
        let too_many = LimiterError::TooManyOverrides { overrides, max };
        if overrides > max {
            return Err(too_many);
        }
        let places = (2 * overrides).next_power_of_two();
        let mut given = HashMap::new();
        // Reserve twice the maximum, so that the map never grows: a map that is at most half full
        // rehashes in place. Add one, because `insert` makes room before it finds that the key is
        // there.
        let room = 2 * (overrides + 1);
        given.try_reserve(room).map_err(|_| too_many)?;
        Ok(Self {
            keys: filled(places, || AtomicU64::new(0)).ok_or(too_many)?,
            sets: filled(places, Set::new).ok_or(too_many)?,
            reach: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            max: overrides,
            read: |set, number| set.read(number, Cloned),
            given: SettersMutex::new(given),
        })
    }

    /// Gives a hash an override. `reach` is called with its number when it is current. It moves the
    /// key's slot to it.
    pub(super) fn set(
        &self,
        hash: u64,
        algorithm: A,
        reach: impl FnOnce(u64),
    ) -> Result<(), LimiterError> {
        self.change(|given| {
            let in_use = LimiterError::OverridesInUse { max: self.max };
            if given.len() >= self.max && !given.contains_key(&hash) {
                return Err(in_use);
            }
            let number = self.put(hash, &algorithm).ok_or(in_use)?;
            given.insert(hash, algorithm);
            reach(number);
            self.vacate_but(hash, Some(number));
            Ok(())
        })
    }

    /// Gives a hash an override, which is current at once, and returns its number. Returns `None`
    /// if no place is free. The caller holds the lock.
    fn put(&self, hash: u64, algorithm: &A) -> Option<u64> {
        let home = self.home(tag_of(hash));
        let number = self.next_number(hash)?;
        for distance in 0..self.keys.len() as u64 {
            let (key, set) = self.place(home, distance)?;
            // ORDERING: Relaxed. Only a thread that holds the lock writes it.
            if key.load(Ordering::Relaxed) != 0 {
                continue;
            }
            set.write(number, algorithm);
            // ORDERING: Relaxed. The next stores publish it. A thread that does not see it may miss
            // this override, but has not seen these stores either, so for that thread the override
            // is not current yet.
            self.reach.fetch_max(distance, Ordering::Relaxed);
            // ORDERING: Release. It publishes the parameters, and pairs with the load of
            // `number_at`.
            // Model: keyed_overrides::a_change_reaches_the_key
            key.store(hash << HASH_SHIFT | USED, Ordering::Release);
            // ORDERING: Release. It pairs with the loads of `number_of`. A thread that finds the
            // place of an older override freed also sees this number, and looks again.
            // Model: keyed_overrides::a_change_reaches_the_key
            self.latest.store(number, Ordering::Release);
            return Some(number);
        }
        None
    }
}

impl<A> Overrides<A> {
    /// Returns the number of the next override. A slot keeps its last bits, so they must differ
    /// from those of this hash's older overrides, which a slot may still use.
    fn next_number(&self, hash: u64) -> Option<u64> {
        // ORDERING: Relaxed. Only a thread that holds the lock writes it.
        let latest = self.latest.load(Ordering::Relaxed);
        let mut next = (1..=VERSIONS).map(|later| latest.wrapping_add(later));
        next.find(|number| {
            let is_alike = |(_, set): (_, &Set)| set.version() % VERSIONS == number % VERSIONS;
            !self.places_of(hash).any(is_alike)
        })
    }

    /// Returns the most overrides that can be set.
    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Returns how many overrides are set.
    pub(super) fn in_use(&self) -> usize {
        self.change(|given| given.len())
    }

    /// Runs `act` while no other thread can set an override or change a quota.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut HashMap<u64, A>) -> T) -> T {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut given)
    }

    /// Removes the override of a hash, and returns whether it had one. `reach` is called when new
    /// keys no longer use it. It moves the key's slot to another algorithm.
    pub(super) fn remove(&self, hash: u64, reach: impl FnOnce()) -> bool {
        self.change(|given| {
            let was_set = given.remove(&hash).is_some();
            if was_set {
                self.leave(hash);
                reach();
                self.vacate_but(hash, None);
            }
            was_set
        })
    }

    /// Marks the override of this hash as being removed: from now on the key enters the table
    /// without it. The caller holds the lock.
    fn leave(&self, hash: u64) {
        for (key, _) in self.places_of(hash) {
            // ORDERING: Relaxed. The fence of `reach` follows.
            // Model: keyed_overrides::a_change_reaches_the_key
            key.store(hash << HASH_SHIFT | USED | LEAVES, Ordering::Relaxed);
        }
    }

    /// Frees the places of all overrides of this hash except the one with this number. No slot may
    /// use the others any more. The caller holds the lock.
    fn vacate_but(&self, hash: u64, number: Option<u64>) {
        for (key, set) in self.places_of(hash) {
            if Some(set.version()) != number {
                // ORDERING: Release. It pairs with the loads of `number_at`. A thread that finds
                // the place freed also sees the override that was put before: see `number_of`.
                // Model: keyed_overrides::a_change_reaches_the_key
                key.store(0, Ordering::Release);
            }
        }
    }

    /// Frees all places.
    pub(super) fn clear(&mut self) {
        self.change(HashMap::clear);
        for key in &self.keys {
            // ORDERING: Relaxed. No other thread uses the table.
            key.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the number of the override with which a key with this hash enters the table.
    pub(super) fn number_of(&self, hash: u64) -> Option<u64> {
        // ORDERING: Acquire. It pairs with the store of `put`: the override that was put last is
        // visible.
        // Model: keyed_overrides::a_change_reaches_the_key
        let mut latest = self.latest.load(Ordering::Acquire);
        loop {
            let is_it = |key: u64| key == hash << HASH_SHIFT | USED;
            let numbers = self.numbers(tag_of(hash), is_it).map(|(number, _)| number);
            if let newest @ Some(_) = numbers.max() {
                return newest;
            }
            // ORDERING: Acquire. As above. A new override may have replaced the old one in a place
            // that was already passed. Then `latest` has changed.
            let now = self.latest.load(Ordering::Acquire);
            if now == latest {
                return None;
            }
            latest = now;
        }
    }

    /// Returns the number of the override that a slot of the plan [`OVERRIDE`] uses, or `None` if
    /// its key has another one now.
    pub(super) fn number_in(&self, held: SlotState, hash: u64) -> Option<u64> {
        let is_it = |key: u64| key >> HASH_SHIFT == hash;
        let mut numbers = self.numbers(tag_of(hash), is_it).map(|(number, _)| number);
        numbers.find(|number| number % VERSIONS == held.version())
    }

    /// Runs `act` on the override of this hash with this number, or returns `None` if it is
    /// outdated.
    pub(super) fn with<T>(&self, hash: u64, number: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        let is_it = |key: u64| key >> HASH_SHIFT == hash;
        let mut numbers = self.numbers(tag_of(hash), is_it);
        let (_, set) = numbers.find(|(known, _)| *known == number)?;
        Some(act(&(self.read)(set, number)?))
    }

    /// Passes the override and the word of a slot of the plan [`OVERRIDE`] to `ask`. Returns `None`
    /// if the key has another override now, or if two keys' overrides match the slot.
    pub(super) fn ask<T>(&self, held: SlotState, ask: impl FnOnce(&A, u64) -> T) -> Option<T> {
        let is_it = |key: u64| tag_of(key >> HASH_SHIFT) == held.tag();
        let numbers = self.numbers(held.tag(), is_it);
        let mut its = numbers.filter(|(number, _)| number % VERSIONS == held.version());
        match (its.next(), its.next()) {
            (Some((number, set)), None) => Some(ask(&(self.read)(set, number)?, held.word())),
            _ => None,
        }
    }

    /// Iterates over the numbers of the overrides whose keys satisfy `is_it`.
    fn numbers(&self, tag: u64, is_it: impl Fn(u64) -> bool) -> impl Iterator<Item = (u64, &Set)> {
        let places = self.places(tag);
        places.filter_map(move |(key, set)| Some((number_at(key, set, &is_it)?, set)))
    }

    /// Iterates over the places of this hash's overrides. The caller holds the lock.
    fn places_of(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, &Set)> {
        let its = move |key: u64| key & USED != 0 && key >> HASH_SHIFT == hash;
        // ORDERING: Relaxed. Only a thread that holds the lock writes it.
        self.places(tag_of(hash))
            .filter(move |(key, _)| its(key.load(Ordering::Relaxed)))
    }

    /// Iterates over the places where an override of a key with this tag may be.
    fn places(&self, tag: u64) -> impl Iterator<Item = (&AtomicU64, &Set)> {
        let home = self.home(tag);
        // ORDERING: Relaxed. It publishes nothing. A thread that has seen an override's number, in
        // `latest` or in a slot, also sees the distance that `put` stored before it.
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

/// Returns the number of the override in a place, if its key satisfies `is_it`.
fn number_at(key: &AtomicU64, set: &Set, is_it: impl Fn(u64) -> bool) -> Option<u64> {
    let is_it = |key: u64| key & USED != 0 && is_it(key);
    // ORDERING: Acquire. It pairs with the store of `put`: the number and the parameters are
    // visible.
    // Model: keyed_overrides::a_change_reaches_the_key
    if !is_it(key.load(Ordering::Acquire)) {
        return None;
    }
    let number = set.version();
    // If another override takes this place, its number is written after this key is cleared. So a
    // second look at the key detects that. ORDERING: Acquire. As above: if the key has been
    // cleared, the override that was put before that is visible.
    is_it(key.load(Ordering::Acquire)).then_some(number)
}

/// Returns a slice of this length, or `None` if there is not enough memory.
fn filled<T>(length: usize, make: impl Fn() -> T) -> Option<Box<[T]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(length).ok()?;
    all.extend((0..length).map(|_| make()));
    Some(all.into())
}
