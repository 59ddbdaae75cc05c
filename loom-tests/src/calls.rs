//! Calls that most limiters have, as actions of a thread that remembers its last grant.

use std::sync::Arc;

use tollgate::traits::{DebtLimiter, GiveBackLimiter, ReserveLimiter};
use tollgate::{Denied, Granted, Tick, TryAcquire};

use crate::action::Action;
use crate::verb::Answer;

/// A call on a limiter. The memory is the thread's last grant.
pub type Call<G> = Action<G, Option<Granted>>;

type Memory = Option<Granted>;

const fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

/// Remembers a grant, and returns the answer.
pub fn remember(memory: &mut Memory, outcome: Result<Granted, Denied>) -> Answer {
    *memory = outcome.ok().or(*memory);
    outcome.into()
}

/// `try_acquire_n_at`.
pub fn take<G: TryAcquire>(n: u64, at: u64) -> Call<G> {
    let name = format!("take {n} at {at}");
    Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
        remember(memory, limiter.try_acquire_n_at(n, tick(at)))
    })
}

/// `take_up_to_at`.
pub fn take_up_to<G: TryAcquire>(n: u64, at: u64) -> Call<G> {
    let name = format!("take up to {n} at {at}");
    Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
        remember(memory, Ok(limiter.take_up_to_at(n, tick(at))))
    })
}

/// `available_at`.
pub fn available<G: TryAcquire>(at: u64) -> Call<G> {
    Action::new(format!("available at {at}"), move |limiter: &Arc<G>, _| {
        Answer::Count(limiter.available_at(tick(at)))
    })
}

/// `undo_at` of the thread's last grant, if it has one.
pub fn undo<G: GiveBackLimiter>(at: u64) -> Call<G> {
    let name = format!("undo at {at}");
    Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
        let undone = memory
            .take()
            .map(|granted| limiter.undo_at(granted, tick(at)));
        undone.map_or(Answer::Done, Answer::Returned)
    })
}

/// `refund_at`.
pub fn refund<G: GiveBackLimiter>(n: u64, at: u64) -> Call<G> {
    Action::new(format!("refund {n} at {at}"), move |limiter: &Arc<G>, _| {
        Answer::Returned(limiter.refund_at(n, tick(at)))
    })
}

/// `charge_at`.
pub fn charge<G: DebtLimiter>(n: u64, at: u64) -> Call<G> {
    Action::new(format!("charge {n} at {at}"), move |limiter: &Arc<G>, _| {
        Answer::Charged(limiter.charge_at(n, tick(at)))
    })
}

/// Takes permits that the caller uses at once: it keeps its earlier grant in memory.
pub fn take_and_use<G: TryAcquire>(n: u64, at: u64) -> Call<G> {
    Action::new(format!("take {n} at {at}"), move |limiter: &Arc<G>, _| {
        limiter.try_acquire_n_at(n, tick(at)).into()
    })
}

/// `reserve_until_at`.
pub fn reserve_until<G: ReserveLimiter>(n: u64, latest: u64, at: u64) -> Call<G> {
    let name = format!("reserve {n} until {latest} at {at}");
    Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
        remember(memory, limiter.reserve_until_at(n, tick(latest), tick(at)))
    })
}

/// The same with any due tick.
pub fn reserve<G: ReserveLimiter>(n: u64, at: u64) -> Call<G> {
    reserve_until(n, u64::MAX, at)
}

/// `cancel_at` of the thread's last grant, if it has one.
pub fn cancel<G: ReserveLimiter>(n: u64, at: u64) -> Call<G> {
    let name = format!("cancel {n} at {at}");
    Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
        let cancelled = memory
            .take()
            .map(|granted| limiter.cancel_at(granted, n, tick(at)));
        cancelled.map_or(Answer::Done, |(_, back)| Answer::Returned(back))
    })
}
