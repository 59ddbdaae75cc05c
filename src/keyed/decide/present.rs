//! Decides on a key that has a slot, whatever the slot holds: a word of an earlier version or of
//! another plan, a ban, an override.

use super::{Request, end};
use crate::algorithm::Algorithm;
use crate::keyed::find::{SlotIndex, SlotState};
use crate::keyed::plans::AlgorithmId;
use crate::store::op::{Current, Op, OpResult, Refusal};

impl<A: Algorithm> Request<'_, A> {
    /// Runs an operation on a slot's word. Returns `None` if the slot has changed.
    pub(super) fn present<O: Op<A>>(
        &self,
        at: SlotIndex,
        held: SlotState,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let (table, plans) = (self.keys.table(), self.keys.plans());
        let (hash, now) = (self.probe_seq.hash(), self.now);
        // Read after the slot, so the slot's version is no later than this one.
        let version = plans.version();
        let (held_now, from) = plans.current(held, hash, version)?;
        let id = match O::BANS || plans.is_override(held) {
            true => from,
            false => AlgorithmId::new(self.plan, version),
        };
        let word = plans.converted(held_now, hash, (from, id), now)?;
        let mut view = Current::new(word, now).with_source(id.source());
        let run = |algorithm: &A| {
            // A ban lasts while there is no permit.
            view.is_banned = held_now.is_banned() && algorithm.available(word, now) == 0;
            match op.run(algorithm, view) {
                Err(refusal) if view.is_banned => Err(refusal.by_ban()),
                step => step,
            }
        };
        let step = plans.with(id, hash, run)?;
        let exchange = |next| {
            let is_banned = O::BANS || view.is_banned && !O::GRANTS;
            let next = SlotState::live(held.tag(), at.is_second(), id.plan(), id.version(), next);
            let next = next.protected_if(held.is_protected() || O::TAKES);
            let next = match is_banned {
                true => next.banned_if(true),
                false => next.newcomer_if(held.is_newcomer()),
            };
            table.decide(at, held, next)
        };
        end(op, word, step, exchange, || match held == held_now {
            // The answer holds if the slot has not changed since it was read.
            true => table.load(at) == held,
            // Store the migrated word, so that a caller that is denied repeatedly does not convert
            // it each time.
            false => table.migrate(at, held, held_now).is_ok(),
        })
    }
}
