//! What is done with a word by the algorithm that is in force there, which the doer doesn't know beforehand, and
//! the verbs that are made of such deeds.

use core::convert::Infallible;

use crate::algorithm::{Algorithm, Debt, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

/// A word, and what is to be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) word: u64,
    /// The tick at which it is done.
    pub(crate) now: Tick,
    /// By which it is known, in a grant, what granted it.
    pub(crate) part: u32,
    /// Nothing can be given back.
    pub(crate) is_banned: bool,
}

impl Held {
    #[inline(always)]
    pub(crate) const fn new(word: u64, now: Tick, part: u32) -> Self {
        Self {
            word,
            now,
            part,
            is_banned: false,
        }
    }

    /// Whether something of this grant can be given back: it is of this word, as far as that can be known.
    #[inline]
    pub(crate) fn has(&self, granted: &Granted) -> bool {
        granted.part() == self.part && !self.is_banned
    }
}

/// What a deed says of a word: the next word and the answer, or why not.
pub(crate) type Turn<A, D> = Result<(u64, <D as Deed<A>>::Answer), <D as Deed<A>>::Refusal>;

/// What is to be done with a word. As [`cell::Step`](crate::cell) a trait and not a closure, so that it is inlined
/// by force.
pub(crate) trait Deed<A>: Sized {
    type Answer;
    type Refusal;

    /// Whether what it changes is a grant, after which a ban is over.
    #[allow(dead_code, reason = "not all that keep words know bans")]
    const GRANTS: bool = false;

    /// Whether it bans, by the algorithm that is there.
    #[allow(dead_code, reason = "not all that keep words know bans")]
    const BANS: bool = false;

    /// Pure: it may be run again, also by another algorithm.
    fn run(&mut self, algorithm: &A, held: Held) -> Turn<A, Self>;

    /// The same, if that is short; else it is run out of line.
    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, held: Held) -> Option<Turn<A, Self>> {
        Some(self.run(algorithm, held))
    }

    /// Whether it wants nothing written.
    #[inline(always)]
    fn leaves(&self, word: u64, next: u64) -> bool {
        word == next
    }

    /// What is said, for this reason, instead of doing it; `None` if that can't be said.
    #[inline]
    #[allow(dead_code, reason = "not all that keep words run out of room")]
    fn refused(
        &self,
        why: fn(u64) -> Denied,
        now: Tick,
    ) -> Option<Result<Self::Answer, Self::Refusal>> {
        let _ = (why, now);
        None
    }
}

/// The deed of a decision.
pub(crate) struct Acquire {
    pub(crate) n: u64,
}

impl<A: Algorithm> Deed<A> for Acquire {
    type Answer = Granted;
    type Refusal = Denied;
    const GRANTS: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, Granted), Denied> {
        let (next, granted) = algorithm.step(held.word, held.now, self.n)?;
        Ok((next, granted.of_part(held.part)))
    }

    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, held: Held) -> Option<Result<(u64, Granted), Denied>> {
        let outcome = algorithm.short_step(held.word, held.now, self.n)?;
        Some(outcome.map(|(next, granted)| (next, granted.of_part(held.part))))
    }

    /// Known before it is run, and for one permit when it is compiled.
    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn refused(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<Result<Granted, Denied>> {
        Some(Err(why(self.n)))
    }
}

/// The deed of a reservation.
pub(crate) struct Ahead {
    pub(crate) n: u64,
    pub(crate) latest: Tick,
}

impl<A: Reserve> Deed<A> for Ahead {
    type Answer = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, Granted), Denied> {
        // Nobody waits for the end of a ban: it would end later for each who gave up.
        let latest = match held.is_banned {
            true => held.now,
            false => self.latest,
        };
        let (next, granted) = algorithm.reserve(held.word, held.now, self.n, latest)?;
        Ok((next, granted.of_part(held.part)))
    }

    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, held: Held) -> Option<Result<(u64, Granted), Denied>> {
        let (next, granted) = algorithm.reserve_now(held.word, held.now, self.n)?;
        Some(Ok((next, granted.of_part(held.part))))
    }

    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn refused(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<Result<Granted, Denied>> {
        Some(Err(why(self.n)))
    }
}

