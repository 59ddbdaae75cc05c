//! Verbs as values, so that a model can run any of them on any thread.

use std::sync::Arc;

use tollgate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack};
use tollgate::store::{View, WordStore};
use tollgate::{Granted, Tick};

use crate::calls::remember;
use crate::traced_word::TracedWord;
use crate::verbs::{
    Answer, Kind, debt_verbs, forecast_verbs, gauge_verbs, give_back_verbs, take_verbs, word_verbs,
};

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

macro_rules! constructor {
    ($name:ident(granted) $method:ident $kind:ident $answer:expr) => {
        /// The verb with the thread's last grant, if it has one.
        pub fn $name() -> Self {
            Self::new(stringify!($name), Kind::$kind, |scope| {
                match scope.granted.take() {
                    Some(granted) => $answer(scope.at().$method(granted)),
                    None => Answer::Done,
                }
            })
        }
    };
    ($name:ident($($n:ident)?) $method:ident $kind:ident $answer:expr) => {
        #[doc = concat!("`", stringify!($method), "`.")]
        pub fn $name($($n: u64)?) -> Self {
            let name = [stringify!($name).to_owned() $(, $n.to_string())?].join(" ");
            Self::new(name, Kind::$kind, move |scope| {
                let answer = $answer(scope.at().$method($($n)?));
                remember(scope.granted, answer)
            })
        }
    };
}

/// Makes the constructors of a group's verbs.
macro_rules! constructors {
    ({} [$trait:ident $($limiter:ident)?] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident $(/ $at:ident)?:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        impl<A: $trait> Verb<A> {
            $(constructor!($name($($n)?) $method $kind $answer);)*
        }
    };
}
take_verbs!(constructors!);
word_verbs!(constructors!);
forecast_verbs!(constructors!);
gauge_verbs!(constructors!);
give_back_verbs!(constructors!);
debt_verbs!(constructors!);

impl<A: Algorithm> Verb<A> {
    /// `start`.
    pub fn start() -> Self {
        Self::new("start", Kind::Looks, |scope| {
            scope.at().start();
            Answer::Done
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
