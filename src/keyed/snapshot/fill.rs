//! Fills a new table, which no other thread uses yet, with the keys of a snapshot: converts them to
//! the clock and the plans of the table, and finds slots for them.

use std::string::String;
use std::vec::Vec;

use super::{PlanMatch, Restored, RestoredPlan};
use crate::algorithm::{ChangeQuota, Rebase, Settings};
use crate::clock::Tick;
use crate::keyed::admit::FirstToLeave;
use crate::keyed::ban::{banned_until, last_without_permits};
use crate::keyed::find::{Lookup, Probe, ProbeSeq, SlotIndex, SlotState, Table};
use crate::keyed::plans::{AlgorithmId, Plans};
use crate::snapshot::Record;
use crate::snapshot::elapsed::Moved;
use crate::snapshot::error::RestoreError;
use crate::snapshot::parameters::Parameters;
use crate::snapshot::read::{Done, Restore};

/// A table that is being filled.
pub(super) struct Filling<'p, A> {
    pub(super) table: Table,
    pub(super) plans: &'p Plans<A>,
    pub(super) moved: Moved,
    /// Of each plan of the snapshot.
    pub(super) continued: Vec<Continued<A>>,
    pub(super) restored: Restored,
    /// How many of the keys without room were protected.
    pub(super) no_room_protected: u64,
}

/// The plan in which the keys of a snapshot's plan continue.
pub(super) struct Continued<A> {
    /// The algorithm in the snapshot, if it differs from the plan's.
    was: Option<A>,
    to: AlgorithmId,
    pub(super) report: RestoredPlan,
}

impl<A: ChangeQuota + Rebase + Settings> Restore for Filling<'_, A> {
    fn plan(&mut self, index: usize, name: &[u8], parameters: &Parameters) -> Done {
        let plans = self.plans;
        let name = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        let has_names = !plans.names().is_empty();
        let same = match &name {
            Some(name) if has_names => plans.position(name),
            _ => Some(index).filter(|index| *index < plans.count()),
        };
        // Keys of a plan that the table does not have continue in the first plan.
        let plan = same.and_then(|plan| u8::try_from(plan).ok()).unwrap_or(0);
        let to = AlgorithmId::new(plan, plans.version());
        let was = |to: &A| parameters.unless_of(to, Some(index));
        let was = plans.with_plan(plan, to.version(), was);
        let was = was.transpose()?.flatten();
        let found = match same {
            None => PlanMatch::Missing,
            Some(_) if was.is_some() => PlanMatch::Changed,
            Some(_) => PlanMatch::Same,
        };
        if has_names != name.is_some() && plans.count() > 1 && found != PlanMatch::Same {
            let (plan, in_snapshot) = (index, has_names);
            return Err(RestoreError::PlanNamesMissing { plan, in_snapshot });
        }
        let before = self.continued.get_mut(index);
        let report = RestoredPlan {
            name,
            plan: plan.into(),
            found,
            keys: before.as_ref().map_or(0, |before| before.report.keys),
        };
        let next = Continued { was, to, report };
        match before {
            Some(before) => *before = next,
            None => self.continued.push(next),
        }
        Ok(())
    }

    fn key(&mut self, key: &Record, overridden: Option<&Parameters>) -> Done {
        let (plans, set) = (self.plans, self.plans.override_in_force(key.hash));
        let convert = |was: Option<&A>, to| converted(key, self.moved, was, (plans, to));
        let overrides = &mut self.restored.overrides;
        let (to, word) = match overridden {
            Some(parameters) => {
                let to = set.unwrap_or(AlgorithmId::new(0, plans.version()));
                let was = |to: &A| parameters.unless_of(to, None);
                let was = plans.with(to, key.hash, was);
                let was = was.transpose()?.flatten();
                add_one(match (set, &was) {
                    (None, _) => &mut overrides.missing,
                    (Some(_), None) => &mut overrides.same,
                    (Some(_), Some(_)) => &mut overrides.changed,
                });
                (to, convert(was.as_ref(), to))
            }
            None => {
                let Some(plan) = self.continued.get_mut(usize::from(key.plan)) else {
                    // The reader has checked that the plan exists.
                    return Ok(());
                };
                add_one(&mut plan.report.keys);
                match (set, &plan.was) {
                    (None, was) => (plan.to, convert(was.as_ref(), plan.to)),
                    (Some(to), was) => {
                        add_one(&mut overrides.new);
                        let (index, version) = (plan.to.plan(), plan.to.version());
                        let now = |now: &A| convert(was.as_ref().or(Some(now)), to);
                        (to, plans.with_plan(index, version, now).flatten())
                    }
                }
            }
        };
        let probe_seq = self.table.probe_seq(key.hash);
        match word {
            None => self.leave_out(&probe_seq),
            Some(word) => self.put(&probe_seq, |second| {
                SlotState::live(probe_seq.tag(), second, to.plan(), to.version(), word)
                    .protected_if(key.is_protected)
                    .banned_if(key.is_banned)
            }),
        }
        Ok(())
    }
}

