//! The first caller in line: it sleeps until all members would grant, and then takes from all.
//!
//! Its next step depends on the denial. If the wait is known, it sleeps for that long. If a
//! [`Concurrency`](crate::Concurrency) is busy, it waits in that member's own queue until a caller
//! that leaves lets it in, and takes from the other members while it is inside. If one of them
//! denies, it leaves at once. So it never sleeps while it holds anything, and two compositions
//! cannot block each other.

use core::future::{Future, poll_fn};
use core::mem;
use core::num::NonZeroU64;
use core::pin::pin;
use core::task::{Poll, Waker};

use super::all::All;
use super::denied::AllDenied;
use super::held::Held;
use super::member::Member;
use super::members::{Members, Visitor, through_members};
use super::undo::UndoOnPanic;
use super::visits::Why;
use super::waiting_permits::PlaceInLine;
use crate::clock::{Clock, Tick, Timer};
use crate::concurrency::limiter::Concurrency;
use crate::concurrency::queue::QueueTicket;
use crate::outcome::{Denied, Granted};
use crate::store::Place;
use crate::sync::inject_fault;
use crate::wait::sleep_check::SleepCheck;

/// Takes from all members as soon as all of them grant. Returns the denial of a member that denies
/// until after `latest`. No member has counted that denial. Leaves the line in each case.
pub(super) async fn take_when_granted<M: Members<C>, C: Clock>(
    place: PlaceInLine<'_>,
    all: &All<M, C>,
    cost: impl Fn(usize) -> u64,
    timer: &impl Timer,
    latest: Tick,
) -> Result<M::Grants, AllDenied> {
    let mut check = SleepCheck::new();
    let mut room = None;
    let mut has_returned = false;
    loop {
        let now = all.now();
        let denied = match take_beside(all, room.as_ref(), &cost, now) {
            Ok(mut grants) => {
                let entered = room.map(Room::keep);
                let undo = UndoOnPanic::new(all, &mut grants, now, Why::LostRace);
                if let Some((member, n)) = entered {
                    all.count(member, true, n);
                }
                // Wakes the next caller, whose waker may panic.
                drop(place);
                mem::forget(undo);
                return Ok(grants);
            }
            Err(denied) => denied,
        };
        let was_inside = room.is_some();
        // Leaves the member before it sleeps for another one.
        if let Some(room) = room.take() {
            let stays = inject_fault!(SleepsInside); // FAULT
            match stays {
                true => _ = room.keep(),
                false => drop(room),
            }
        }
        let Some(member) = denied.member() else {
            return Err(denied);
        };
        let n = all.order.sum(member, &cost);
        if denied.is_permanent() {
            return Err(denied);
        }
        let Some(wait) = denied.retry_after() else {
            // Of several members without room, all callers wait for the first in the common order.
            // Otherwise two callers could hold one member each, and hand them to each other. But
            // two callers would also hand the first member to each other for as long as another one
            // has no room. So a caller that leaves a member in vain twice waits for that other one.
            let is_second = was_inside && has_returned;
            has_returned = was_inside && !is_second;
            let full = all.order.limits().find(|member| {
                let n = all.order.sum(*member, &cost);
                let inside = |inside: &Concurrency| inside.check_enter(n).is_err();
                let is_full = all.members.with(*member, |it| it.concurrency().map(inside));
                is_full.flatten() == Some(true)
            });
            let member = full.filter(|_| !is_second).unwrap_or(member);
            let n = all.order.sum(member, &cost);
            room = Some(Room::entered(all, member, n, denied).await?);
            continue;
        };
        let due = now.saturating_add(wait);
        if due > latest {
            return Err(denied);
        }
        check.begins(now, wait);
        let slept = sleep(timer.sleep(wait)).await;
        let woke = all.now();
        if woke >= due && !wait.is_zero() {
            check = SleepCheck::new();
            continue;
        }
        if check.finds_mismatch(woke) {
            let denied = Denied::timer_mismatch(n);
            return Err(AllDenied::of(member, None, denied));
        }
        // The timer woke too early. If it did not sleep at all, yield, or it would keep other tasks
        // from running.
        if !slept {
            yield_now().await;
        }
    }
}

/// Takes from all members except the one that the caller is already inside.
fn take_beside<M: Members<C>, C: Clock>(
    all: &All<M, C>,
    room: Option<&Room<'_, M, C>>,
    cost: &impl Fn(usize) -> u64,
    now: Tick,
) -> Result<M::Grants, AllDenied> {
    let inside = room.map(|room| {
        let left = |member: &dyn Member<C>| member.concurrency().map(Concurrency::free);
        let left = all.members.with(room.member, left).flatten();
        (
            room.member,
            Inside {
                left: left.unwrap_or(0),
            },
        )
    });
    let members = &all.members;
    let beside = all.with_members(Beside { members, inside });
    beside.take_uncounted(cost, now, |_| all.now())
}

