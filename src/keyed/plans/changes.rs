//! The history of quota changes: each plan's parameters in the latest versions, with the tick and
//! the [`Keep`] of each change.
//!
//! Five bits of a slot's label say which version its word has. A thread that finds a word of an
//! older version migrates it before it decides: change by change, each at the tick at which it was
//! made. So a change need not visit all keys. But five bits repeat after 32 changes, and a slot
//! that is so far behind would be misread. So each change also sweeps one part of the table, in
//! turn, and migrates the slots there: no slot is ever more than [`PARTS`] versions behind. All
//! plans share one version number, and each change writes an entry for every plan.

use std::boxed::Box;
use std::sync::PoisonError;
use std::vec::Vec;

use crate::adjustable::Keep;
use crate::adjustable::keep::Carry;
use crate::algorithm::{ChangeQuota, MAX_SETTINGS, Settings, Visit};
use crate::clock::Tick;
use crate::keyed::find::VERSIONS;
use crate::seq_lock::SeqLock;
use crate::sync::SettersMutex;

/// The number of parts of a table. Each change sweeps one of them, so a slot is at most this many
/// versions behind. Those older versions, the current one, and the one that is being written must
/// differ in their bits.
pub(crate) const PARTS: u64 = VERSIONS - 2;

/// The parameters of a plan in one version, with the change's tick and `keep`.
type Set = SeqLock<{ MAX_SETTINGS + 2 }>;

/// A plan in one version.
#[derive(Debug, Clone)]
pub(super) struct PlanChange<A> {
    pub(super) algorithm: A,
    /// When the version became current.
    pub(super) at: Tick,
    /// What happened to the permits, or `None` if the change was to another plan.
    pub(super) keep: Option<Keep>,
}

impl<A: Settings> Settings for PlanChange<A> {
    const WORDS: usize = A::WORDS + 2;

    fn save(&self, write: &mut impl FnMut(u64)) {
        write(self.at.as_nanos());
        write(match self.keep {
            Some(Keep::AsIs) => 0,
            Some(Keep::Scaled) => 1,
            Some(Keep::Fresh) => 2,
            Some(Keep::Used) => 3,
            None => 4,
        });
        self.algorithm.save(write);
    }

    #[inline(always)]
    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        let at = Tick::from_nanos(read());
        let keep = match read() {
            0 => Some(Keep::AsIs),
            1 => Some(Keep::Scaled),
            2 => Some(Keep::Fresh),
            3 => Some(Keep::Used),
            _ => None,
        };
        let algorithm = A::restore(read)?;
        Some(Self {
            algorithm,
            at,
            keep,
        })
    }
}

/// The last versions of each plan.
pub(super) struct Changes<A> {
    ring: Box<[Set]>,
    plans: usize,
    // Functions that need `A: ChangeQuota + Settings`, as pointers for code without that bound.
    read: fn(&Set, u64) -> Option<PlanChange<A>>,
    carry: fn(Keep) -> Carry<A>,
    /// The current algorithms, as they were given. ([`Settings`] may leave out what decisions don't
    /// read.) A thread that changes one holds the lock.
    latest: SettersMutex<Vec<A>>,
}

impl<A> Changes<A> {
    fn set(&self, plan: usize, version: u64) -> Option<&Set> {
        let first = (version % VERSIONS) as usize * self.plans;
        self.ring.get(first..)?.get(plan)
    }

    /// Runs `act` while no other thread can change an algorithm.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut Vec<A>) -> T) -> T {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut latest)
    }

    /// Returns a plan in this version, or `None` if a later version has overwritten it.
    #[inline]
    pub(super) fn read(&self, plan: u8, version: u64) -> Option<PlanChange<A>> {
        (self.read)(self.set(plan.into(), version)?, version)
    }

    /// Converts a word of the algorithm before a change to the algorithm after it.
    pub(super) fn carry(&self, change: &PlanChange<A>, old: &A, word: u64) -> u64 {
        match change.keep {
            Some(keep) => (self.carry)(keep)(old, word, change.at, &change.algorithm),
            None => word,
        }
    }
}

impl<A: ChangeQuota + Settings + Clone> Changes<A> {
    /// Creates an empty history of these algorithms.
    pub(super) fn new<'a>(first: impl Iterator<Item = &'a A>) -> Self
    where
        A: 'a,
    {
        let latest: Vec<A> = first.cloned().collect();
        let sets = VERSIONS as usize * latest.len();
        Self {
            ring: (0..sets).map(|_| Set::new()).collect::<Vec<_>>().into(),
            plans: latest.len(),
            read: |set, version| set.read(version, Cloned),
            carry: Keep::carry,
            latest: SettersMutex::new(latest),
        }
    }

    /// Writes a plan in a version that is not current yet.
    pub(super) fn write(&self, plan: usize, version: u64, change: &PlanChange<A>) {
        if let Some(set) = self.set(plan, version) {
            set.write(version, change);
        }
    }
}

/// Copies the parameters out of a [`SeqLock`].
pub(super) struct Cloned;

impl<A: Clone> Visit<A> for Cloned {
    type Output = A;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> A {
        algorithm.clone()
    }
}
