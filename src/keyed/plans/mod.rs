//! Which algorithm decides on a key: the one of its plan, in one of the plan's versions, or the
//! key's override.
//!
//! - A *plan* is a numbered quota of the whole table; a key is under one plan at a time.
//! - An *override* is the quota of a single key, whatever its plan.
//!
//! [`Plans`] has both, and the history of their changes. It reads the content of slots, and changes
//! none: `set_quota`, `set_override` and `remove_override` take a function that reaches the slots.

mod changes;
mod overrides;
mod set;
mod slots;

use core::fmt;
use std::boxed::Box;
use std::string::String;
use std::sync::OnceLock;

use self::changes::Changes;
use self::overrides::Overrides;
use super::find::SlotState;
use crate::adjustable::keep::Carry;
use crate::limiter_error::LimiterError;
use crate::sync::{AtomicU64, Ordering};

pub(super) use self::changes::PARTS;
pub(super) use self::overrides::OVERRIDE;

/// Identifies the algorithm that decides on a key: a plan in one of its versions, or an override.
/// An override has the plan [`OVERRIDE`], and its number in place of the version.
///
/// The plan is in the highest byte, so a decision passes both in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlgorithmId(u64);

impl AlgorithmId {
    const VERSION_BITS: u32 = u64::BITS - 8;

    #[inline(always)]
    pub(crate) const fn new(plan: u8, version: u64) -> Self {
        Self((plan as u64) << Self::VERSION_BITS | version)
    }

    #[inline(always)]
    pub(crate) const fn plan(self) -> u8 {
        (self.0 >> Self::VERSION_BITS) as u8
    }

    #[inline(always)]
    pub(crate) const fn version(self) -> u64 {
        self.0 & ((1 << Self::VERSION_BITS) - 1)
    }

    /// Returns the number by which a grant identifies the algorithm that made it: the plan, and the
    /// last 28 bits of the version.
    #[inline(always)]
    pub(crate) const fn source(self) -> u32 {
        (self.plan() as u32) << 28 | self.version() as u32 & ((1 << 28) - 1)
    }
}

/// The plans of a table, at least one, and their changes. All plans share one version number, so a
/// slot's version keeps its meaning when its key changes to another plan.
pub(crate) struct Plans<A> {
    first: A,
    others: Box<[A]>,
    version: AtomicU64,
    changes: OnceLock<Changes<A>>,
    /// Converts the word of a key that moves to another algorithm. `None` in a table of one plan
    /// without overrides, where no key moves.
    carry: Option<Carry<A>>,
    /// The names of the plans, in their order. Empty if they have no names.
    names: Box<[String]>,
    /// The overrides, if the table was created with any. Then no plan has the number [`OVERRIDE`].
    overrides: Option<Box<Overrides<A>>>,
}