/// The deed of who takes what there is.
pub(crate) struct TakeUpTo {
    pub(crate) n: u64,
}

impl<A: Algorithm> Deed<A> for TakeUpTo {
    type Answer = Granted;
    type Refusal = Infallible;
    const GRANTS: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, Granted), Infallible> {
        let (next, granted) = algorithm.take_up_to(held.word, held.now, self.n);
        Ok((next, granted.of_part(held.part)))
    }

    #[inline]
    fn refused(&self, _why: fn(u64) -> Denied, now: Tick) -> Option<Result<Granted, Infallible>> {
        Some(Ok(Granted::new(0, now)))
    }
}

/// The deed of who must take.
pub(crate) struct Charge {
    pub(crate) n: u64,
}

impl<A: Debt> Deed<A> for Charge {
    type Answer = Charged;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, Charged), Infallible> {
        Ok(algorithm.charge(held.word, held.now, self.n))
    }

    #[inline]
    fn refused(&self, _why: fn(u64) -> Denied, now: Tick) -> Option<Result<Charged, Infallible>> {
        Some(Ok(Charged::new(0, now)))
    }
}

/// A deed that can't refuse.
pub(crate) struct Change<F>(pub(crate) F);

impl<A, T, F: FnMut(&A, Held) -> (u64, T)> Deed<A> for Change<F> {
    type Answer = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, T), Infallible> {
        Ok((self.0)(algorithm, held))
    }
}

