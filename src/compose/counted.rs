//! A `Counted` member.

use core::borrow::Borrow;

use super::held::Held;
use super::member::{Member, by_inner};
use super::members::{DebtMembers, ReserveMembers, one_member};
use crate::clock::Tick;
use crate::counted::{Counted, Counters};
use crate::outcome::{Charged, Denied, Settled};

/// As a member, a counted limit counts what it grants, and the denials that name it. A grant that
/// is rolled back counts as granted and returned. A caller in a `Line` counts once, however often
/// it sleeps: when it is granted or denied.
impl<C, M: Member<C>, S: Borrow<Counters>> Member<C> for Counted<M, S> {
    by_inner!(structure self => &self.limiter);
    by_inner!(answers self => &self.limiter);

    #[inline]
    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let held = self.limiter.take(n, now)?;
        self.counters().granted(n);
        Ok(held)
    }

    #[inline]
    fn take_fast(&self, n: u64, now: Tick, held: &mut Option<Held>) -> Option<Result<(), Denied>> {
        let taken = self.limiter.take_fast(n, now, held)?;
        if taken.is_ok() {
            self.counters().granted(n);
        }
        Some(taken)
    }

    #[inline]
    fn count(&self, granted: bool, n: u64) {
        self.counters().answer(granted, n);
        self.limiter.count(granted, n);
    }

    #[inline]
    fn give_back(&self, held: Held, now: Tick) -> u64 {
        self.returned(self.limiter.give_back(held, now))
    }

    #[inline]
    fn roll_back(&self, held: Held, now: Tick) -> u64 {
        self.returned(self.limiter.roll_back(held, now))
    }

    #[inline]
    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        let settled = self.limiter.correct(held, actual, now);
        self.counters().returned(settled.returned);
        self.counters().charged(settled.charged);
        settled
    }

    #[inline]
    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        let charged = self.limiter.charge_to(n, now);
        self.counters().charged(charged.n());
        charged
    }

    #[inline]
    fn take_as_of(&self, n: u64, due: Tick, now: Tick) -> Result<Held, Denied> {
        let held = self.limiter.take_as_of(n, due, now)?;
        self.counters().granted(n);
        Ok(held)
    }

    #[inline]
    fn cancel_as_of(&self, held: Held, now: Tick) -> u64 {
        self.returned(self.limiter.cancel_as_of(held, now))
    }
}

one_member!([C, M: Member<C>, S: Borrow<Counters>] C, Counted<M, S>);

impl<C, M: Member<C> + DebtMembers<C>, S: Borrow<Counters>> DebtMembers<C> for Counted<M, S> {}

impl<C, M: Member<C> + ReserveMembers<C>, S: Borrow<Counters>> ReserveMembers<C> for Counted<M, S> {}