impl<A: ChangeQuota> Filling<'_, A> {
    /// Inserts a key, or replaces its content if it is there already. If there is no room, drops
    /// the key that would be evicted first, which may be the new one.
    fn put(&mut self, probe_seq: &ProbeSeq, live: impl Fn(bool) -> SlotState) {
        let (seen, restored) = (self.table.look(probe_seq), &mut self.restored);
        let write = |at: SlotIndex, held| self.table.write_unshared(at, held, live(at.is_second()));
        if let Lookup::Live(at, held) = seen.find(probe_seq.tag()) {
            return write(at, held);
        }
        if let Some((at, held)) = seen.free().or_else(|| moved_on(&self.table, &seen)) {
            restored.keys = restored.keys.saturating_add(1);
            return write(at, held);
        }
        restored.no_room = restored.no_room.saturating_add(1);
        let (plans, version, now) = (self.plans, self.plans.version(), self.moved.to);
        let mut first = FirstToLeave::new(plans, version, now);
        let slots = seen.slots().map(|(at, held)| (Some(at), held));
        for (at, held) in core::iter::once((None, live(false))).chain(slots) {
            first.consider(at, held, plans.idle_at(held, version, now));
        }
        if let Some((at, held)) = first.found() {
            let protected = u64::from(held.is_protected());
            self.no_room_protected = self.no_room_protected.saturating_add(protected);
            if let Some(at) = at {
                write(at, held);
            }
        }
    }

    /// Leaves out an idle key. The snapshot may have an earlier record of it, if it left the table
    /// and came back.
    fn leave_out(&mut self, probe_seq: &ProbeSeq) {
        add_one(&mut self.restored.idle);
        if let Lookup::Live(at, held) = self.table.look(probe_seq).find(probe_seq.tag()) {
            self.table.write_unshared(at, held, SlotState::RELEASED);
            self.restored.keys = self.restored.keys.saturating_sub(1);
        }
    }
}

/// Makes room by moving a key from one of these slots to a free slot elsewhere in its probe
/// sequence. Returns the slot that the key left, which still holds its old content.
fn moved_on(table: &Table, seen: &Probe) -> Option<(SlotIndex, SlotState)> {
    seen.slots().find_map(|(at, held)| {
        let probe_seq = table.probe_seq_in(at, held)?;
        let (next, free) = table.look(&probe_seq).free()?;
        table.write_unshared(next, free, held.with_second(next.is_second()));
        Some((at, held))
    })
}

const fn add_one(count: &mut u64) {
    *count = count.saturating_add(1);
}

/// Converts the word of a key to algorithm `to`. `was` is its old algorithm, or `None` if that is
/// the same. Returns `None` if the key is idle.
fn converted<A: ChangeQuota + Rebase>(
    key: &Record,
    moved: Moved,
    was: Option<&A>,
    (plans, to): (&Plans<A>, AlgorithmId),
) -> Option<u64> {
    let word = plans.with(to, key.hash, |to| {
        let word = moved.word(key.word, was, to);
        let end = match was {
            // If the new clock's periods begin at other times, the key may have a permit before its
            // ban ends.
            None => end_of_ban(to, key, moved).filter(|end| to.available(word, *end) > 0),
            // The ban's end comes from the old algorithm: the new one may pay debt back at another
            // rate.
            Some(was) => end_of_ban(was, key, moved),
        };
        let word = end.map_or(word, |end| banned_until(to, end));
        (!to.is_idle(word, moved.to)).then_some(word)
    });
    // No other thread changes the algorithm meanwhile, so this is not outdated.
    word.flatten()
}

/// Returns the last tick of a ban without a permit, on the new clock.
fn end_of_ban<A: ChangeQuota>(was: &A, key: &Record, moved: Moved) -> Option<Tick> {
    let Moved { from, to } = moved;
    let last = (key.is_banned).then(|| last_without_permits(was, key.word, from));
    Some(to.saturating_add(last.flatten()?.saturating_since(from)))
}