impl<A> Plans<A> {
    pub(crate) fn one(algorithm: A) -> Self {
        Self {
            first: algorithm,
            others: Box::default(),
            version: AtomicU64::new(0),
            changes: OnceLock::new(),
            carry: None,
            names: Box::default(),
            overrides: None,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the original algorithm of the first plan.
    pub(crate) const fn first(&self) -> &A {
        &self.first
    }

    /// Returns the original algorithm of a plan.
    #[inline(always)]
    pub(crate) fn get(&self, plan: u8) -> Option<&A> {
        match plan {
            0 => Some(&self.first),
            other => self.others.get(usize::from(other) - 1),
        }
    }

    /// Returns this plan, or the first one if it does not exist.
    pub(crate) fn or_first(&self, plan: u8) -> u8 {
        self.get(plan).map_or(0, |_| plan)
    }

    /// Returns the first plan if it decides on all keys: the table has no other plan and no
    /// overrides, and this version is the original one.
    #[inline(always)]
    pub(crate) fn only(&self, version: u64) -> Option<&A> {
        let is_only = self.others.is_empty() && self.overrides.is_none();
        (version == 0 && is_only).then_some(&self.first)
    }

    /// Returns the names of the plans, or an empty slice if they have none.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the plan with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Returns the current version: how many times quotas were changed.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `set_quota`: the version's parameters are
        // visible.
        // Model: keyed_quota::a_change_reaches_every_key
        self.version.load(Ordering::Acquire)
    }

    /// Returns the overrides if the key of this live slot has one.
    #[inline(always)]
    fn overrides_of(&self, held: SlotState) -> Option<&Overrides<A>> {
        let overrides = self.overrides.as_deref();
        overrides.filter(|_| held.plan() == OVERRIDE)
    }

    /// Returns whether the key of this live slot has an override.
    #[inline(always)]
    pub(crate) fn is_override(&self, held: SlotState) -> bool {
        self.overrides.is_some() && held.plan() == OVERRIDE
    }

    /// Returns the override of a key with this hash, if it has one.
    pub(crate) fn override_in_force(&self, hash: u64) -> Option<AlgorithmId> {
        let version = self.overrides.as_deref()?.number_of(hash)?;
        Some(AlgorithmId::new(OVERRIDE, version))
    }

    /// Returns how many keys have overrides.
    pub(crate) fn overrides_in_use(&self) -> usize {
        self.overrides.as_ref().map_or(0, |all| all.in_use())
    }

    /// Returns the most overrides that can be set.
    pub(crate) fn max_overrides(&self) -> usize {
        self.overrides.as_ref().map_or(0, |all| all.max())
    }

    /// Removes all overrides.
    pub(crate) fn clear_overrides(&mut self) {
        if let Some(overrides) = &mut self.overrides {
            overrides.clear();
        }
    }

    /// Returns the algorithm that a key with this hash gets when it enters the table under this
    /// plan.
    #[inline(always)]
    pub(crate) fn in_force(&self, plan: u8, hash: u64) -> AlgorithmId {
        match &self.overrides {
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

    /// Runs `act` on the algorithm that `id` identifies, for a key with this hash. Returns `None`
    /// if the plan does not exist, or the version is outdated.
    #[inline(always)]
    pub(crate) fn with<T>(
        &self,
        id: AlgorithmId,
        hash: u64,
        act: impl FnOnce(&A) -> T,
    ) -> Option<T> {
        // No override has the number 0.
        match id.version() {
            0 => Some(act(self.get(id.plan())?)),
            _ => self.with_later(id, hash, act),
        }
    }

    #[cold]
    #[inline(never)]
    fn with_later<T>(&self, id: AlgorithmId, hash: u64, act: impl FnOnce(&A) -> T) -> Option<T> {
        match &self.overrides {
            Some(overrides) if id.plan() == OVERRIDE => overrides.with(hash, id.version(), act),
            _ => self.with_plan(id.plan(), id.version(), act),
        }
    }

    /// Runs `act` on the override of a live slot's key, which has this hash. Returns `None` if the
    /// key has none, or another one now.
    #[inline(always)]
    pub(crate) fn with_override<T>(
        &self,
        held: SlotState,
        hash: u64,
        act: impl FnOnce(AlgorithmId, &A) -> T,
    ) -> Option<T> {
        let overrides = self.overrides_of(held)?;
        let number = overrides.number_in(held, hash)?;
        let id = AlgorithmId::new(OVERRIDE, number);
        overrides.with(hash, number, |algorithm| act(id, algorithm))
    }

    /// Runs `act` on the algorithm of a plan in this version. Returns `None` if the plan does not
    /// exist, or the version is outdated.
    #[inline]
    pub(crate) fn with_plan<T>(
        &self,
        plan: u8,
        version: u64,
        act: impl FnOnce(&A) -> T,
    ) -> Option<T> {
        if version == 0 {
            return Some(act(self.get(plan)?));
        }
        let change = self.changes.get()?.read(plan, version)?;
        Some(act(&change.algorithm))
    }

    fn no_such(&self, plan: usize) -> LimiterError {
        let plans = self.count();
        LimiterError::NoSuchPlan { plan, plans }
    }
}

/// Shows the current plans. Waits for a thread that changes one.
impl<A: fmt::Debug> fmt::Debug for Plans<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changes.get() {
            Some(changes) => changes.change(|latest| show(&self.names, latest.iter(), f)),
            None => show(
                &self.names,
                core::iter::once(&self.first).chain(&self.others),
                f,
            ),
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