/// Sleeps until the clock shows this tick. If the timer wakes early, sleeps again. If the timer
/// does not follow the clock, gives up.
#[cfg(feature = "wait")]
pub(super) async fn sleep_until(timer: &impl Timer, clock: impl Fn() -> Tick, tick: Tick) {
    let mut check = SleepCheck::new();
    let mut now = clock();
    while now < tick {
        let left = tick.saturating_since(now);
        check.begins(now, left);
        let slept = sleep(timer.sleep(left)).await;
        now = clock();
        if now < tick && check.finds_mismatch(now) {
            return;
        }
        // As in `take_when_granted`.
        if !slept {
            yield_now().await;
        }
    }
}

/// Waits until the sleep ends. Returns false if it ended when it was first polled.
async fn sleep(sleep: impl Future<Output = ()>) -> bool {
    let (mut sleep, mut slept) = (pin!(sleep), false);
    poll_fn(|context| {
        let polled = sleep.as_mut().poll(context);
        slept |= polled.is_pending();
        polled
    })
    .await;
    slept
}

/// Lets other tasks run.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The caller's place in a member that is a [`Concurrency`](crate::Concurrency): in its line, or
/// inside. Dropping it leaves.
struct Room<'a, M: Members<C>, C> {
    all: &'a All<M, C>,
    member: usize,
    n: u64,
    ticket: Option<QueueTicket>,
    is_inside: bool,
}

/// Enters a member, or asks again whether it may.
struct Ask<'v> {
    n: u64,
    member: usize,
    ticket: &'v mut Option<QueueTicket>,
    waker: &'v Waker,
}

impl<C> Visitor<C> for Ask<'_> {
    type Output = Option<Poll<Result<(), AllDenied>>>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let asked = member.concurrency()?.ask(self.n, self.ticket, self.waker);
        Some(asked.map_err(|denied| AllDenied::of(self.member, name, denied)))
    }
}

impl<'a, M: Members<C>, C> Room<'a, M, C> {
    /// Waits for room in a member and takes it. A member that is not a
    /// [`Concurrency`](crate::Concurrency) does not say when it has room: returns its denial.
    async fn entered(
        all: &'a All<M, C>,
        member: usize,
        n: u64,
        denied: AllDenied,
    ) -> Result<Self, AllDenied> {
        let mut room = Self {
            all,
            member,
            n,
            ticket: None,
            is_inside: false,
        };
        poll_fn(|context| {
            let ask = Ask {
                n,
                member,
                ticket: &mut room.ticket,
                waker: context.waker(),
            };
            let asked = all.members.visit(member, ask).flatten();
            asked.unwrap_or(Poll::Ready(Err(denied)))
        })
        .await?;
        room.is_inside = true;
        Ok(room)
    }

    /// Keeps the room for a grant, which leaves when it is dropped. Returns the member and the
    /// caller's weight.
    fn keep(mut self) -> (usize, u64) {
        self.is_inside = false;
        (self.member, self.n)
    }
}

impl<M: Members<C>, C> Drop for Room<'_, M, C> {
    fn drop(&mut self) {
        let (n, ticket, is_inside) = (self.n, self.ticket.take(), self.is_inside);
        self.all.members.with(self.member, |member| {
            let concurrency = member.concurrency();
            drop(concurrency.map(|it| it.quit(n, ticket, is_inside)));
        });
    }
}

/// Members, one of which the caller is already inside.
struct Beside<'m, M> {
    members: &'m M,
    inside: Option<(usize, Inside)>,
}

impl<C, M: Members<C>> Members<C> for Beside<'_, M> {
    through_members!(self => self.members);

    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        match &self.inside {
            Some((member, inside)) if *member == index => Some(visitor.visit(inside, None)),
            _ => self.members.visit(index, visitor),
        }
    }
}

/// Replaces the member that the caller is already inside: it grants, and the caller stays inside
/// when the other grants are undone.
struct Inside {
    /// How much room the member has left.
    left: u64,
}

impl<C> Member<C> for Inside {
    fn place(&self) -> Place {
        Place::of(self)
    }

    fn check(&self, _n: u64, _now: Tick) -> Result<(), Denied> {
        Ok(())
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let granted = Granted::new(n, now).with_remaining(self.left, NonZeroU64::MIN);
        Ok(granted.into())
    }

    fn available_at(&self, _now: Tick) -> u64 {
        0
    }

    fn give_back(&self, _held: Held, _now: Tick) -> u64 {
        0
    }
}
