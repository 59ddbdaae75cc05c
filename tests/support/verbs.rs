//! The list of verbs, from which the tests and the models of all crates make their requests. It has
//! the same groups as `src/traits/verbs.rs`.
//!
//! A verb is a variant of [`Verb`] and an entry of its group. An entry names the variant and its
//! function, the method of a view and that of a limiter at a tick, what the verb may do to a
//! word, what its result is, and with which numbers the models run it, given the burst.

#![allow(unused, missing_docs, unreachable_pub)] // Each crate uses a part.

use std::fmt;
use std::mem::discriminant;
use std::time::Duration;

use tollgate::algorithm::Level;
use tollgate::outcome::Charged;
use tollgate::{Denied, Granted, Tick};

/// A verb with its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Take(u64),
    TakeUpTo(u64),
    Check(u64),
    Available,
    IsIdle,
    Reset,
    TimeUntil(u64),
    Level,
    /// Of a grant that the caller has, if it has one.
    Undo,
    Refund(u64),
    Charge(u64),
}

/// The verbs of every limiter.
macro_rules! take_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [Algorithm TryAcquire]
            Take take(n) = try_acquire_n / try_acquire_n_at: Takes -> Answer::from,
                |burst| [0, 1, burst];
            TakeUpTo take_up_to(n) = take_up_to / take_up_to_at: Takes -> Answer::from,
                |burst| [burst];
            Check check_n(n) = check_n / check_n_at: Looks -> Answer::from,
                |_| [1];
            Available available() = available / available_at: Looks -> Answer::Count;
        }
    };
}

/// The verbs of every limiter whose state is one word.
macro_rules! word_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [Algorithm]
            IsIdle is_idle() = is_idle: Looks -> Answer::from;
            Reset reset() = reset: Resets -> Answer::from;
        }
    };
}

/// The verbs of limiters that know when permits will be available.
macro_rules! forecast_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [Forecast]
            TimeUntil time_until(n) = time_until: Looks -> Answer::from,
                |_| [1];
        }
    };
}

/// The verbs of limiters whose count can be read.
macro_rules! gauge_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [Gauge]
            Level level() = level: Looks -> Answer::from;
        }
    };
}

/// The verbs of limiters that take permits back.
macro_rules! give_back_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [GiveBack GiveBackLimiter]
            Undo undo(granted) = undo / undo_at: GivesBack -> Answer::Returned;
            Refund refund(n) = refund / refund_at: GivesBack -> Answer::Returned,
                |_| [1];
        }
    };
}

/// The verbs of limiters that can owe permits.
macro_rules! debt_verbs {
    ($then:ident! $($context:tt)*) => {
        $then! { {$($context)*} [Debt DebtLimiter]
            Charge charge(n) = charge / charge_at: Charges -> Answer::from,
                |burst| [burst + 1];
        }
    };
}

/// The answer of a verb.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(any(tollgate_loom, tollgate_shuttle), derive(Clone, Copy))]
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

/// Asks a limiter or a view for a verb of these groups, or of all. An undo
/// takes the caller's grant.
macro_rules! ask {
    ($limiter:expr, $verb:expr, $granted:expr) => {
        ask!($limiter, $verb, $granted;
            take_verbs word_verbs forecast_verbs gauge_verbs give_back_verbs debt_verbs)
    };
    ($limiter:expr, $verb:expr, $granted:expr; $($group:ident)+) => {{
        let (limiter, verb): (_, Verb) = (&$limiter, $verb);
        #[allow(unused_variables, reason = "some limiters take nothing back")]
        let granted: &mut Option<Granted> = $granted;
        let answer: Option<Answer> = None$(.or_else(|| $group!(answer! limiter verb granted)))+;
        answer.unwrap_or_else(|| unreachable!("no {verb:?}"))
    }};
}

/// Asks a limiter for a verb of these groups at a tick, by the traits of limiters.
macro_rules! ask_at {
    ($limiter:expr, $verb:expr, $granted:expr, $now:expr; $($group:ident)+) => {{
        let (limiter, verb, now): (_, Verb, Tick) = (&$limiter, $verb, $now);
        #[allow(unused_variables, reason = "some limiters take nothing back")]
        let granted: &mut Option<Granted> = $granted;
        let answer: Option<Answer> =
            None$(.or_else(|| $group!(answer_at! limiter verb granted now)))+;
        answer.unwrap_or_else(|| unreachable!("no {verb:?}"))
    }};
}

