//! What the algorithms say about slots, whose words may be of an earlier version.

use super::overrides::OVERRIDE;
use super::{AlgorithmId, Plans};
use crate::adjustable::Keep;
use crate::algorithm::{Algorithm, idle_from};
use crate::clock::Tick;
use crate::keyed::ban::ban_in;
use crate::keyed::find::{SlotState, VERSIONS};

/// Converts the word of a live slot by `convert`. A ban still ends at the same tick.
fn carry<A: Algorithm>(
    held: SlotState,
    from: &A,
    now: Tick,
    to: &A,
    convert: impl FnOnce(u64) -> u64,
) -> u64 {
    let ban = held.is_banned().then(|| ban_in(from, held.word(), now, to));
    ban.flatten().unwrap_or_else(|| convert(held.word()))
}

impl<A: Algorithm> Plans<A> {
    /// Migrates a live slot to this version of its plan. Returns `None` if this version, or the
    /// slot's, is outdated.
    #[inline]
    pub(crate) fn migrated(&self, held: SlotState, version: u64) -> Option<SlotState> {
        match version.wrapping_sub(held.version()) % VERSIONS {
            0 => Some(held),
            behind => self.migrated_from(held, behind, version),
        }
    }

    /// Returns a live slot, migrated to the version of its plan, and the algorithm of its word. Its
    /// key has this hash, and `version` was read after the slot. Returns `None` if the slot or the
    /// version is outdated.
    #[inline]
    pub(crate) fn current(
        &self,
        held: SlotState,
        hash: u64,
        version: u64,
    ) -> Option<(SlotState, AlgorithmId)> {
        Some(match self.overrides_of(held) {
            Some(overrides) => {
                let number = overrides.number_in(held, hash)?;
                (held, AlgorithmId::new(OVERRIDE, number))
            }
            None => (
                self.migrated(held, version)?,
                AlgorithmId::new(held.plan(), version),
            ),
        })
    }

    /// Returns the word of a slot whose algorithm is `from`, converted to algorithm `to`. Returns
    /// `None` if one of them is outdated.
    pub(crate) fn converted(
        &self,
        held: SlotState,
        hash: u64,
        (from, to): (AlgorithmId, AlgorithmId),
        now: Tick,
    ) -> Option<u64> {
        let Some(convert) = self.carry.filter(|_| from != to) else {
            return Some(held.word());
        };
        self.with(from, hash, |from| {
            self.with(to, hash, |to| {
                carry(held, from, now, to, |word| convert(from, word, now, to))
            })
        })?
    }

    /// Returns the live slot of a key with this hash, moved to another algorithm, or `None` if the
    /// slot's algorithm is outdated.
    pub(crate) fn moved(
        &self,
        held: SlotState,
        hash: u64,
        to: AlgorithmId,
        now: Tick,
    ) -> Option<SlotState> {
        let (held, from) = self.current(held, hash, self.version())?;
        let word = self.converted(held, hash, (from, to), now)?;
        let held = held.with_word(word).with_plan(to.plan());
        Some(held.with_version(to.version()))
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
                if keep == Keep::Fresh && held.is_banned() {
                    held = held.banned_if(false);
                }
                let word = |old: &A| {
                    let convert = |word| changes.carry(&next, old, word);
                    carry(held, old, next.at, &next.algorithm, convert)
                };
                held = held.with_word(self.with_plan(plan, at, word)?);
            }
            at += 1;
        }
        Some(held.with_version(version))
    }

    /// Returns whether the key of a slot is idle. `version` must not be older than the slot's.
    pub(crate) fn is_idle(&self, held: SlotState, version: u64, now: Tick) -> bool {
        self.ask(held, version, |algorithm, word| {
            algorithm.is_idle(word, now)
        })
        .unwrap_or(false)
    }

    /// Returns approximately when the key of a slot becomes idle.
    pub(crate) fn idle_at(&self, held: SlotState, version: u64, now: Tick) -> Tick {
        let idle_at = |algorithm: &A, word| algorithm.idle_at(word, now);
        self.ask(held, version, idle_at).unwrap_or(Tick::MAX)
    }

    /// Returns the first tick at which the key of a slot is idle. The horizon is raised to it, so a
    /// later tick would count new keys later than necessary.
    pub(crate) fn idle_since(&self, held: SlotState, version: u64) -> Option<Tick> {
        self.ask(held, version, |algorithm, word| {
            // `idle_at` is approximate, and may be too early.
            let about = algorithm.idle_at(word, Tick::ZERO);
            idle_from(algorithm, word, about)
        })
    }

    /// Passes a live slot's current algorithm and word to `ask`. Returns `None` if the algorithm
    /// changes meanwhile.
    #[inline(always)]
    pub(crate) fn ask<T>(
        &self,
        held: SlotState,
        version: u64,
        ask: impl FnOnce(&A, u64) -> T,
    ) -> Option<T> {
        let is_first = version == 0 && held.version() == 0;
        match is_first.then(|| self.get(held.plan())).flatten() {
            Some(plan) => Some(ask(plan, held.word())),
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
        let word = self.migrated(held, version)?.word();
        self.with_plan(held.plan(), version, |algorithm| ask(algorithm, word))
    }
}
