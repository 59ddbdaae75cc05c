use core::mem;

use super::held::Held;
use super::member::Member;
use super::members::{DebtMembers, one_member};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Settled};
use crate::store::Place;

/// The first of two limits that grants: a guaranteed share, then a common pool.
///
/// A request takes all its permits from the first limit. If that limit denies, it takes all from
/// the second. The grant remembers which limit made it, so undoing and settling reach that one.
///
/// ```
/// use tollgate::compose::{All, OrElse};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Limiter::token_bucket(Quota::per_hour(100))?;
/// let share = Limiter::token_bucket(Quota::per_hour(10))?;
/// let tenant = All::new(OrElse::new(&share, &pool))?;
///
/// let mut own = tenant.try_acquire_n(8)?;
/// let common = tenant.try_acquire_n(8)?; // the share has only 2 left
/// assert_eq!((share.available(), pool.available()), (2, 92));
/// common.undo();
/// own.settle([5])?;
/// assert_eq!((share.available(), pool.available()), (5, 100));
/// # Ok(())
/// # }
/// ```
///
/// - If both deny, the answer is the denial that ends sooner.
/// - `available` is that of the limit with more permits, because a request is never split.
/// - `charge` goes to the first limit.
/// - To choose between more than two, nest it up to 32 deep: `OrElse::new(a, OrElse::new(b, c))`.
///
/// # With other members
///
/// - `OrElse` is one member, and a composition orders it by the address of its second limit. So if
///   other compositions use the first limit directly, two competing requests may both be denied.
/// - Do not put a limit inside an `OrElse` and beside it in one composition: its costs are not
///   added up.
/// - A `Line` does not wait for a busy `Concurrency` inside an `OrElse`: it returns its
///   denial.
/// - The second limit may grant a request while another request holds permits of the first limit
///   that it then rolls back.
/// - If the second limit grants, a `Counted` first limit counts a denial. If both deny, each counts
///   a denial. An attempt that lost a race counts too.
#[derive(Debug, Clone, Copy)]
pub struct OrElse<A, B> {
    first: A,
    second: B,
}

impl<A, B> OrElse<A, B> {
    /// Composes two limits. The second is asked if the first denies.
    #[must_use]
    pub const fn new(first: A, second: B) -> Self {
        Self { first, second }
    }

    /// Returns the limit that is asked first.
    pub const fn first(&self) -> &A {
        &self.first
    }

    /// Returns the limit that is asked if the first denies.
    pub const fn second(&self) -> &B {
        &self.second
    }
}

/// Returns the denial that ends sooner: one after a known wait, then one of unknown length, then a
/// permanent one. On a tie, returns the first.
fn sooner(first: Denied, second: Denied) -> Denied {
    if let (Denied::Never { limit: less, .. }, Denied::Never { limit, .. }) = (first, second) {
        return match less >= limit {
            true => first,
            false => second,
        };
    }
    let rank = |denied: &Denied| match denied.retry_after() {
        Some(wait) => (0, wait),
        None => (1 + u8::from(denied.is_permanent()), Default::default()),
    };
    match rank(&first) <= rank(&second) {
        true => first,
        false => second,
    }
}

/// Calls a function when it is dropped: when a user's member panics. Otherwise it is forgotten, so
/// that it costs nothing.
struct OnPanic<T, F: FnMut() -> T>(F);

impl<T, F: FnMut() -> T> Drop for OnPanic<T, F> {
    #[cold]
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<C, A: Member<C>, B: Member<C>> Member<C> for OrElse<A, B> {
    #[inline]
    fn clock(&self) -> Option<&C> {
        let first = self.first.clock();
        first.or_else(|| self.second.clock())
    }

    fn each_clock(&self, show: &mut dyn FnMut(&C)) {
        self.first.each_clock(show);
        self.second.each_clock(show);
    }

    fn depth(&self) -> u32 {
        let inner = self.first.depth().max(self.second.depth());
        inner.saturating_add(1)
    }

    /// The place of the second limit, which is the one that others share.
    fn place(&self) -> Place {
        self.second.place().inexact()
    }

    fn can_undo(&self) -> bool {
        self.first.can_undo() && self.second.can_undo()
    }

    #[inline]
    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        let Err(first) = self.first.check(n, now) else {
            return Ok(());
        };
        let second = self.second.check(n, now);
        second.map_err(|second| sooner(first, second))
    }

    #[inline]
    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let first = match self.first.take(n, now) {
            Ok(held) => return Ok(held.of_branch(false)),
            Err(denied) => denied,
        };
        match self.second.take(n, now) {
            Ok(held) => {
                let undo = OnPanic(|| self.second.roll_back(held.again(), now));
                self.first.count(false, n);
                mem::forget(undo);
                Ok(held.of_branch(true))
            }
            Err(second) => Err(sooner(first, second)),
        }
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        let first = self.first.available_at(now);
        first.max(self.second.available_at(now))
    }

    #[inline]
    fn remaining(&self, held: &Held) -> u64 {
        match held.again().branch() {
            (false, held) => self.first.remaining(&held),
            (true, held) => self.second.remaining(&held),
        }
    }

    #[inline]
    fn give_back(&self, held: Held, now: Tick) -> u64 {
        match held.branch() {
            (false, held) => self.first.give_back(held, now),
            (true, held) => self.second.give_back(held, now),
        }
    }

    #[inline]
    fn roll_back(&self, held: Held, now: Tick) -> u64 {
        match held.branch() {
            (false, held) => self.first.roll_back(held, now),
            (true, held) => self.second.roll_back(held, now),
        }
    }

    #[inline]
    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        match held.branch() {
            (false, held) => self.first.correct(held, actual, now),
            (true, held) => self.second.correct(held, actual, now),
        }
    }

    #[inline]
    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        self.first.charge_to(n, now)
    }

    #[inline]
    fn leaves(&self) -> bool {
        self.first.leaves() || self.second.leaves()
    }

    #[inline]
    fn leave(&self, held: &Held) -> bool {
        match held.again().branch() {
            (false, held) => self.first.leave(&held),
            (true, held) => self.second.leave(&held),
        }
    }

    /// Only denials come here, and then both limits denied.
    fn count(&self, granted: bool, n: u64) {
        self.first.count(granted, n);
        self.second.count(granted, n);
    }
}

one_member!([C, A: Member<C>, B: Member<C>] C, OrElse<A, B>);

impl<C, A, B> DebtMembers<C> for OrElse<A, B>
where
    A: Member<C> + DebtMembers<C>,
    B: Member<C>,
{
}
