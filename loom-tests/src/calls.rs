//! Calls that most limiters have, as actions of a thread that remembers its last grant.

use std::sync::Arc;

use tollgate::traits::{DebtLimiter, GiveBackLimiter, ReserveLimiter};
use tollgate::{Granted, Tick, TryAcquire};

use crate::action::Action;
use crate::verbs::{Answer, debt_verbs, give_back_verbs, take_verbs};

/// A call on a limiter. The memory is the thread's last grant.
pub type Call<G> = Action<G, Option<Granted>>;

type Memory = Option<Granted>;

const fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

/// Remembers the grant of an answer, and returns the answer.
pub fn remember(memory: &mut Memory, answer: impl Into<Answer>) -> Answer {
    let answer = answer.into();
    if let Answer::Granted(granted) = answer {
        *memory = Some(granted);
    }
    answer
}

macro_rules! call {
    ($limiter:ident $name:ident(granted) $at:ident $answer:expr) => {
        /// The verb with the thread's last grant, if it has one.
        pub fn $name<G: $limiter>(at: u64) -> Call<G> {
            let name = format!("{} at {at}", stringify!($name));
            Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
                match memory.take() {
                    Some(granted) => $answer(limiter.$at(granted, tick(at))),
                    None => Answer::Done,
                }
            })
        }
    };
    ($limiter:ident $name:ident($($n:ident)?) $at:ident $answer:expr) => {
        #[doc = concat!("`", stringify!($at), "`.")]
        pub fn $name<G: $limiter>($($n: u64,)? at: u64) -> Call<G> {
            let name = [stringify!($name).to_owned() $(, $n.to_string())?].join(" ");
            let name = format!("{name} at {at}");
            Action::new(name, move |limiter: &Arc<G>, memory: &mut Memory| {
                remember(memory, $answer(limiter.$at($($n,)? tick(at))))
            })
        }
    };
}

/// Makes the calls of a group's verbs.
macro_rules! calls {
    ({} [$trait:ident $limiter:ident] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident / $at:ident:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        $(call!($limiter $name($($n)?) $at $answer);)*
    };
}
take_verbs!(calls!);
give_back_verbs!(calls!);
debt_verbs!(calls!);

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
