//! Verbs as values, so that a model can run any of them on any thread, and their answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level};
use tollgate::outcome::Charged;
use tollgate::store::{View, WordStore};
use tollgate::{Denied, Granted, Tick};

use crate::calls::remember;
use crate::traced_word::TracedWord;

/// The answer of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Permits were taken, or none by `take_up_to`.
    Granted(Granted),
    /// The permits were not available.
    Denied(Denied),
    /// Permits were taken into debt.
    Charged(Charged),
    /// This many permits came back.
    Returned(u64),
    /// This many permits are available.
    Count(u64),
    /// The permits are available after this time, or never.
    Wait(Option<Duration>),
    /// This much is counted.
    Level(Level),
    /// The answer to a yes-or-no question.
    Is(bool),
    /// The verb returns nothing, or had nothing to do.
    Done,
}

impl From<Result<Granted, Denied>> for Answer {
    fn from(outcome: Result<Granted, Denied>) -> Self {
        outcome.map_or_else(Self::Denied, Self::Granted)
    }
}

/// A short text, so that a model can list what it expects: `2 at 8, 0 left`, `denied for 3`.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(granted) => {
                let (at, left) = (granted.at().as_nanos(), granted.remaining());
                write!(f, "{} at {at}, {left} left", granted.n())?;
                match granted.delay().as_nanos() {
                    0 => Ok(()),
                    delay => write!(f, ", in {delay}"),
                }
            }
            Self::Denied(denied) => match denied.retry_after() {
                Some(wait) => write!(f, "denied for {}", wait.as_nanos()),
                None => f.write_str("never"),
            },
            Self::Charged(charged) => {
                let (at, debt) = (charged.at().as_nanos(), charged.debt());
                write!(f, "charged {} at {at}, owes {debt}", charged.n())
            }
            Self::Returned(n) => write!(f, "{n} returned"),
            Self::Count(n) => write!(f, "{n} available"),
            Self::Wait(Some(wait)) => write!(f, "{} to wait", wait.as_nanos()),
            Self::Wait(None) => f.write_str("never"),
            Self::Level(level) => write!(f, "level {}", level.as_f64()),
            Self::Is(is) => write!(f, "{is}"),
            Self::Done => f.write_str("done"),
        }
    }
}

/// What a verb may do to the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It takes available permits. It may raise the word, and writes nothing if it takes nothing.
    Takes,
    /// It takes permits unconditionally. It may raise the word.
    Charges,
    /// It may change the word in any way, once.
    GivesBack,
    /// It sets the word to 0, once.
    Resets,
    /// It writes nothing.
    Looks,
}

/// What a verb works on: one thread's view of the limiter, and its last grant.
pub struct Scope<'a, A> {
    /// The algorithm.
    pub algorithm: &'a A,
    /// The thread's access to the word.
    pub traced: &'a TracedWord,
    /// The tick at which the thread acts.
    pub now: Tick,
    /// This thread's last grant, or the last one of the preparations.
    pub granted: &'a mut Option<Granted>,
}

impl<A: Algorithm> Scope<'_, A> {
    /// Returns the crate's own methods on this word.
    pub fn at(&self) -> View<WordStore<'_, A, TracedWord>> {
        WordStore::new(self.algorithm, self.traced).at(self.now)
    }
}

type Act<A> = dyn Fn(&mut Scope<'_, A>) -> Answer + Send + Sync;

/// A verb with its arguments.
pub struct Verb<A> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) act: Arc<Act<A>>,
}

impl<A> Clone for Verb<A> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            kind: self.kind,
            act: Arc::clone(&self.act),
        }
    }
}

impl<A> Verb<A> {
    /// Makes a custom verb.
    pub fn new(
        name: impl Into<String>,
        kind: Kind,
        act: impl Fn(&mut Scope<'_, A>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            act: Arc::new(act),
        }
    }
}

impl<A: Algorithm> Verb<A> {
    /// `try_acquire_n`.
    pub fn acquire(n: u64) -> Self {
        Self::new(format!("acquire {n}"), Kind::Takes, move |scope| {
            remember(scope.granted, scope.at().try_acquire_n(n))
        })
    }

    /// `take_up_to`.
    pub fn take_up_to(n: u64) -> Self {
        Self::new(format!("take up to {n}"), Kind::Takes, move |scope| {
            remember(scope.granted, Ok(scope.at().take_up_to(n)))
        })
    }

    /// `available`.
    pub fn available() -> Self {
        Self::new("available", Kind::Looks, |scope| {
            Answer::Count(scope.at().available())
        })
    }

    /// `is_idle`.
    pub fn is_idle() -> Self {
        Self::new("is idle", Kind::Looks, |scope| {
            Answer::Is(scope.at().is_idle())
        })
    }

    /// `start`.
    pub fn start() -> Self {
        Self::new("start", Kind::Looks, |scope| {
            scope.at().start();
            Answer::Done
        })
    }

    /// `reset`.
    pub fn reset() -> Self {
        Self::new("reset", Kind::Resets, |scope| {
            scope.at().reset();
            Answer::Done
        })
    }
}

impl<A: Forecast> Verb<A> {
    /// `time_until`.
    pub fn time_until(n: u64) -> Self {
        Self::new(format!("time until {n}"), Kind::Looks, move |scope| {
            Answer::Wait(scope.at().time_until(n))
        })
    }
}

impl<A: Gauge> Verb<A> {
    /// `level`.
    pub fn level() -> Self {
        Self::new("level", Kind::Looks, |scope| {
            Answer::Level(scope.at().level())
        })
    }
}

impl<A: GiveBack> Verb<A> {
    /// `undo` of the thread's last grant, if it has one.
    pub fn undo() -> Self {
        Self::new("undo", Kind::GivesBack, |scope| {
            match scope.granted.take() {
                Some(granted) => Answer::Returned(scope.at().undo(granted)),
                None => Answer::Done,
            }
        })
    }

    /// `refund`.
    pub fn refund(n: u64) -> Self {
        Self::new(format!("refund {n}"), Kind::GivesBack, move |scope| {
            Answer::Returned(scope.at().refund(n))
        })
    }
}

impl<A: Debt> Verb<A> {
    /// `charge`.
    pub fn charge(n: u64) -> Self {
        Self::new(format!("charge {n}"), Kind::Charges, move |scope| {
            Answer::Charged(scope.at().charge(n))
        })
    }
}

/// Returns the answers to each actor, as text.
pub(crate) fn in_words(answers: &[Vec<Answer>]) -> Vec<String> {
    let words = answers.iter().map(|answers| {
        let answers = answers.iter().map(ToString::to_string);
        answers.collect::<Vec<_>>().join(", ")
    });
    words.collect()
}
