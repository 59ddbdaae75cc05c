//! Restores a snapshot: converts its keys to the clock and the plans of a table.

use std::io;
use std::string::String;
use std::vec::Vec;

use super::fill::Fill;
use super::read::{Block, Head, Reading};
use super::{PlanMatch, Record, Restored, RestoredOverrides, RestoredPlan, probe};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::clock::Tick;
use crate::keyed::KeyHasher;
use crate::keyed::ban::{banned_until, last_without_permits};
use crate::keyed::core::Core;
use crate::keyed::plans::{InForce, Plans};
use crate::keyed::slot::SlotState;
use crate::keyed::stats::Event;
use crate::keyed::table::Table;
use crate::snapshot::elapsed::Elapsed;
use crate::snapshot::error::RestoreError;
use crate::snapshot::parameters::Parameters;
use crate::store::cell::UNSTARTED;
use crate::sync::Ordering;

/// A tick of the snapshot's clock, and the tick of the table's clock that corresponds to it.
#[derive(Clone, Copy)]
struct Moved {
    from: Tick,
    to: Tick,
}

/// A plan of a snapshot, and the one in which its keys continue.
struct GoesOn<'p, A> {
    /// Its old algorithm, if it differs from the new one.
    was: Option<A>,
    plans: &'p Plans<A>,
    to: InForce,
    found: PlanMatch,
}

impl<'p, A: ChangeQuota + Rebase + Settings> GoesOn<'p, A> {
    fn of(
        parameters: &Parameters,
        (plan, names): (usize, &[String]),
        plans: &'p Plans<A>,
    ) -> Result<Self, RestoreError> {
        let same = match names.get(plan) {
            Some(name) if !plans.names().is_empty() => plans.position(name),
            _ => Some(plan).filter(|index| *index < plans.count()),
        };
        // Keys of a plan that the table does not have continue in the first plan.
        let index = same.and_then(|index| u8::try_from(index).ok()).unwrap_or(0);
        let version = plans.version();
        let was = match plans.with(index, version, Parameters::of) == Some(*parameters) {
            true => None,
            false => match parameters.algorithm() {
                Some(was) => Some(was),
                None => return Err(RestoreError::OtherParameters { plan: Some(plan) }),
            },
        };
        let found = match same {
            None => PlanMatch::Missing,
            Some(_) if was.is_some() => PlanMatch::Changed,
            Some(_) => PlanMatch::Same,
        };
        let is_one_sided = plans.names().is_empty() != names.is_empty();
        if is_one_sided && plans.count() > 1 && found != PlanMatch::Same {
            let in_snapshot = names.is_empty();
            return Err(RestoreError::PlanNamesMissing { plan, in_snapshot });
        }
        Ok(Self {
            was,
            plans,
            to: InForce::new(index, version),
            found,
        })
    }

    /// Converts the word of a key of this plan to the key's own algorithm, or to the plan if it has
    /// none. Returns `None` if the key is idle there.
    fn word(&self, own: Option<InForce>, record: &Record, moved: Moved) -> Option<u64> {
        let Some(own) = own else {
            return word(self.plans, self.was.as_ref(), self.to, record, moved);
        };
        let word = |was: &A| word(self.plans, Some(was), own, record, moved);
        match &self.was {
            Some(was) => word(was),
            None => self.plans.with(self.to.plan(), self.to.version(), word)?,
        }
    }
}

/// Converts the word of a key to algorithm `to`. `was` is its old algorithm, or `None` if that is
/// the same. Returns `None` if the key is idle.
fn word<A: ChangeQuota + Rebase>(
    plans: &Plans<A>,
    was: Option<&A>,
    to: InForce,
    record: &Record,
    moved: Moved,
) -> Option<u64> {
    let (Moved { from, to: now }, word) = (moved, record.word);
    let word = plans.with_in_force(to, record.hash, |to| {
        let (word, end) = match was {
            None => {
                let next = to.rebase(word, from, now);
                // If the new clock's periods begin at other times, the key may have a permit before
                // its ban ends.
                let end = end_of_ban(to, record, moved);
                (next, end.filter(|end| to.available(next, *end) > 0))
            }
            Some(was) => {
                let next = was.carry_over(was.rebase(word, from, now), now, to);
                // The ban's end comes from the old algorithm: the new one may pay debt back at
                // another rate.
                (next, end_of_ban(was, record, moved))
            }
        };
        let word = match end {
            None => word,
            Some(end) => banned_until(to, end),
        };
        let word = word.min(UNSTARTED - 1);
        (!to.is_idle(word, now)).then_some(word)
    });
    // No other thread changes the algorithm meanwhile, so this is not outdated.
    word.flatten()
}

