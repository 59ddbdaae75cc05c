//! The algorithms of a table: a few plans and their changes.

use core::fmt;
use std::boxed::Box;
use std::string::String;
use std::sync::OnceLock;
use std::vec::Vec;

use super::ban::ban_in;
use super::changes::Changes;
use super::overrides::{OVERRIDE, Overrides};
use super::slot::{PLANS, SlotKind, SlotState, VERSIONS};
use crate::adjustable::Keep;
use crate::algorithm::{Algorithm, ChangeQuota, Settings, idle_from};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::sync::{AtomicU64, Ordering};

/// The maximum length of a plan's name, in bytes.
pub(super) const MAX_PLAN_NAME: usize = 64;

/// Converts the word of one plan into that of another.
pub(super) type CarryOver<A> = fn(&A, u64, Tick, &A) -> u64;

/// Identifies the algorithm that decides on a key: a plan in one of its versions, or an override.
/// An override has the plan [`OVERRIDE`], and its number in place of the version.
///
/// The plan is in the highest byte, so a decision passes both in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AlgorithmId(u64);

impl AlgorithmId {
    const VERSION_BITS: u32 = u64::BITS - 8;

    #[inline(always)]
    pub(super) const fn new(plan: u8, version: u64) -> Self {
        Self((plan as u64) << Self::VERSION_BITS | version)
    }

    #[inline(always)]
    pub(super) const fn plan(self) -> u8 {
        (self.0 >> Self::VERSION_BITS) as u8
    }

    #[inline(always)]
    pub(super) const fn version(self) -> u64 {
        self.0 & ((1 << Self::VERSION_BITS) - 1)
    }
}

/// The plans of a table, at least one, and their changes. All plans share one version number, so a
/// slot's version keeps its meaning when its key changes to another plan.
pub(super) struct Plans<A> {
    first: A,
    others: Box<[A]>,
    version: AtomicU64,
    changes: OnceLock<Changes<A>>,
    /// `None` in a table of one plan, where no key changes its plan.
    carry_over: Option<CarryOver<A>>,
    /// The names of the plans, in their order. Empty if they have no names.
    names: Box<[String]>,
    /// The overrides, if the table was created with any. Then no plan has the number [`OVERRIDE`].
    overrides: Option<Box<Overrides<A>>>,
}

