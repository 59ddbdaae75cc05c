//! The algorithms of a table: a few plans, each of which may have been changed.

use core::fmt;
use std::boxed::Box;
use std::sync::{OnceLock, PoisonError};
use std::vec::Vec;

use super::changes::Changes;
use super::slot::Content;
use crate::algorithm::{Algorithm, Requota};
use crate::clock::Tick;
use crate::primitive::{AtomicU64, IS_MODEL, Ordering, SettersMutex};
use crate::quota::ConfigError;

/// The most plans that a table can have.
pub(super) const PLANS: u64 = 8;
/// How many versions of a plan a slot can tell apart. Few in a model, so that they come again.
pub(super) const VERSIONS: u64 = if IS_MODEL { 4 } else { 64 };

/// How the word of one plan goes on in another.
pub(super) type CarryOver<A> = fn(&A, u64, Tick, &A) -> u64;

/// The plans, of which there is at least one.
pub(super) struct Plans<A> {
    first: Plan<A>,
    others: Box<[Plan<A>]>,
    /// What a table of one plan never does.
    carry_over: Option<CarryOver<A>>,
    /// How often one of them has been changed. It is one number for all, so that who goes through the table brings every
    /// slot up, of whichever plan: nobody who has slept can put a key into a plan whose versions have come again meanwhile.
    version: AtomicU64,
    /// Who changes a plan holds it.
    setters: SettersMutex<()>,
}

/// An algorithm, and what it has become since.
pub(super) struct Plan<A> {
    first: A,
    changes: OnceLock<Changes<A>>,
}

impl<A> Plans<A> {
    pub(super) fn one(algorithm: A) -> Self {
        Self {
            first: Plan::new(algorithm),
            others: Box::default(),
            carry_over: None,
            version: AtomicU64::new(0),
            setters: SettersMutex::new(()),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, plan: u8) -> Option<&Plan<A>> {
        match plan {
            0 => Some(&self.first),
            other => self.others.get(usize::from(other) - 1),
        }
    }

    pub(super) const fn first(&self) -> &Plan<A> {
        &self.first
    }

    pub(super) fn count(&self) -> usize {
        self.others.len() + 1
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan<A>> {
        core::iter::once(&self.first).chain(&self.others)
    }

    /// Which version is in force.
    #[inline(always)]
    pub(super) fn version(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `bring`: the version's parameters are there.
        // Model: loom-tests/tests/keyed_quota.rs::a_change_reaches_every_key
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn bring(&self, version: u64) {
        // ORDERING: Release. It publishes the parameters of this version.
        // Model: loom-tests/tests/keyed_quota.rs::a_change_reaches_every_key
        self.version.store(version, Ordering::Release);
    }

    /// Nobody else changes a plan while `act` does.
    pub(super) fn one_at_a_time<T>(&self, act: impl FnOnce() -> T) -> T {
        let _alone = self.setters.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }
}

impl<A: Requota> Plans<A> {
    pub(super) fn several(algorithms: impl IntoIterator<Item = A>) -> Result<Self, ConfigError> {
        let mut plans = algorithms.into_iter().map(Plan::new);
        let Some(first) = plans.next() else {
            return Err(ConfigError::ZeroPlans);
        };
        let max = PLANS as usize;
        // One more than there may be is enough to know.
        let others: Vec<_> = plans.take(max).collect();
        if others.len() >= max {
            let plans = others.len() + 1;
            return Err(ConfigError::TooManyPlans { plans, max });
        }
        Ok(Self {
            first,
            others: others.into(),
            carry_over: Some(A::carry_over),
            version: AtomicU64::new(0),
            setters: SettersMutex::new(()),
        })
    }
}

impl<A: Algorithm> Plans<A> {
    /// Whether the key of a slot can no longer be told from a fresh one.
    pub(super) fn is_idle(&self, held: Content, now: Tick) -> bool {
        self.ask(held, |algorithm, word| algorithm.is_idle(word, now))
            .unwrap_or(false)
    }

    /// About when that will be so.
    pub(super) fn idle_at(&self, held: Content, now: Tick) -> Tick {
        self.ask(held, |algorithm, word| algorithm.idle_at(word, now))
            .unwrap_or(Tick::MAX)
    }

    /// Asks the word of a live slot, and its plan; `None` if that is changed just now.
    fn ask<T>(&self, held: Content, ask: impl FnOnce(&A, u64) -> T) -> Option<T> {
        let plan = self.get(held.plan())?;
        let version = self.version();
        let word = plan.brought(held, version)?;
        plan.with(version, |algorithm| ask(algorithm, word))
    }

    /// The word of a live slot as it goes on in this plan, in this version. `None` if that is over.
    pub(super) fn brought(&self, held: Content, plan: u8, version: u64, now: Tick) -> Option<u64> {
        let to = self.get(plan)?;
        if held.plan() == plan {
            return to.brought(held, version);
        }
        let from = self.get(held.plan())?;
        let word = from.brought(held, version)?;
        let Some(carry_over) = self.carry_over else {
            return Some(word);
        };
        from.with(version, |from| {
            to.with(version, |to| carry_over(from, word, now, to))
        })?
    }
}

impl<A> Plan<A> {
    fn new(algorithm: A) -> Self {
        Self {
            first: algorithm,
            changes: OnceLock::new(),
        }
    }

    /// What it was at first.
    #[inline(always)]
    pub(super) const fn first(&self) -> &A {
        &self.first
    }

    /// Does something with the algorithm of a version. `None` if that is over.
    #[inline]
    pub(super) fn with<T>(&self, version: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        if version == 0 {
            return Some(act(&self.first));
        }
        let change = self.changes.get()?.read(version)?;
        Some(act(&change.algorithm))
    }

    pub(super) const fn changes(&self) -> &OnceLock<Changes<A>> {
        &self.changes
    }

    /// The word of a slot of this plan as it goes on in this version. `None` if that is over, or the slot's.
    pub(super) fn brought(&self, held: Content, version: u64) -> Option<u64> {
        let behind = version.wrapping_sub(held.version()) % VERSIONS;
        if behind == 0 {
            return Some(held.word);
        }
        let changes = self.changes.get()?;
        let mut word = held.word;
        // No slot is of a version from before the first one, but one may be of a later one than this.
        let mut at = version.checked_sub(behind)?;
        while at < version {
            let next = changes.read(at + 1)?;
            let carry = |old: &A| changes.carry(&next, old, word);
            word = self.with(at, carry)?;
            at += 1;
        }
        Some(word)
    }
}

impl<A: fmt::Debug> fmt::Debug for Plans<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

impl<A: fmt::Debug> fmt::Debug for Plan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}
