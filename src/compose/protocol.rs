//! How a request takes from all members, or from none: it looks first, and takes second.

use core::mem;

use super::all::All;
use super::denied::AllDenied;
use super::members::Members;
use super::undo::UndoOnPanic;
use super::visits::{Check, Denial, Take, TakeFast, Why};
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::sync::inject_fault;

/// How many times a request tries to take from all members. Each failure is a lost race.
pub(super) const ROUNDS: u32 = 3;

/// What a request takes from each member, by its number. It is `Copy`, so that it stays in
/// registers: a reference to it would force it into memory.
pub(super) trait Cost: Fn(usize) -> u64 + Copy {}

impl<F: Fn(usize) -> u64 + Copy> Cost for F {}

/// Reads the clock again after a request that began at this tick.
pub(super) trait Later: Fn(Tick) -> Tick + Copy {}

impl<F: Fn(Tick) -> Tick + Copy> Later for F {}

/// Runs a block for each position below a bound. Where the compiler knows the bound, it knows each
/// position too, and with it the member. A loop does not always become this.
macro_rules! unrolled {
    ($bound:expr, |$position:ident| $block:block) => {
        unrolled!(@ $bound, |$position| $block; 0 1 2 3 4 5 6 7)
    };
    (@ $bound:expr, |$position:ident| $block:block; $($number:literal)*) => {{
        let bound = $bound;
        $(if $number < bound {
            let $position = $number;
            $block
        })*
    }};
}

/// Returns whether a request's positions are unrolled. Each position has code for each kind of
/// member.
const fn unrolls<M: Members<C>, C>() -> bool {
    matches!(M::COUNT, Some(count @ ..=8) if M::KINDS.saturating_mul(count) <= 16)
}

/// A member denied a request after others had granted it: another caller was faster.
struct LostRace(AllDenied);

impl<M: Members<C>, C> All<M, C> {
    pub(super) fn take_each(
        &self,
        costs: &[u64],
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let costs = self.checked(costs)?;
        self.take(move |member| cost_of(costs, member), now, later)
    }

