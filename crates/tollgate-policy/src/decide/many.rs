//! A request that more limits apply to than a composition has members. Such requests are rare, so
//! they are decided out of line, and this allocates.
//!
//! The protocol is that of a composition ([`All`](tollgate::compose::All)): look at all limits, and
//! deny if one would; then take from one after the other in the order of their places, which is the
//! same for all requests; if one denies meanwhile, roll back what was taken and start over.

use std::mem;
use std::ops::Deref;

use tollgate::clock::Clock;
use tollgate::compose::{Held, Member, Members};
use tollgate::error::ComposeError;
use tollgate::outcome::{GrantInfo, Settled};
use tollgate::{Denied, Tick};

use super::asks::Asks;
use crate::limit::PolicyClock;
use crate::policy::Policy;

/// How many times a request tries to take from all limits. Each failure is a lost race.
const ROUNDS: u32 = 3;

/// The permits of a request that many limits allow. If it is dropped, it keeps its permits and
/// leaves its concurrency slots.
pub(crate) struct Many<R: Deref<Target = Policy<C>>, C: PolicyClock> {
    pub(super) asks: Asks<R, C>,
    /// What each limit granted, until it is settled, given back or left.
    pub(super) held: Vec<Option<Held>>,
}

/// Why a request is not allowed.
pub(crate) enum Refused {
    /// Registered limits have other clocks.
    Invalid(ComposeError),
    /// This limit denies it.
    Denied(usize, Denied),
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Many<R, C> {
    /// Returns what a limit granted.
    pub(crate) fn info(&self, index: usize) -> Option<GrantInfo> {
        let held = self.held.get(index)?.as_ref()?;
        Some(held.granted.info())
    }

    /// Corrects the estimate of each limit to its cost in `costs`. Leaves each concurrency.
    pub(crate) fn settle(&mut self, costs: &[u64]) -> Settled {
        let now = self.asks.now();
        let mut sum = Settled::default();
        for (index, (slot, actual)) in self.held.iter_mut().zip(costs).enumerate() {
            let Some(held) = slot.take() else { continue };
            let actual = *actual;
            let correct = |limit: &dyn Member<C>| limit.correct(held, actual, now);
            let settled = self.asks.with(index, correct);
            sum = sum.plus(settled.unwrap_or_default());
        }
        sum
    }

    /// Gives all permits back, as far as each limit can take them back. Returns how many came back.
    pub(crate) fn undo(&mut self) -> u64 {
        let now = self.asks.now();
        let mut back = 0_u64;
        for (index, slot) in self.held.iter_mut().enumerate().rev() {
            let Some(held) = slot.take() else { continue };
            let n = self.asks.with(index, |limit| limit.give_back(held, now));
            back = back.saturating_add(n.unwrap_or(0));
        }
        back
    }
}

/// Takes from all limits of a request, or from none.
#[cold]
#[inline(never)]
pub(crate) fn take_all<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    asks: &Asks<R, C>,
) -> Result<Vec<Option<Held>>, Refused> {
    check_clocks(asks).map_err(Refused::Invalid)?;
    let mut order: Vec<usize> = (0..asks.list.len()).collect();
    order.sort_by_key(|index| asks.with(*index, |limit| limit.place()));
    let mut now = asks.now();
    let mut rounds = ROUNDS;
    loop {
        let denied = match longest_denial(asks, now) {
            Some(denied) => Err((denied, 0)),
            None => {
                rounds = rounds.saturating_sub(1);
                take_in_order(asks, &order, now).map_err(|denied| (denied, rounds))
            }
        };
        match denied {
            Ok(held) => return Ok(held),
            Err(((index, denied), 0)) => {
                asks.with(index, |limit| limit.count(false, denied.requested()));
                return Err(Refused::Denied(index, denied));
            }
            // The request lost a race, and all its permits were rolled back.
            Err(_) => now = asks.now().max(now),
        }
    }
}

