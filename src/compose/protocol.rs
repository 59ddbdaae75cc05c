//! How a request takes from all members, or from none: it looks first, and takes second.

use super::all::All;
use super::denied::AllDenied;
use super::member::Member;
use super::members::{Members, Visitor};
use crate::clock::Tick;
use crate::outcome::Granted;
use crate::sync::inject_fault;

/// How often a request looks again after another caller was faster.
const ROUNDS: u32 = 3;

/// Looks whether a member would grant.
struct Check {
    n: u64,
    now: Tick,
    member: usize,
}

impl<C> Visitor<C> for Check {
    type Output = Result<(), AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let checked = member.check(self.n, self.now);
        checked.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Takes from a member.
struct Take {
    n: u64,
    now: Tick,
    member: usize,
}

impl<C> Visitor<C> for Take {
    type Output = Result<Granted, AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let taken = member.take(self.n, self.now);
        taken.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Why a grant is given back.
#[derive(Clone, Copy)]
pub(super) enum Why {
    /// The caller undoes it.
    Undone,
    /// Another member denied after all, so the caller never got it.
    LostRace,
}

/// Gives a grant back.
struct GiveBack {
    granted: Granted,
    now: Tick,
    why: Why,
}

impl<C> Visitor<C> for GiveBack {
    type Output = u64;

    #[inline]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        match self.why {
            Why::Undone => member.give_back(self.granted, self.now),
            Why::LostRace => member.roll_back(self.granted, self.now),
        }
    }
}

/// Counts a grant that the caller gets.
struct CountGranted<'g>(&'g Granted);

impl<C> Visitor<C> for CountGranted<'_> {
    type Output = ();

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) {
        member.count_granted(self.0);
    }
}

/// Counts a denial of a request for this many permits.
struct CountDenied(u64);

impl<C> Visitor<C> for CountDenied {
    type Output = ();

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) {
        member.count_denied(self.0);
    }
}

impl<M: Members<C>, C> All<M, C> {
    pub(super) fn take_each(
        &self,
        costs: &[u64],
        now: Tick,
        later: impl Fn(Tick) -> Tick,
    ) -> Result<M::Grants, AllDenied> {
        let costs = self.checked(costs)?;
        self.take(|member| cost_of(costs, member), now, later)
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
    #[inline]
    pub(super) fn take(
        &self,
        cost: impl Fn(usize) -> u64,
        now: Tick,
        later: impl Fn(Tick) -> Tick,
    ) -> Result<M::Grants, AllDenied> {
        let taken = self.take_uncounted(cost, now, later);
        if self.order.counts() {
            self.count(&taken);
        }
        taken
    }

    /// Lets members that count the answers count this one. None does before it is known, so what is
    /// taken and given back within a request is not counted.
    #[cold]
    fn count(&self, taken: &Result<M::Grants, AllDenied>) {
        match taken {
            Ok(grants) => {
                for member in self.order.limits() {
                    if let Some(granted) = self.members.grant(grants, member) {
                        self.members.visit(member, CountGranted(granted));
                    }
                }
            }
            Err(AllDenied::Member { member, denied, .. }) => {
                let n = denied.requested();
                self.members.visit(*member, CountDenied(n));
            }
            Err(AllDenied::CostsLength { .. }) => {}
        }
    }

    #[inline(always)]
    fn take_uncounted(
        &self,
        cost: impl Fn(usize) -> u64,
        now: Tick,
        later: impl Fn(Tick) -> Tick,
    ) -> Result<M::Grants, AllDenied> {
        let (mut rounds, mut now) = (ROUNDS, now);
        loop {
            if !inject_fault!(TakesWithoutALook) {
                // The first member answers for itself when it is taken from: nothing is taken yet.
                self.look(1, &cost, now)?;
            }
            let mut grants = self.members.no_grants();
            let Err((place, denied)) = self.take_in_order(&mut grants, &cost, now) else {
                return Ok(grants);
            };
            if place == 0 {
                return Err(denied);
            }
            now = later(now).max(now);
            if !inject_fault!(ForgetsToUndo) {
                self.give_back(&mut grants, now, Why::LostRace);
            }
            rounds -= 1;
            if rounds == 0 {
                return Err(denied);
            }
        }
    }

    /// Takes from one member after the other, until one denies. Returns that denial with its place
    /// in the order.
    #[inline(always)]
    fn take_in_order(
        &self,
        grants: &mut M::Grants,
        cost: &impl Fn(usize) -> u64,
        now: Tick,
    ) -> Result<(), (usize, AllDenied)> {
        for place in 0..self.order.len() {
            let member = self.order.get(place);
            let n = self.order.sum(member, cost);
            match self.members.visit(member, Take { n, now, member }) {
                Some(Ok(granted)) => {
                    if let Some(slot) = self.members.slot(grants, member) {
                        *slot = Some(granted);
                    }
                }
                Some(Err(denied)) => return Err((place, denied)),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks at the members from this place of the order on. If one denies, looks at all, for the
    /// longest denial.
    #[inline(always)]
    pub(super) fn look(
        &self,
        from: usize,
        cost: &impl Fn(usize) -> u64,
        now: Tick,
    ) -> Result<(), AllDenied> {
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
        let mut back: u64 = 0;
        for member in self.order.limits().rev() {
            let granted = self.members.slot(grants, member).and_then(Option::take);
            if let Some(granted) = granted {
                let n = self.members.visit(member, GiveBack { granted, now, why });
                back = back.saturating_add(n.unwrap_or(0));
                if inject_fault!(UndoesOne) {
                    break;
                }
            }
        }
        back
    }
}

#[inline(always)]
pub(super) fn cost_of(costs: &[u64], member: usize) -> u64 {
    costs.get(member).copied().unwrap_or(0)
}