/// Returns the last tick of a ban without a permit, on the new clock.
fn end_of_ban<A: ChangeQuota>(was: &A, record: &Record, moved: Moved) -> Option<Tick> {
    let Moved { from, to } = moved;
    let last = (record.is_banned).then(|| last_without_permits(was, record.word, from));
    Some(to.saturating_add(last.flatten()?.saturating_since(from)))
}

/// Returns the content of this key's slot, with this word of this algorithm.
fn content(tag: u64, second: bool, record: &Record, to: InForce, word: u64) -> SlotState {
    let content = SlotState::live(tag, second, to.plan(), to.version(), word);
    let content = content.protected_if(record.is_protected);
    match record.is_banned {
        true => content.banned_if(true),
        false => content,
    }
}

/// A snapshot that has been read and converted.
struct Loaded<S> {
    table: Table,
    restored: Restored,
    /// How many of the keys without room were protected.
    no_room_protected: u64,
    hasher: Option<S>,
    /// The earliest tick at which a key may enter the table.
    horizon: Tick,
}

impl<A: ChangeQuota + Rebase + Settings> Core<A> {
    /// Replaces the content of the table by a snapshot, which is `elapsed` old at this tick.
    /// `is_whole` says whether more bytes after it are an error. On error nothing changes.
    pub(super) fn restore<S: KeyHasher>(
        &mut self,
        hasher: &mut S,
        reader: &mut dyn io::Read,
        (now, elapsed): (Tick, Elapsed),
        is_whole: bool,
    ) -> Result<Restored, RestoreError> {
        let mut reading = Reading::new(reader);
        let read = self.load(hasher, &mut reading, now, elapsed)?;
        if is_whole {
            reading.input.is_over()?;
        }
        let Restored { keys, no_room, .. } = read.restored;
        let removed = self.events.tracked();
        self.events.count_many(Event::Removed, removed);
        self.events
            .count_many(Event::Inserted, keys.saturating_add(no_room));
        let protected = read.no_room_protected.min(no_room);
        self.events
            .count_many(Event::Evicted, no_room.saturating_sub(protected));
        self.events.count_many(Event::EvictedProtected, protected);
        self.table = read.table;
        // ORDERING: Relaxed. No other thread uses the table. Sharing it afterwards synchronizes
        // with this.
        let _ = self
            .horizon
            .fetch_max(read.horizon.as_nanos(), Ordering::Relaxed);
        if let Some(read) = read.hasher {
            *hasher = read;
        }
        Ok(read.restored)
    }

