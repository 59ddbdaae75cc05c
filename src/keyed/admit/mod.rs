//! The part that admits: which keys enter the table, stay in it, and leave it.
//!
//! | method of [`Keys`] | for |
//! |---|---|
//! | `choose` (`choose.rs`) | the slot of a key that enters |
//! | `claim`, `confirm`, `publish`, `release` (`claim.rs`) | how it enters |
//! | `migrate_all` | the keys that a new key finds |
//! | `set_quota`, `set_override`, `remove_override` (`reach.rs`) | a change, for all keys |
//! | `remove`, `stats`, `tracked`, `count_no_room`, `horizon`, `replace` | the table as a whole |
//! | `table`, `plans` | the parts that it owns, to read |
//!
//! [`FirstToLeave`] says which key is evicted first, for a table that is being restored.
//! A [`Candidate`] and a [`Claim`] are opaque to the other parts.

mod choose;
mod claim;
mod events;
mod leaving;
mod reach;

use self::events::{Event, Events};
use super::find::{Lookup, ProbeSeq, Table};
use super::overflow::Overflow;
use super::plans::Plans;
use super::stats::KeyedStats;
use crate::algorithm::{Algorithm, ChangeQuota, Settings};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::sync::{AtomicU64, Ordering};

pub(super) use self::choose::Candidate;
pub(super) use self::claim::Claim;
pub(super) use self::leaving::FirstToLeave;

/// The keys of a table, with the algorithms that decide on them.
pub(crate) struct Keys<A> {
    table: Table,
    plans: Plans<A>,
    overflow: Overflow,
    events: Events,
    /// The latest tick at which an evicted key had become idle. A new key starts at this tick or
    /// later, so that an evicted key that returns with a stale clock reading cannot get a second
    /// burst.
    horizon: AtomicU64,
}

impl<A> Keys<A> {
    pub(crate) fn new(table: Table, plans: Plans<A>) -> Self {
        Self {
            table,
            plans,
            overflow: Overflow::default(),
            events: Events::new(),
            horizon: AtomicU64::new(0),
        }
    }

    /// Returns the same table without its keys and overrides.
    pub(crate) fn emptied(mut self) -> Self {
        self.plans.clear_overrides();
        if self.tracked() == 0 {
            // The usual case: no key was inserted. The table's memory may not even be mapped yet,
            // so don't touch it.
            return self;
        }
        for (at, held) in self.table.all() {
            let _ = self.table.release(at, held);
            if held.is_live() {
                self.events.count(Event::Removed);
            }
        }
        self
    }

    /// The slots. Only this part makes and ends claims, evicts and removes keys.
    #[inline(always)]
    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }

    #[inline(always)]
    pub(crate) const fn plans(&self) -> &Plans<A> {
        &self.plans
    }

    pub(crate) const fn overflow(&self) -> Overflow {
        self.overflow
    }

    pub(crate) fn plans_mut(&mut self) -> &mut Plans<A> {
        &mut self.plans
    }

    pub(crate) fn set_overflow(&mut self, overflow: Overflow) {
        self.overflow = overflow;
    }

    /// Returns how many keys are in the table.
    pub(crate) fn tracked(&self) -> u64 {
        self.events.tracked()
    }

    /// Counts a key that found no slot.
    pub(crate) fn count_no_room(&self) {
        self.events.count(Event::NoRoom);
    }

    /// Returns the earliest tick at which a new key may start.
    #[cfg_attr(any(tollgate_loom, tollgate_shuttle), track_caller)]
    pub(crate) fn horizon(&self) -> Tick {
        // ORDERING: Relaxed. It publishes nothing. A thread that sees that a key has left
        // synchronizes with its eviction, which published the horizon.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst
        Tick::from_nanos(self.horizon.load(Ordering::Relaxed))
    }

    /// Raises the horizon to this tick, at which an evicted key became idle.
    fn raise(&self, since: Tick) {
        // A stale value only repeats the `fetch_max`.
        if self.horizon() < since {
            // ORDERING: Relaxed. The exchange that follows publishes it.
            // Model: keyed_turnover::a_late_caller_gets_no_second_burst
            self.horizon.fetch_max(since.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Removes a key, and returns whether it was there.
    pub(crate) fn remove(&self, probe_seq: &ProbeSeq) -> bool {
        // A claim does not count: its key is inserted after this removal.
        while let Lookup::Live(at, held) = self.table.look(probe_seq).find(probe_seq.tag()) {
            if self.table.release(at, held).is_ok() {
                self.events.count(Event::Removed);
                return true;
            }
        }
        false
    }

    /// Replaces the keys by those of `table`, of which `evicted` found no room: as many that were
    /// protected, and others.
    pub(crate) fn replace(&mut self, table: Table, keys: u64, evicted: [u64; 2], horizon: Tick) {
        let [protected, others] = evicted;
        let count = |event, n| self.events.count_many(event, n);
        count(Event::Removed, self.tracked());
        let inserted = keys.saturating_add(protected).saturating_add(others);
        count(Event::Inserted, inserted);
        count(Event::Evicted, others);
        count(Event::EvictedProtected, protected);
        self.table = table;
        self.raise(horizon);
    }
}

impl<A: ChangeQuota + Settings + Clone> Keys<A> {
    /// Returns the same table, empty, with room for this number of overrides.
    pub(crate) fn with_overrides(self, overrides: usize) -> Result<Self, LimiterError> {
        let keys = self.emptied();
        let plans = keys.plans.with_overrides(overrides)?;
        Ok(Self { plans, ..keys })
    }
}

impl<A: Algorithm> Keys<A> {
    /// Counts the keys at this tick, and the events.
    pub(crate) fn stats(&self, now: Tick) -> KeyedStats {
        let (mut tracked, mut idle) = (0, 0);
        for (_, held) in self.table.all().filter(|(_, held)| held.is_live()) {
            tracked += 1;
            idle += u64::from(self.plans.is_idle(held, self.plans.version(), now));
        }
        let total = |event| self.events.total(event);
        let evicted_protected = total(Event::EvictedProtected);
        KeyedStats {
            slots: u64::try_from(self.table.slots()).unwrap_or(u64::MAX),
            tracked,
            idle,
            inserted: total(Event::Inserted),
            expired: total(Event::Expired),
            evicted: evicted_protected.wrapping_add(total(Event::Evicted)),
            evicted_protected,
            removed: total(Event::Removed),
            no_room: total(Event::NoRoom),
        }
    }
}
