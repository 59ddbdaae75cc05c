//! How a request takes from all members, or from none: it looks first, and takes second.

use core::mem;

use super::all::All;
use super::denied::AllDenied;
use super::members::Members;
use super::slot::Slot;
use super::undo::{Undo, UndoPrepared};
use super::visits::{Check, CountDenied, CountGranted, Prepare, Take, TakePrepared, Why};
use crate::clock::Tick;
use crate::store::Prepared;
use crate::sync::inject_fault;

/// For this many members, what the looks computed is kept for the takes.
const FEW: usize = 8;

/// How many times a request tries to take from all members. Each failure is a lost race.
pub(super) const ROUNDS: u32 = 3;

/// What a request takes from each member, by its number. It is `Copy`, so that it stays in
/// registers: a reference to it would force it into memory.
pub(super) trait Cost: Fn(usize) -> u64 + Copy {}

impl<F: Fn(usize) -> u64 + Copy> Cost for F {}

/// Reads the clock again, but not below this tick.
pub(super) trait Later: Fn(Tick) -> Tick + Copy {}

impl<F: Fn(Tick) -> Tick + Copy> Later for F {}

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

    /// Takes from all members, or from none. `later` reads the clock again after a lost race.
    #[inline(always)]
    pub(super) fn take(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        match M::COUNT {
            Some(2) if self.order.plain() == 2 => self.take_two(cost, now, later),
            Some(count @ 3..=FEW) if self.order.plain() == count => {
                self.take_few(count, cost, now, later)
            }
            // A limit appears twice, or a member counts.
            Some(2..=FEW) => self.take_and_count(cost, now, later),
            // One member answers for itself when it is taken from, so there is no need to look.
            None if (2..=FEW).contains(&self.order.plain()) => {
                self.take_few(self.order.plain(), cost, now, later)
            }
            _ if self.order.counts() => self.take_and_count(cost, now, later),
            _ => self.take_in_rounds(ROUNDS, cost, now, later),
        }
    }

    /// Takes, and lets the members that count the answers count this one, if there are any. None
    /// counts before the answer is known, so what is taken and given back within a request is not
    /// counted.
    #[inline(never)]
    fn take_and_count(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let taken = self.take_and_count_grant(cost, now, later);
        taken.inspect_err(|denied| self.count_denied(denied))
    }

    /// Takes, and lets members count a grant, but no denial: the caller may wait, and ask again.
    pub(super) fn take_and_count_grant(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let mut grants = self.take_in_rounds(ROUNDS, cost, now, later)?;
        if self.order.counts() {
            let undo = Undo::new(self, &mut grants, now, Why::LostRace);
            self.count_granted(undo.grants);
            mem::forget(undo);
        }
        Ok(grants)
    }

    /// Lets the member that denies a request count the denial.
    pub(super) fn count_denied(&self, denied: &AllDenied) {
        if let (true, AllDenied::Member { member, denied, .. }) = (self.order.counts(), denied) {
            let n = denied.requested();
            self.members.visit(*member, CountDenied(n));
        }
    }

    /// Lets each member count its grant.
    pub(super) fn count_granted(&self, grants: &M::Grants) {
        for member in self.order.limits() {
            if let Some(slot) = self.members.grant(grants, member) {
                self.members.visit(member, CountGranted(slot));
            }
        }
    }

    /// Does what [`take_in_rounds`](Self::take_in_rounds) does, for two members. Their numbers are
    /// constants, so that their decisions are inlined without a branch over members. What the looks
    /// computed is kept, so that a take is a single exchange.
    #[inline(always)]
    fn take_two(
        &self,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let takes = inject_fault!(TakesWithoutALook); // FAULT
        if takes {
            return self.take_in_rounds(ROUNDS, cost, now, later);
        }
        let zero = match self.prepare(0, cost, now) {
            Ok(zero) => zero,
            Err(zero) => {
                return match self.prepare(1, cost, now) {
                    Ok(_) => Err(zero),
                    Err(one) => Err(zero.longer(one)),
                };
            }
        };
        let one = self.prepare(1, cost, now)?;
        match self.order.get(0) {
            0 => self.take_both((0, zero), (1, one), cost, now, later),
            _ => self.take_both((1, one), (0, zero), cost, now, later),
        }
    }

    /// Takes from two members in this order.
    #[inline(always)]
    fn take_both(
        &self,
        first: (usize, Prepared),
        second: (usize, Prepared),
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        if !self.take_prepared(first.0, &first.1) {
            return self.take_rest(0, &[], cost, now, later);
        }
        let undo = UndoPrepared {
            all: self,
            prepared: |member| (member == first.0).then_some(&first.1),
            taken: 1,
            now,
        };
        let has_both = self.take_prepared(second.0, &second.1);
        mem::forget(undo);
        if !has_both {
            let (member, prepared) = first;
            return self.take_second(member, prepared.exchanged(), cost, now, later);
        }
        let mut grants = self.members.no_grants();
        self.keep(&mut grants, first.0, first.1);
        self.keep(&mut grants, second.0, second.1);
        Ok(grants)
    }

    /// Takes from up to [`FEW`] members as [`take_two`](Self::take_two) does from two. The looks
    /// and the grants are unrolled. The takes follow the order.
    #[inline(always)]
    fn take_few(
        &self,
        count: usize,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let takes = inject_fault!(TakesWithoutALook); // FAULT
        if takes {
            return self.take_in_rounds(ROUNDS, cost, now, later);
        }
        let mut all = [const { Prepared::checked(0, Tick::ZERO) }; FEW];
        macro_rules! each_member {
            (|$member:ident| $do:expr) => {
                each_member!(|$member| $do; 0 1 2 3 4 5 6 7)
            };
            (|$member:ident| $do:expr; $($number:literal)*) => {$(
                if $number < count {
                    let $member = $number;
                    $do
                }
            )*};
        }
        each_member!(
            |member| match (self.prepare(member, cost, now), all.get_mut(member)) {
                (Ok(prepared), Some(slot)) => *slot = prepared,
                (Err(denied), _) if member + 1 == count => return Err(denied),
                (Err(denied), _) => return self.longest(denied, member + 1, cost, now),
                _ => {}
            }
        );
        let mut undo = UndoPrepared {
            all: self,
            prepared: |member| all.get(member),
            taken: 0,
            now,
        };
        for place in 0..count {
            let member = self.order.get(place);
            let prepared = all.get(member);
            if !prepared.is_some_and(|prepared| self.take_prepared(member, prepared)) {
                mem::forget(undo);
                return self.take_rest(place, &all, cost, now, later);
            }
            undo.taken = place + 1;
        }
        let mut grants = self.members.no_grants();
        mem::forget(undo);
        each_member!(|member| if let Some(prepared) = all.get(member) {
            self.keep(&mut grants, member, prepared.again());
        });
        Ok(grants)
    }

    /// Returns the longest denial: this one, or one of the members from this one on.
    #[cold]
    #[inline(never)]
    fn longest(
        &self,
        denied: AllDenied,
        from: usize,
        cost: impl Cost,
        now: Tick,
    ) -> Result<M::Grants, AllDenied> {
        let mut longest = denied;
        for member in from..self.members() {
            let n = cost(member);
            if let Some(Err(denied)) = self.members.visit(member, Check { n, now, member }) {
                longest = longest.longer(denied);
            }
        }
        Err(longest)
    }

    /// Takes from the second of two members. The first has granted, by exchanging these words.
    // The words are passed in registers. A `Prepared` would be written to the stack before it is
    // known to be needed.
    #[cold]
    #[inline(never)]
    fn take_second(
        &self,
        first: usize,
        words: (u64, u64),
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let prepared = Prepared::of(words, cost(first), now);
        // The other one is not read.
        self.take_rest(1, &[prepared.again(), prepared], cost, now, later)
    }

    /// Takes from the members that were looked at and that have granted nothing yet: those from
    /// this place of the order on. Those before it have granted what they prepared.
    #[cold]
    #[inline(never)]
    fn take_rest(
        &self,
        from: usize,
        prepared: &[Prepared],
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let mut grants = self.members.no_grants();
        for place in 0..from {
            let member = self.order.get(place);
            if let Some(prepared) = prepared.get(member) {
                self.keep(&mut grants, member, prepared.again());
            }
        }
        self.take_from(from, ROUNDS, grants, cost, now, later)
    }

    #[inline(always)]
    fn prepare(&self, member: usize, cost: impl Cost, now: Tick) -> Result<Prepared, AllDenied> {
        let n = cost(member);
        match self.members.visit(member, Prepare { n, now, member }) {
            Some(prepared) => prepared,
            // There is such a member, so this does not happen.
            None => Ok(Prepared::checked(n, now)),
        }
    }

    #[inline(always)]
    fn take_prepared(&self, member: usize, prepared: &Prepared) -> bool {
        matches!(
            self.members.visit(member, TakePrepared(prepared)),
            Some(true)
        )
    }

    #[inline(always)]
    pub(super) fn keep(&self, grants: &mut M::Grants, member: usize, taken: impl Into<Slot>) {
        if let Some(slot) = self.members.slot(grants, member) {
            *slot = taken.into();
        }
    }

    /// Looks at all members, and takes from one after the other, this many times at most.
    // Always inlined: where the denial is not read, the waits are not computed.
    #[inline(always)]
    pub(super) fn take_in_rounds(
        &self,
        rounds: u32,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let looks = !inject_fault!(TakesWithoutALook); // FAULT
        if looks {
            // The first member answers for itself when it is taken from: nothing is taken yet.
            self.look(1, cost, now)?;
        }
        let grants = self.members.no_grants();
        self.take_from(0, rounds, grants, cost, now, later)
    }

    /// Takes from the members from this place of the order on. If one denies, undoes what was taken
    /// and looks again.
    #[inline(always)]
    fn take_from(
        &self,
        from: usize,
        rounds: u32,
        mut grants: M::Grants,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let undo = Undo::new(self, &mut grants, now, Why::LostRace);
        let taken = self.take_in_order(from, undo.grants, cost, now);
        mem::forget(undo);
        match taken {
            Ok(()) => Ok(grants),
            Err((0, denied)) => Err(denied),
            Err((_, denied)) => self.undo_and_look_again(rounds, grants, denied, cost, now, later),
        }
    }

    /// Undoes what was taken in this round, and begins the next one.
    #[cold]
    #[inline(never)]
    fn undo_and_look_again(
        &self,
        rounds: u32,
        mut grants: M::Grants,
        denied: AllDenied,
        cost: impl Cost,
        now: Tick,
        later: impl Later,
    ) -> Result<M::Grants, AllDenied> {
        let undo = Undo::new(self, &mut grants, now, Why::LostRace);
        let now = later(now).max(now);
        mem::forget(undo);
        let undoes = !inject_fault!(ForgetsToUndo); // FAULT
        if undoes {
            self.give_back(&mut grants, now, Why::LostRace);
        }
        match rounds.saturating_sub(1) {
            0 => Err(denied),
            rounds => self.take_in_rounds(rounds, cost, now, later),
        }
    }

    /// Takes from one member after the other, from this place of the order on, until one denies.
    /// Returns that denial with its place in the order.
    #[inline(always)]
    fn take_in_order(
        &self,
        from: usize,
        grants: &mut M::Grants,
        cost: impl Cost,
        now: Tick,
    ) -> Result<(), (usize, AllDenied)> {
        for place in from..self.order.len() {
            let member = self.order.get(place);
            let n = self.order.sum(member, cost);
            match self.members.visit(member, Take { n, now, member }) {
                Some(Ok(held)) => self.keep(grants, member, held),
                Some(Err(denied)) => return Err((place, denied)),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks at the members from this place of the order on. If one denies, looks at all, for the
    /// longest denial.
    #[inline(always)]
    pub(super) fn look(&self, from: usize, cost: impl Cost, now: Tick) -> Result<(), AllDenied> {
        let mut longest: Option<AllDenied> = None;
        let check = |place, longest: &mut Option<AllDenied>| {
            let member = self.order.get(place);
            let n = self.order.sum(member, cost);
            if let Some(Err(denied)) = self.members.visit(member, Check { n, now, member }) {
                *longest = Some(longest.map_or(denied, |longest| longest.longer(denied)));
            }
        };
        for place in from..self.order.len() {
            check(place, &mut longest);
        }
        if longest.is_some() {
            for place in 0..from {
                check(place, &mut longest);
            }
        }
        longest.map_or(Ok(()), Err)
    }

    /// Gives all grants back, the last one first. Returns how many permits came back.
    #[cold]
    pub(super) fn give_back(&self, grants: &mut M::Grants, now: Tick, why: Why) -> u64 {
        let mut undo = Undo::new(self, grants, now, why);
        let back = undo.run();
        mem::forget(undo);
        back
    }
}

#[inline(always)]
pub(super) fn cost_of(costs: &[u64], member: usize) -> u64 {
    costs.get(member).copied().unwrap_or(0)
}