/// Implements the verbs of a view that has `now`, and `update` and `try_once`, which do a deed at that tick.
/// Of a view of more than an algorithm and a clock, what else there is to know of the algorithm, the other
/// parameters and the view itself are given.
macro_rules! verbs_of_deeds {
    ($view:ident $(, $bound:ident)?) => {
        verbs_of_deeds!([$(+ $bound)?] [C] $view<'_, A, C>);
    };
    ([$($bound:tt)*] [$($parameters:tt)*] $view:ty) => {
        impl<A: $crate::algorithm::Algorithm $($bound)*, $($parameters)*> $view {
            /// [`Limiter::try_acquire`](crate::Limiter::try_acquire) at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`] if the permit was not there.
            #[inline(always)]
            pub fn try_acquire(&self) -> Result<Granted, Denied> {
                self.try_acquire_n(1)
            }

            /// [`Limiter::try_acquire_n`](crate::Limiter::try_acquire_n) at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`] if the permits were not all there.
            #[inline(always)]
            pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
                self.update($crate::deed::Acquire { n })
            }

            /// [`Limiter::take_up_to`](crate::Limiter::take_up_to) at this tick.
            #[inline]
            #[must_use = "it says how many were there"]
            pub fn take_up_to(&self, n: u64) -> Granted {
                let Ok(granted) = self.update($crate::deed::TakeUpTo { n });
                granted
            }

            /// [`Limiter::available`](crate::Limiter::available) at this tick.
            #[inline]
            pub fn available(&self) -> u64 {
                self.look(|algorithm, held| algorithm.available(held.word, held.now))
            }

            /// Whether the limiter can no longer be told from a fresh one at this tick.
            #[inline]
            pub fn is_idle(&self) -> bool {
                self.look(|algorithm, held| algorithm.is_idle(held.word, held.now))
            }

            /// Does what can't be refused.
            #[inline(always)]
            fn change<T>(&self, change: impl FnMut(&A, $crate::deed::Held) -> (u64, T)) -> T {
                let Ok(answer) = self.update($crate::deed::Change(change));
                answer
            }

            /// Asks a word and its algorithm, of one moment.
            #[inline(always)]
            fn look<T>(&self, ask: impl Fn(&A, $crate::deed::Held) -> T) -> T {
                self.change(move |algorithm, held| (held.word, ask(algorithm, held)))
            }
        }

        impl<A: $crate::algorithm::Forecast $($bound)*, $($parameters)*> $view {
            /// [`Limiter::time_until`](crate::Limiter::time_until) at this tick.
            #[inline]
            pub fn time_until(&self, n: u64) -> Option<core::time::Duration> {
                let due = self.look(move |algorithm, held| algorithm.due(held.word, held.now, n))?;
                Some(due.saturating_since(self.now))
            }
        }

        impl<A: $crate::algorithm::Gauge $($bound)*, $($parameters)*> $view {
            /// [`Limiter::level`](crate::Limiter::level) at this tick.
            #[inline]
            pub fn level(&self) -> $crate::algorithm::Level {
                self.look(|algorithm, held| algorithm.level(held.word, held.now))
            }
        }

        impl<A: $crate::algorithm::GiveBack $($bound)*, $($parameters)*> $view {
            /// [`Limiter::undo`](crate::Limiter::undo) at this tick.
            #[inline]
            pub fn undo(&self, granted: Granted) -> u64 {
                self.change(move |algorithm, held| {
                    // The mark of another word's grant says nothing about this one.
                    if !held.has(&granted) && !$crate::primitive::mistake!(UndoesOldMarks) {
                        return (held.word, 0);
                    }
                    algorithm.undo(held.word, held.now, &granted)
                })
            }

            /// [`Limiter::refund`](crate::Limiter::refund) at this tick.
            #[inline]
            pub fn refund(&self, n: u64) -> u64 {
                self.change(move |algorithm, held| match held.is_banned {
                    true => (held.word, 0),
                    false => algorithm.refund(held.word, held.now, n),
                })
            }
        }

        impl<A: $crate::algorithm::Debt $($bound)*, $($parameters)*> $view {
            /// [`Limiter::charge`](crate::Limiter::charge) at this tick.
            #[inline]
            pub fn charge(&self, n: u64) -> $crate::outcome::Charged {
                let Ok(charged) = self.update($crate::deed::Charge { n });
                charged
            }
        }

        impl<A: $crate::algorithm::Reserve $($bound)*, $($parameters)*> $view {
            /// Takes `n` permits, if they are there, or will be at `latest` or sooner: [`Granted::due`] says
            /// when.
            ///
            /// # Errors
            ///
            /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
            #[inline]
            pub fn reserve_until(&self, n: u64, latest: Tick) -> Result<Granted, Denied> {
                self.update($crate::deed::Ahead { n, latest })
            }

            /// Takes `n` permits that are there, in one turn: `None` may mean anything but that they were taken.
            #[inline(always)]
            pub(crate) fn reserve_once(&self, n: u64) -> Option<Granted> {
                let latest = self.now;
                self.try_once($crate::deed::Ahead { n, latest })
            }

            /// How many permits were taken that are not due yet, a started one counted whole.
            #[inline]
            pub fn waiting(&self) -> u64 {
                self.look(|algorithm, held| algorithm.waiting(held.word, held.now))
            }

            /// Gives back as much of the last `n` permits of a reservation as can be: what is kept of it, which
            /// may be due sooner now, and how many came back. Of one that another quota granted nothing does.
            #[inline]
            pub fn cancel(&self, granted: Granted, n: u64) -> (Granted, u64) {
                self.change(move |algorithm, held| {
                    if !held.has(&granted) {
                        let kept = granted.n().saturating_sub(n);
                        return (held.word, (granted.with_n(kept), 0));
                    }
                    let (next, kept, back) = algorithm.cancel(held.word, held.now, &granted, n);
                    (next, (kept, back))
                })
            }
        }
    };
}
pub(crate) use verbs_of_deeds;
