//! What the plans have become: their parameters in the last versions, with when each was brought,
//! and how.
//!
//! A slot's label says in five bits of which version its word is. A thread that finds a word of an
//! older version carries it over, change by change, each at the tick at which it was made, before
//! deciding on it. So a change visits no key. But before a version's bits come again no slot may be
//! of the old one: so each change goes through a part of the table, in turn, and brings what is
//! there up to date; no slot is more than [`PARTS`] versions behind. There is one version for all
//! plans, and each has what it was in all of the last ones.

use core::fmt;
use std::boxed::Box;
use std::sync::PoisonError;
use std::vec::Vec;

use super::slot::VERSIONS;
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, MAX_SETTINGS, Settings};
use crate::clock::Tick;
use crate::seq_lock::SeqLock;
use crate::sync::SettersMutex;

/// In how many parts a table is gone through. The version before a part's last visit, those since,
/// and the one that is being written must have different bits.
pub(super) const PARTS: u64 = VERSIONS - 2;

/// A slot of parameters, with the tick and what was kept.
type Set = SeqLock<{ MAX_SETTINGS + 2 }>;

/// What a plan is in a version.
#[derive(Debug, Clone)]
pub(super) struct PlanChange<A> {
    pub(super) algorithm: A,
    /// When the version was brought.
    pub(super) at: Tick,
    /// What was kept then; `None` if it is another plan that was changed.
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
            None => 3,
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

/// What only an algorithm of which quotas can be changed can do, for code that doesn't know that it
/// is one.
struct QuotaMethods<A> {
    read: fn(&Set, u64) -> Option<PlanChange<A>>,
    carry: fn(Keep, &A, u64, Tick, &A) -> u64,
}

/// The last versions of each plan.
pub(super) struct Changes<A> {
    ring: Box<[Set]>,
    plans: usize,
    methods: QuotaMethods<A>,
    /// What is in force, with all that parameters may leave out. A thread that changes it holds the
    /// lock.
    latest: SettersMutex<Vec<A>>,
}

impl<A> Changes<A> {
    fn set(&self, plan: usize, version: u64) -> Option<&Set> {
        let first = (version % VERSIONS) as usize * self.plans;
        self.ring.get(first..)?.get(plan)
    }

    /// No other thread changes what is in force while `act` runs.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut Vec<A>) -> T) -> T {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut latest)
    }

    /// What a plan is in this version; `None` if the version's bits are another one's by now.
    #[inline]
    pub(super) fn read(&self, plan: u8, version: u64) -> Option<PlanChange<A>> {
        (self.methods.read)(self.set(plan.into(), version)?, version)
    }

    /// The word with which a change goes on where the algorithm before it left off.
    pub(super) fn carry(&self, change: &PlanChange<A>, old: &A, word: u64) -> u64 {
        match change.keep {
            Some(keep) => (self.methods.carry)(keep, old, word, change.at, &change.algorithm),
            None => word,
        }
    }
}

impl<A: ChangeQuota + Settings + Clone> Changes<A> {
    /// None yet.
    pub(super) fn new<'a>(first: impl Iterator<Item = &'a A>) -> Self
    where
        A: 'a,
    {
        let latest: Vec<A> = first.cloned().collect();
        let sets = VERSIONS as usize * latest.len();
        Self {
            ring: (0..sets).map(|_| Set::new()).collect::<Vec<_>>().into(),
            plans: latest.len(),
            methods: QuotaMethods {
                read: |set, version| set.read(version, Cloned),
                carry: Keep::carry,
            },
            latest: SettersMutex::new(latest),
        }
    }

    /// Writes what a plan is in a version that is not in force yet.
    pub(super) fn write(&self, plan: usize, version: u64, change: &PlanChange<A>) {
        if let Some(set) = self.set(plan, version) {
            set.write(version, change);
        }
    }
}

struct Cloned;

impl<A: Clone> crate::algorithm::Visit<A> for Cloned {
    type Output = A;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> A {
        algorithm.clone()
    }
}

impl<A> fmt::Debug for Changes<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}