/// Returns the answer of a verb, if it is of this group.
macro_rules! answer {
    ({$limiter:ident $verb:ident $granted:ident} [$($trait:ident)+] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident $(/ $at:ident)?:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        None$(.or_else(|| answer_of!($limiter $verb $granted, $variant($($n)?) $method() $answer)))*
    };
}

/// The same at a tick.
macro_rules! answer_at {
    ({$limiter:ident $verb:ident $granted:ident $now:ident} [$($trait:ident)+] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident / $at:ident:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        None$(.or_else(|| answer_of!($limiter $verb $granted, $variant($($n)?) $at($now) $answer)))*
    };
}

/// Returns the answer of a verb, if it is this one.
macro_rules! answer_of {
    (
        $limiter:ident $verb:ident $granted:ident,
        $variant:ident(granted) $method:ident($($now:ident)?) $answer:expr
    ) => {
        ($verb == Verb::$variant).then(|| match $granted.take() {
            Some(granted) => $answer($limiter.$method(granted $(, $now)?)),
            None => Answer::Done,
        })
    };
    (
        $limiter:ident $verb:ident $granted:ident,
        $variant:ident() $method:ident($($now:ident)?) $answer:expr
    ) => {
        ($verb == Verb::$variant).then(|| $answer($limiter.$method($($now)?)))
    };
    (
        $limiter:ident $verb:ident $granted:ident,
        $variant:ident(n) $method:ident($($now:ident)?) $answer:expr
    ) => {
        match $verb {
            Verb::$variant(n) => Some($answer($limiter.$method(n $(, $now)?))),
            _ => None,
        }
    };
}

/// Lists the verbs of this group with a number.
macro_rules! every {
    ({$number:expr} [$($trait:ident)+] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident $(/ $at:ident)?:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        vec![$((every!(Verb::$variant($($n)?) $number), Kind::$kind)),*]
    };
    (Verb::$variant:ident(n) $number:expr) => {
        Verb::$variant($number)
    };
    (Verb::$variant:ident($($granted:ident)?) $number:expr) => {
        Verb::$variant
    };
}

pub(crate) use {
    answer, answer_at, answer_of, ask, ask_at, debt_verbs, every, forecast_verbs, gauge_verbs,
    give_back_verbs, take_verbs, word_verbs,
};

macro_rules! from {
    ($($type:ty: |$value:ident| $answer:expr;)*) => {$(
        impl From<$type> for Answer {
            fn from($value: $type) -> Self {
                $answer
            }
        }
    )*};
}
from! {
    Granted: |granted| Self::Granted(granted);
    Denied: |denied| Self::Denied(denied);
    Result<Granted, Denied>: |outcome| outcome.map_or_else(Self::Denied, Self::Granted);
    Result<(), Denied>: |outcome| outcome.map_or_else(Self::Denied, Self::from);
    Charged: |charged| Self::Charged(charged);
    Option<Duration>: |wait| Self::Wait(wait);
    Level: |level| Self::Level(level);
    bool: |is| Self::Is(is);
    (): |_done| Self::Done;
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

impl Answer {
    /// Returns the answer to a request that is granted or denied.
    #[track_caller]
    pub fn outcome(self) -> Result<Granted, Denied> {
        match self {
            Self::Granted(granted) => Ok(granted),
            Self::Denied(denied) => Err(denied),
            other => panic!("no outcome: {other:?}"),
        }
    }

    /// Returns how many permits are available, or came back.
    #[track_caller]
    pub fn number(self) -> u64 {
        match self {
            Self::Count(n) | Self::Returned(n) => n,
            other => panic!("no number: {other:?}"),
        }
    }
}

impl Verb {
    /// Returns every verb with this number, and what it may do to a word.
    pub fn every(n: u64) -> Vec<(Self, Kind)> {
        let every = [
            take_verbs!(every! n),
            word_verbs!(every! n),
            forecast_verbs!(every! n),
            gauge_verbs!(every! n),
            give_back_verbs!(every! n),
            debt_verbs!(every! n),
        ];
        every.concat()
    }

    /// Returns the verbs that take available permits.
    pub fn taking(n: u64) -> Vec<Self> {
        let takes = Self::every(n).into_iter();
        let takes = takes.filter(|(_, kind)| *kind == Kind::Takes);
        takes.map(|(verb, _)| verb).collect()
    }

    /// Returns what the verb may do to a word.
    pub fn kind(self) -> Kind {
        let every = Self::every(0);
        let found = every.iter().find(|(verb, _)| self.is_like(verb));
        found.expect("it is listed").1
    }

    /// Returns whether both are one verb, with any number.
    pub fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }
}