    /// Returns the costs if there is one for each member.
    #[inline]
    pub(super) const fn checked<'c>(&self, costs: &'c [u64]) -> Result<&'c [u64], AllDenied> {
        match costs.len() == self.members() {
            true => Ok(costs),
            false => Err(AllDenied::CostsLength {
                costs: costs.len(),
                members: self.members(),
            }),
        }
    }

    /// Takes from all members, or from none, and lets the member that denies count the denial.
    /// `later` reads the clock again after a lost race.
    #[inline(always)]
    pub(super) fn take(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        match self.take_uncounted(cost, now, later) {
            Ok(grants) => Ok(grants),
            denied => self.counted(denied),
        }
    }

    /// Lets the member that denies a request in the end count the denial.
    #[inline(always)]
    pub(super) fn counted<T>(&self, taken: Result<T, AllDenied>) -> Result<T, AllDenied> {
        taken.inspect_err(|denied| {
            if let AllDenied::Member { member, denied, .. } = denied {
                self.count(*member, false, denied.requested());
            }
        })
    }

    /// Lets a member count an answer that it did not count when it was taken from.
    #[inline(always)]
    pub(super) fn count(&self, member: usize, granted: bool, n: u64) {
        self.members.with(member, |member| member.count(granted, n));
    }

    /// Looks at the members, and takes from one after the other. If another caller is faster, goes
    /// on out of line.
    // Always inlined: where the denial is not read, the waits are not computed.
    #[expect(
        clippy::needless_question_mark,
        reason = "an answer that is passed on whole would have to be in memory, and so would its parts"
    )]
    #[inline(always)]
    pub(super) fn take_uncounted(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        // Without optimization too, a long tuple must not get this code for each position and kind.
        let unrolls = const { unrolls::<M, C>() };
        // A limit that appears twice has one position.
        if !unrolls || M::COUNT != Some(self.order.len()) {
            return Ok(self.take_out_of_line(cost, now, later)?);
        }
        let looks = !inject_fault!(TakesWithoutALook); // FAULT
        if looks {
            self.look_before(cost, now)?;
        }
        let mut grants = self.members.no_grants();
        unrolled!(M::COUNT.unwrap_or(0), |position| {
            let member = self.order.get(position);
            let n = cost(member);
            let undo = UndoOnPanic::new(self, &mut grants, now, Why::LostRace);
            let taken = match self.members.grant_mut(undo.grants, position) {
                Some(grant) => {
                    let take = Take {
                        n,
                        now,
                        member,
                        grant,
                    };
                    self.members.visit(member, TakeFast(take))
                }
                None => None,
            };
            mem::forget(undo);
            match taken {
                // The outer `None` is a member that is missing, the inner one an attempt that
                // does not tell.
                Some(Some(Ok(()))) => {}
                Some(Some(Err(denied))) if position == 0 => return Err(denied),
                unfinished => {
                    let is_lost = matches!(unfinished, Some(Some(Err(_))));
                    let grants = self.moved(&mut grants);
                    return Ok(self.go_on(position, is_lost, grants, cost, now, later)?);
                }
            }
        });
        Ok(grants)
    }

    /// Takes by loops. A denial is found before the grants' memory is made, which may allocate.
    #[inline(never)]
    fn take_out_of_line(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let looks = !inject_fault!(TakesWithoutALook); // FAULT
        if looks {
            self.look(cost, now)?;
        }
        self.go_on(0, false, self.members.no_grants(), cost, now, later)
    }

    /// Takes from the members from this position on, unless the member of this position denies. If
    /// one does, another caller was faster: gives back what was taken and starts over, for
    /// [`ROUNDS`] rounds in all.
    #[inline(never)]
    fn go_on(
        &self,
        first: usize,
        is_lost: bool,
        mut grants: M::Grants,
        cost: impl Cost,
        mut now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let mut lost = match is_lost {
            // Never returned: more rounds follow.
            true => Some(LostRace(AllDenied::Line)),
            false => self.take_from(first, &mut grants, cost, now)?,
        };
        for _ in 1..ROUNDS {
            if lost.is_none() {
                return Ok(grants);
            }
            now = self.give_back_round(&mut grants, now, later);
            self.look(cost, now)?;
            lost = self.take_from(0, &mut grants, cost, now)?;
        }
        match lost {
            None => Ok(grants),
            Some(LostRace(denied)) => {
                self.give_back_round(&mut grants, now, later);
                Err(denied)
            }
        }
    }

    /// Takes from the members from this position on.
    fn take_from(
        &self,
        first: usize,
        grants: &mut M::Grants,
        cost: impl Cost,
        now: Tick,
    ) -> Result<Option<LostRace>, AllDenied> {
        let undo = UndoOnPanic::new(self, grants, now, Why::LostRace);
        for position in first..self.order.len() {
            let member = self.order.get(position);
            let n = self.sums(cost)(member);
            let grant = self.members.grant_mut(undo.grants, position);
            let taken = grant.and_then(|grant| {
                let take = Take {
                    n,
                    now,
                    member,
                    grant,
                };
                self.members.visit(member, take)
            });
            let denied = match taken {
                Some(Ok(())) => continue,
                Some(Err(denied)) => denied,
                // A user's `Members` lacks the member, or a place for its grant.
                None => AllDenied::of(member, None, Denied::busy(n)),
            };
            mem::forget(undo);
            return match position {
                0 => Err(denied),
                _ => Ok(Some(LostRace(denied))),
            };
        }
        mem::forget(undo);
        Ok(None)
    }

    /// Reads the clock again, and gives back what the round took.
    fn give_back_round(&self, grants: &mut M::Grants, now: Tick, later: impl Later) -> Tick {
        let mut undo = UndoOnPanic::new(self, grants, now, Why::LostRace);
        undo.now = later(now).max(now);
        let undoes = !inject_fault!(ForgetsToUndo); // FAULT
        if undoes {
            undo.run();
        }
        let now = undo.now;
        mem::forget(undo);
        now
    }

    /// Moves the grants one by one. Grants that were passed on as a whole would have an address, so
    /// each would be in memory before the exchange of the next member, which waits for that.
    #[inline(always)]
    fn moved(&self, grants: &mut M::Grants) -> M::Grants {
        let mut moved = self.members.no_grants();
        unrolled!(M::COUNT.unwrap_or(0), |position| {
            let from = self.members.grant_mut(grants, position);
            if let (Some(from), Some(to)) = (from, self.members.grant_mut(&mut moved, position)) {
                *to = from.take();
            }
        });
        moved
    }

    /// Returns what a request takes from a limit, for all members that are the same limit.
    #[inline(always)]
    fn sums(&self, cost: impl Cost) -> impl Cost {
        move |member| self.order.sum(member, cost)
    }

    /// Looks at all members, and returns the longest denial.
    pub(super) fn look(&self, cost: impl Cost, now: Tick) -> Result<(), AllDenied> {
        let mut denial = Denial::none();
        for position in 0..self.order.len() {
            denial.add(self.look_at(position, self.sums(cost), now));
        }
        denial.longest_of_all()
    }

    /// Looks at the members before a request takes from them. The first one answers for itself when
    /// it is taken from: it is looked at only if another one denies, for the longest denial.
    #[inline(always)]
    fn look_before(&self, cost: impl Cost, now: Tick) -> Result<(), AllDenied> {
        let mut denial = Denial::none();
        unrolled!(M::COUNT.unwrap_or(0), |position| {
            if position > 0 {
                denial.add(self.look_at(position, cost, now));
            }
        });
        if denial.is_any {
            denial.add(self.look_at(0, cost, now));
        }
        denial.longest_of_all()
    }

    #[inline(always)]
    fn look_at(
        &self,
        position: usize,
        cost: impl Cost,
        now: Tick,
    ) -> Option<Result<(), AllDenied>> {
        let member = self.order.get(position);
        let n = cost(member);
        self.members.visit(member, Check { n, now, member })
    }

    /// Gives all grants back, the last one first. Returns how many permits came back.
    #[cold]
    pub(super) fn give_back(&self, grants: &mut M::Grants, now: Tick, why: Why) -> u64 {
        let mut undo = UndoOnPanic::new(self, grants, now, why);
        let back = undo.run();
        mem::forget(undo);
        back
    }
}

#[inline(always)]
pub(super) fn cost_of(costs: &[u64], member: usize) -> u64 {
    costs.get(member).copied().unwrap_or(0)
}
