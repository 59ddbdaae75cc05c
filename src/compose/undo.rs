//! Gives back what a request took, also if users' code panics.

use super::all::All;
use super::members::Members;
use super::visits::Why;
use crate::clock::Tick;
use crate::sync::inject_fault;

/// Gives all grants back when it is dropped: when a member, a clock or a waker panics. Otherwise it
/// is forgotten, so that it costs nothing.
pub(super) struct UndoOnPanic<'u, M: Members<C>, C> {
    all: &'u All<M, C>,
    pub(super) grants: &'u mut M::Grants,
    pub(super) now: Tick,
    why: Why,
}

impl<'u, M: Members<C>, C> UndoOnPanic<'u, M, C> {
    #[inline(always)]
    pub(super) fn new(all: &'u All<M, C>, grants: &'u mut M::Grants, now: Tick, why: Why) -> Self {
        Self {
            all,
            grants,
            now,
            why,
        }
    }

    /// Gives back the grants that are left, the last one first. Returns how many permits came back.
    pub(super) fn run(&mut self) -> u64 {
        let (all, now, why) = (self.all, self.now, self.why);
        let mut back: u64 = 0;
        for position in (0..all.order.len()).rev() {
            let (member, grant) = (
                all.order.get(position),
                all.members.grant_mut(self.grants, position),
            );
            if let Some(held) = grant.and_then(Option::take) {
                let n = all.members.with(member, |member| match why {
                    Why::Undone => member.give_back(held, now),
                    Why::LostRace => member.roll_back(held, now),
                    Why::Cancelled => member.cancel_as_of(held, now),
                });
                back = back.saturating_add(n.unwrap_or(0));
                let undoes_one = inject_fault!(UndoesOne); // FAULT
                if undoes_one {
                    break;
                }
            }
        }
        back
    }
}

impl<M: Members<C>, C> Drop for UndoOnPanic<'_, M, C> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // In a model, a thread that stops forever returns nothing.
        #[cfg(all(tollgate_loom, feature = "loom"))]
        if std::thread::panicking() {
            return;
        }
        self.run();
    }
}
