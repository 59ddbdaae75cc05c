//! Gives back what a request took, also if users' code panics.

use super::all::All;
use super::held::Held;
use super::members::Members;
use super::visits::{GiveBack, GrantPrepared, Why};
use crate::clock::Tick;
use crate::outcome::Granted;
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
            let held = all.members.slot(self.grants, member);
            if let Some(held) = held.and_then(Option::take) {
                let n = all.members.visit(member, GiveBack { held, now, why });
                back = back.saturating_add(n.unwrap_or(0));
                if inject_fault!(UndoesOne) {
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
        self.run();
    }
}

/// Gives back what members took as they had prepared it, when it is dropped: when a member panics
/// while another takes, or makes its grant. Otherwise it is forgotten.
///
/// `P` returns what a member prepared. It is a function, so that the requests need not be in memory
/// where no member can panic.
pub(super) struct UndoPrepared<'u, 'p, M: Members<C>, C, P: Fn(usize) -> Option<&'p Prepared>> {
    all: &'u All<M, C>,
    prepared: P,
    /// How many members have taken: those before this place of the order.
    pub(super) taken: usize,
    /// The member that makes its grant, if one does.
    granting: Option<usize>,
    now: Tick,
}

impl<'u, 'p, M, C, P> UndoPrepared<'u, 'p, M, C, P>
where
    M: Members<C>,
    P: Fn(usize) -> Option<&'p Prepared>,
{
    #[inline(always)]
    pub(super) fn new(all: &'u All<M, C>, prepared: P, taken: usize, now: Tick) -> Self {
        Self {
            all,
            prepared,
            taken,
            granting: None,
            now,
        }
    }

    /// Makes the grant of a member that has taken.
    #[inline(always)]
    pub(super) fn grant(&mut self, grants: &mut M::Grants, member: usize, prepared: &Prepared) {
        self.granting = Some(member);
        if let Some(granted) = self.all.members.visit(member, GrantPrepared(prepared)) {
            self.all.keep(grants, member, Held::from(granted));
        }
    }
}

/// Makes all grants again, and gives them back. A member that panicked when it made its own gets
/// one that says only how many permits it took.
impl<'p, M, C, P> Drop for UndoPrepared<'_, 'p, M, C, P>
where
    M: Members<C>,
    P: Fn(usize) -> Option<&'p Prepared>,
{
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let all = self.all;
        let mut grants = all.members.no_grants();
        for member in all.order.limits().take(self.taken) {
            let Some(prepared) = (self.prepared)(member) else {
                continue;
            };
            let granted = match self.granting == Some(member) {
                true => Some(Granted::new(prepared.n(), prepared.now())),
                false => all.members.visit(member, GrantPrepared(prepared)),
            };
            if let Some(granted) = granted {
                all.keep(&mut grants, member, Held::from(granted));
            }
        }
        Undo::new(all, &mut grants, self.now, Why::LostRace).run();
    }
}