impl<A> Plans<A> {
    pub(super) fn one(algorithm: A) -> Self {
        Self {
            first: algorithm,
            others: Box::default(),
            version: AtomicU64::new(0),
            changes: OnceLock::new(),
            carry_over: None,
            names: Box::default(),
            overrides: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the original algorithm of the first plan.
    pub(super) const fn first(&self) -> &A {
        &self.first
    }

    /// Returns the original algorithm of a plan.
    #[inline(always)]
    pub(super) fn get(&self, plan: u8) -> Option<&A> {
        match plan {
            0 => Some(&self.first),
            other => self.others.get(usize::from(other) - 1),
        }
    }

    /// Returns the first plan if it decides on all keys: the table has no other plan and no
    /// overrides, and this version is the original one.
    #[inline(always)]
    pub(super) fn only(&self, version: u64) -> Option<&A> {
        let is_only = self.others.is_empty() && self.overrides.is_none();
        (version == 0 && is_only).then_some(&self.first)
    }

    /// Iterates over the original algorithms of all plans.
    pub(super) fn all(&self) -> impl Iterator<Item = &A> {
        core::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the names of the plans, or an empty slice if they have none.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the plan with this name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    /// Returns the current version.
    #[inline(always)]
    pub(super) fn version(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `bring`, so the version's parameters are
        // visible.
        // Model: keyed_quota::a_change_reaches_every_key
        self.version.load(Ordering::Acquire)
    }

    /// Makes this version current.
    pub(super) fn bring(&self, version: u64) {
        // ORDERING: Release. It publishes the parameters of this version, and pairs with the load
        // of `version`.
        // Model: keyed_quota::a_change_reaches_every_key
        self.version.store(version, Ordering::Release);
    }

    pub(super) const fn changes(&self) -> &OnceLock<Changes<A>> {
        &self.changes
    }

    /// Returns the overrides, if the table can have any.
    #[inline(always)]
    pub(super) fn overrides(&self) -> Option<&Overrides<A>> {
        self.overrides.as_deref()
    }

    /// Returns the overrides if the key of this live slot has one.
    #[inline(always)]
    pub(super) fn overrides_of(&self, held: SlotState) -> Option<&Overrides<A>> {
        self.overrides().filter(|_| held.plan() == OVERRIDE)
    }

    /// Returns the override of a key with this hash, if it has one.
    pub(super) fn override_in_force(&self, hash: u64) -> Option<AlgorithmId> {
        let version = self.overrides()?.number_of(hash)?;
        Some(AlgorithmId::new(OVERRIDE, version))
    }

    /// Returns how many keys have an algorithm of their own.
    pub(super) fn overrides_in_use(&self) -> usize {
        let in_use = |overrides: &Overrides<A>| overrides.change(|owners| owners.len());
        self.overrides().map_or(0, in_use)
    }

    /// Removes all overrides.
    pub(super) fn clear_overrides(&mut self) {
        if let Some(overrides) = &mut self.overrides {
            overrides.clear();
        }
    }

    /// Returns the algorithm that a key with this hash gets when it enters the table under this
    /// plan.
    #[inline(always)]
    pub(super) fn in_force(&self, plan: u8, hash: u64) -> AlgorithmId {
        match self.overrides() {
            Some(_) => self.override_or_plan(plan, hash),
            None => AlgorithmId::new(plan, self.version()),
        }
    }

    #[cold]
    #[inline(never)]
    fn override_or_plan(&self, plan: u8, hash: u64) -> AlgorithmId {
        let of_plan = || AlgorithmId::new(plan, self.version());
        self.override_in_force(hash).unwrap_or_else(of_plan)
    }

    /// Runs `act` on the algorithm that `of` identifies, for a key with this hash. Returns `None`
    /// if the plan does not exist, or the version is outdated.
    #[inline(always)]
    pub(super) fn with_in_force<T>(
        &self,
        of: AlgorithmId,
        hash: u64,
        act: impl FnOnce(&A) -> T,
    ) -> Option<T> {
        // No override has the number 0.
        match of.version() {
            0 => Some(act(self.get(of.plan())?)),
            _ => self.with_later(of, hash, act),
        }
    }

    #[cold]
    #[inline(never)]
    fn with_later<T>(&self, of: AlgorithmId, hash: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        match self.overrides() {
            Some(overrides) if of.plan() == OVERRIDE => overrides.with(hash, of.version(), act),
            _ => self.with(of.plan(), of.version(), act),
        }
    }

    /// Runs `act` on the algorithm of a plan in this version. Returns `None` if the plan does not
    /// exist, or the version is outdated.
    #[inline]
    pub(super) fn with<T>(&self, plan: u8, version: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        if version == 0 {
            return Some(act(self.get(plan)?));
        }
        let change = self.changes.get()?.read(plan, version)?;
        Some(act(&change.algorithm))
    }
}

impl<A: ChangeQuota> Plans<A> {
    pub(super) fn several(algorithms: impl IntoIterator<Item = A>) -> Result<Self, LimiterError> {
        let mut plans = algorithms.into_iter();
        let Some(first) = plans.next() else {
            return Err(LimiterError::ZeroPlans);
        };
        let max = PLANS as usize;
        // Taking one too many is enough to detect that there are too many.
        let others: Vec<_> = plans.take(max).collect();
        if others.len() >= max {
            let plans = others.len() + 1;
            return Err(LimiterError::TooManyPlans { plans, max });
        }
        Ok(Self {
            others: others.into(),
            carry_over: Some(A::carry_over),
            ..Self::one(first)
        })
    }

    pub(super) fn named(
        plans: impl IntoIterator<Item = (impl Into<String>, A)>,
    ) -> Result<Self, LimiterError> {
        let mut names = Vec::new();
        let plans = plans.into_iter().map(|(name, algorithm)| {
            names.push(name.into());
            algorithm
        });
        let plans = Self::several(plans)?;
        for (plan, name) in names.iter().enumerate() {
            let (length, max) = (name.len(), MAX_PLAN_NAME);
            if length == 0 || length > max {
                return Err(LimiterError::PlanNameLength { plan, length, max });
            }
            match names.iter().position(|other| other == name) {
                Some(other) if other < plan => {
                    return Err(LimiterError::SamePlanName { plan, other });
                }
                _ => {}
            }
        }
        Ok(Self {
            names: names.into(),
            ..plans
        })
    }
}

impl<A: ChangeQuota + Settings + Clone> Plans<A> {
    /// Allocates this number of overrides.
    pub(super) fn with_overrides(self, overrides: usize) -> Result<Self, LimiterError> {
        let (plans, max) = (self.count(), OVERRIDE.into());
        if plans > max {
            return Err(LimiterError::TooManyPlans { plans, max });
        }
        Ok(Self {
            overrides: Some(Box::new(Overrides::new(overrides)?)),
            ..self
        })
    }

    /// Returns the live slot of a key with this hash, converted to another algorithm, or `None` if
    /// the slot's algorithm is outdated. The caller holds the lock of the overrides, so no quota or
    /// override changes meanwhile.
    pub(super) fn moved(
        &self,
        held: SlotState,
        hash: u64,
        to: AlgorithmId,
        now: Tick,
    ) -> Option<SlotState> {
        let (held, from) = match self.overrides_of(held) {
            Some(overrides) => {
                let version = overrides.number_in(held, hash)?;
                (held, AlgorithmId::new(OVERRIDE, version))
            }
            None => {
                let (plan, version) = (held.plan(), self.version());
                (
                    self.migrated(held, version)?,
                    AlgorithmId::new(plan, version),
                )
            }
        };
        let word = |from: &A| {
            let carry = |to: &A| carry(held, from, now, to, A::carry_over);
            self.with_in_force(to, hash, carry)
        };
        let word = self.with_in_force(from, hash, word)??;
        Some(
            held.with_word(word)
                .with_plan(to.plan())
                .with_version(to.version()),
        )
    }
}

/// Returns the word of a live slot, converted to another algorithm. A ban still ends at the same
/// tick.
fn carry<A: Algorithm>(
    held: SlotState,
    from: &A,
    now: Tick,
    to: &A,
    carry_over: CarryOver<A>,
) -> u64 {
    let is_banned = held.state() == SlotKind::Banned;
    let ban = is_banned.then(|| ban_in(from, held.word, now, to));
    ban.flatten()
        .unwrap_or_else(|| carry_over(from, held.word, now, to))
}

impl<A: Algorithm> Plans<A> {
    /// Migrates a live slot to this version of its plan. Returns `None` if this version, or the
    /// slot's, is outdated.
    #[inline]
    pub(super) fn migrated(&self, held: SlotState, version: u64) -> Option<SlotState> {
        match version.wrapping_sub(held.version()) % VERSIONS {
            0 => Some(held),
            behind => self.migrated_from(held, behind, version),
        }
    }

    fn migrated_from(&self, mut held: SlotState, behind: u64, version: u64) -> Option<SlotState> {
        if self.overrides_of(held).is_some() {
            // These bits are the number of an override, not a version.
            return Some(held);
        }
        let (changes, plan) = (self.changes.get()?, held.plan());
        // Versions start at 0, so an underflow means that the slot has a later version than this.
        let mut at = version.checked_sub(behind)?;
        while at < version {
            let next = changes.read(plan, at + 1)?;
            if let Some(keep) = next.keep {
                if keep == Keep::Fresh && held.state() == SlotKind::Banned {
                    held = held.banned_if(false);
                }
                let carry = |old: &A| {
                    let is_banned = held.state() == SlotKind::Banned;
                    let ban = is_banned.then(|| ban_in(old, held.word, next.at, &next.algorithm));
                    ban.flatten()
                        .unwrap_or_else(|| changes.carry(&next, old, held.word))
                };
                held = held.with_word(self.with(plan, at, carry)?);
            }
            at += 1;
        }
        Some(held.with_version(version))
    }

    /// Returns whether the key of a slot is idle. `version` must not be older than the slot's.
    pub(super) fn is_idle(&self, held: SlotState, version: u64, now: Tick) -> bool {
        self.ask(held, version, |algorithm, word| {
            algorithm.is_idle(word, now)
        })
        .unwrap_or(false)
    }

    /// Returns approximately when the key of a slot becomes idle.
    pub(super) fn idle_at(&self, held: SlotState, version: u64, now: Tick) -> Tick {
        let idle_at = |algorithm: &A, word| algorithm.idle_at(word, now);
        self.ask(held, version, idle_at).unwrap_or(Tick::MAX)
    }

    /// Returns the first tick at which the key of a slot is idle. The horizon is raised to it, so a
    /// later tick would count new keys later than necessary.
    pub(super) fn idle_since(&self, held: SlotState, version: u64) -> Option<Tick> {
        self.ask(held, version, |algorithm, word| {
            // `idle_at` is approximate, and may be too early.
            let about = algorithm.idle_at(word, Tick::ZERO);
            idle_from(algorithm, word, about)
        })
    }

    /// Passes a live slot's current algorithm and word to `ask`. Returns `None` if the algorithm
    /// changes meanwhile.
    #[inline(always)]
    pub(super) fn ask<T>(
        &self,
        held: SlotState,
        version: u64,
        ask: impl FnOnce(&A, u64) -> T,
    ) -> Option<T> {
        let is_first = version == 0 && held.version() == 0;
        match is_first.then(|| self.get(held.plan())).flatten() {
            Some(plan) => Some(ask(plan, held.word)),
            None => self.ask_changed(held, version, ask),
        }
    }

    /// Does what [`ask`](Self::ask) does, for changed plans and for overrides.
    #[cold]
    #[inline(never)]
    fn ask_changed<T>(
        &self,
        held: SlotState,
        version: u64,
        ask: impl FnOnce(&A, u64) -> T,
    ) -> Option<T> {
        if let Some(overrides) = self.overrides_of(held) {
            return overrides.ask(held, ask);
        }
        let word = self.migrated(held, version)?.word;
        self.with(held.plan(), version, |algorithm| ask(algorithm, word))
    }

    /// Returns the word of a live slot of this version, converted to this plan. Returns `None` if
    /// the version is outdated.
    pub(super) fn moved_to_plan(
        &self,
        held: SlotState,
        plan: u8,
        version: u64,
        now: Tick,
    ) -> Option<u64> {
        let word = held.word;
        let carry_over = match self.carry_over {
            Some(carry_over) if held.plan() != plan => carry_over,
            _ => return Some(word),
        };
        self.with(held.plan(), version, |from| {
            self.with(plan, version, |to| carry(held, from, now, to, carry_over))
        })?
    }
}

/// Shows the current plans. Waits for a thread that changes one.
impl<A: fmt::Debug> fmt::Debug for Plans<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes.get() {
            Some(changes) => changes.change(|latest| show(&self.names, latest.iter(), f)),
            None => show(&self.names, self.all(), f),
        }
    }
}

/// Shows the plans, with their names if they have any.
fn show<'p, A: fmt::Debug + 'p>(
    names: &[String],
    plans: impl Iterator<Item = &'p A>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if names.is_empty() {
        f.debug_list().entries(plans).finish()
    } else {
        f.debug_map().entries(names.iter().zip(plans)).finish()
    }
}
