//! Gives back what a request took, also if users' code panics.

use super::all::All;
use super::members::Members;
use super::slot::Slot;
use super::visits::{GiveBack, Why};
use crate::clock::Tick;
use crate::store::Prepared;
use crate::sync::inject_fault;

/// Gives all grants back when it is dropped: when a member, a clock or a waker panics. Otherwise it
/// is forgotten, so that it costs nothing.
pub(super) struct Undo<'u, M: Members<C>, C> {
    all: &'u All<M, C>,
    pub(super) grants: &'u mut M::Grants,
    now: Tick,
    why: Why,
}

impl<'u, M: Members<C>, C> Undo<'u, M, C> {
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
        for member in all.order.limits().rev() {
            let slot = all.members.slot(self.grants, member);
            if let Some(slot) = slot.and_then(Slot::take) {
                let n = all.members.visit(member, GiveBack { slot, now, why });
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

impl<M: Members<C>, C> Drop for Undo<'_, M, C> {
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

/// Gives back the prepared permits that members took, when it is dropped: when another member
/// panics. Otherwise it is forgotten.
///
/// `P` returns what a member prepared. It is a function, so that the prepared requests can stay in
/// registers if no member can panic.
pub(super) struct UndoPrepared<'u, 'p, M: Members<C>, C, P: Fn(usize) -> Option<&'p Prepared>> {
    pub(super) all: &'u All<M, C>,
    pub(super) prepared: P,
    /// How many members have taken: those before this place of the order.
    pub(super) taken: usize,
    pub(super) now: Tick,
}

impl<'p, M, C, P> Drop for UndoPrepared<'_, 'p, M, C, P>
where
    M: Members<C>,
    P: Fn(usize) -> Option<&'p Prepared>,
{
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let mut grants = self.all.members.no_grants();
        for member in self.all.order.limits().take(self.taken) {
            if let Some(prepared) = (self.prepared)(member) {
                self.all.keep(&mut grants, member, prepared.again());
            }
        }
        drop(Undo::new(self.all, &mut grants, self.now, Why::LostRace));
    }
}