/// Checks that all limits have the policy's clock.
fn check_clocks<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    asks: &Asks<R, C>,
) -> Result<(), ComposeError> {
    let mut first = None;
    for member in 0..asks.list.len() {
        let id = |limit: &dyn Member<C>| limit.clock().map(Clock::identity);
        let Some(Some(clock)) = asks.with(member, id) else {
            continue;
        };
        let (other, known) = *first.get_or_insert((member, clock));
        if known != clock {
            return Err(ComposeError::ClocksDiffer { member, other });
        }
    }
    Ok(())
}

/// Looks at all limits. Returns the denial that lasts longest: a permanent one, then one of unknown
/// length, then the longest wait.
fn longest_denial<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    asks: &Asks<R, C>,
    now: Tick,
) -> Option<(usize, Denied)> {
    let denials = asks.list.iter().enumerate().filter_map(|(index, ask)| {
        let look = |limit: &dyn Member<C>| limit.check(ask.cost, now).err();
        Some((index, asks.with(index, look).flatten()?))
    });
    let rank = |denied: &Denied| match (denied.is_permanent(), denied.retry_after()) {
        (true, _) => (2, None),
        (false, None) => (1, None),
        (false, wait) => (0, wait),
    };
    // If several last equally long, the first.
    denials.reduce(|longest, other| match rank(&other.1) > rank(&longest.1) {
        true => other,
        false => longest,
    })
}

/// The grants that were taken until now. If a limit denies or panics, this is dropped, and the
/// grants are rolled back, the last ones first.
struct Taking<'t, R, C>
where
    R: Deref<Target = Policy<C>>,
    C: PolicyClock,
{
    asks: &'t Asks<R, C>,
    order: &'t [usize],
    held: Vec<Option<Held>>,
    now: Tick,
}

/// Takes from one limit after the other. If one denies or panics, nothing stays taken.
fn take_in_order<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    asks: &Asks<R, C>,
    order: &[usize],
    now: Tick,
) -> Result<Vec<Option<Held>>, (usize, Denied)> {
    let held = asks.list.iter().map(|_| None).collect();
    let mut taking = Taking {
        asks,
        order,
        held,
        now,
    };
    for &index in order {
        let n = asks.list.get(index).map_or(0, |ask| ask.cost);
        match asks.with(index, |limit| limit.take(n, now)) {
            Some(Ok(held)) => {
                if let Some(slot) = taking.held.get_mut(index) {
                    *slot = Some(held);
                }
            }
            Some(Err(denied)) => return Err((index, denied)),
            None => {}
        }
    }
    Ok(mem::take(&mut taking.held))
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Drop for Taking<'_, R, C> {
    fn drop(&mut self) {
        for &index in self.order.iter().rev() {
            let held = self.held.get_mut(index).and_then(Option::take);
            if let Some(held) = held {
                let now = self.now;
                self.asks.with(index, |limit| limit.roll_back(held, now));
            }
        }
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Drop for Many<R, C> {
    fn drop(&mut self) {
        let asks = &self.asks;
        let held = mem::take(&mut self.held).into_iter().enumerate();
        drop(Leaving { asks, held });
    }
}

/// Leaves the remaining concurrency slots. If a waker panics, the rest are dropped all the same.
struct Leaving<'l, R, C, I>
where
    R: Deref<Target = Policy<C>>,
    C: PolicyClock,
    I: Iterator<Item = (usize, Option<Held>)>,
{
    asks: &'l Asks<R, C>,
    held: I,
}

impl<R, C, I> Drop for Leaving<'_, R, C, I>
where
    R: Deref<Target = Policy<C>>,
    C: PolicyClock,
    I: Iterator<Item = (usize, Option<Held>)>,
{
    fn drop(&mut self) {
        for (index, held) in &mut self.held {
            if let Some(held) = held {
                self.asks.with(index, |limit| limit.leave(&held));
            }
        }
    }
}