    /// Reads and checks the whole snapshot, which is `elapsed` old at this tick.
    fn load<S: KeyHasher>(
        &self,
        hasher: &S,
        reading: &mut Reading<'_>,
        now: Tick,
        elapsed: Elapsed,
    ) -> Result<Loaded<S>, RestoreError> {
        let head: Head<S> = reading.head::<A, S>(hasher)?;
        let in_use = self.plans.overrides_in_use();
        let has_other = |next: &S| in_use > 0 && probe(next) != probe(hasher);
        if head.hasher.as_ref().is_some_and(has_other) {
            let overrides = in_use;
            return Err(RestoreError::OverridesOfAnotherSeed { overrides });
        }
        let elapsed = elapsed.since(head.time_of_day);
        let (from, to) = (head.at.saturating_add(elapsed), now);
        let table = Table::like(&self.table).ok_or(RestoreError::NoMemory)?;
        let mut fill = Fill::new(table, &self.plans, now);
        let (mut idle, mut plans) = (0_u64, Vec::new());
        let mut reports: Vec<RestoredPlan> = Vec::new();
        let mut overrides = RestoredOverrides::default();
        let moved = Moved { from, to };
        let horizon = loop {
            match reading.block()? {
                Block::Plans(read) => {
                    let names = reading.names();
                    let each = read.iter().enumerate();
                    let each = each.map(|(plan, all)| GoesOn::of(all, (plan, names), &self.plans));
                    plans = each.collect::<Result<_, _>>()?;
                    reports = report(&plans, names, &reports);
                }
                Block::Keys => {
                    for key in reading.keys() {
                        let key = key?;
                        if let Some(report) = reports.get_mut(usize::from(key.plan)) {
                            report.keys = report.keys.saturating_add(1);
                        }
                        let own = self.plans.own_in_force(key.hash);
                        overrides.new = overrides.new.saturating_add(own.is_some().into());
                        // The plan exists: `keys` has checked it.
                        let plan: Option<&GoesOn<'_, A>> = plans.get(usize::from(key.plan));
                        let word = plan.and_then(|plan| plan.word(own, &key, moved));
                        let to = own.or(plan.map(|plan| plan.to));
                        match put(&mut fill, &key, to.zip(word)) {
                            true => {}
                            false => idle = idle.saturating_add(1),
                        }
                    }
                }
                Block::OwnKey(key, parameters) => {
                    let (to, word) = self.load_own(&key, &parameters, &mut overrides, moved)?;
                    match put(&mut fill, &key, word.map(|word| (to, word))) {
                        true => {}
                        false => idle = idle.saturating_add(1),
                    }
                }
                Block::End { horizon } => break horizon,
            }
        };
        let restored = Restored {
            keys: fill.keys,
            idle,
            no_room: fill.no_room,
            elapsed,
            plans: reports,
            overrides,
        };
        Ok(Loaded {
            table: fill.table,
            restored,
            no_room_protected: fill.no_room_protected,
            hasher: head.hasher,
            // A key that is not in the snapshot was idle at `from`, or became idle at the horizon
            // or earlier. A new key starts at the later of these ticks, converted to the table's
            // clock.
            horizon: now.saturating_add(horizon.saturating_since(from)),
        })
    }
}

impl<A: ChangeQuota + Rebase + Settings> Core<A> {
    /// Converts a key that had an algorithm of its own. Returns the algorithm in which it
    /// continues, and its word there, or no word if it is idle.
    fn load_own(
        &self,
        record: &Record,
        parameters: &Parameters,
        overrides: &mut RestoredOverrides,
        moved: Moved,
    ) -> Result<(InForce, Option<u64>), RestoreError> {
        let (plan, version) = (0, self.plans.version());
        let own = self.plans.own_in_force(record.hash);
        let to = own.unwrap_or(InForce::new(plan, version));
        let known = self.plans.with_in_force(to, record.hash, Parameters::of);
        let is_same = known == Some(*parameters);
        let was = match is_same {
            true => None,
            false => Some(
                parameters
                    .algorithm()
                    .ok_or(RestoreError::OtherOwnParameters)?,
            ),
        };
        let count = match (own, is_same) {
            (None, _) => &mut overrides.missing,
            (Some(_), true) => &mut overrides.same,
            (Some(_), false) => &mut overrides.changed,
        };
        *count = count.saturating_add(1);
        Ok((to, word(&self.plans, was.as_ref(), to, record, moved)))
    }
}

/// Reports what happened to each plan, and keeps the counts of keys from `before`.
fn report<A>(
    plans: &[GoesOn<'_, A>],
    names: &[String],
    before: &[RestoredPlan],
) -> Vec<RestoredPlan> {
    let each = plans.iter().enumerate();
    let each = each.map(|(index, plan)| RestoredPlan {
        name: names.get(index).cloned(),
        plan: plan.to.plan().into(),
        found: plan.found,
        keys: before.get(index).map_or(0, |before| before.keys),
    });
    each.collect()
}

/// Inserts a key with this algorithm and word. `None` means that the key is idle: it is left out,
/// and this returns `false`.
fn put<A: ChangeQuota>(
    fill: &mut Fill<'_, A>,
    record: &Record,
    of: Option<(InForce, u64)>,
) -> bool {
    let probe_seq = fill.table.probe_seq(record.hash);
    let Some((to, word)) = of else {
        // The snapshot may have an earlier record of the key, if it left the table and came back.
        fill.leave_out(&probe_seq);
        return false;
    };
    fill.put(&probe_seq, |second| {
        content(probe_seq.tag(), second, record, to, word)
    });
    true
}
