//! An algorithm and the verbs it supports, for the suites.

use std::sync::Arc;

use tollgate::Tick;
use tollgate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack};
use tollgate_audit::Bound;

use crate::verb::Verb;
use crate::verbs::{
    debt_verbs, forecast_verbs, gauge_verbs, give_back_verbs, take_verbs, word_verbs,
};
use crate::words::{self, MakeWord};

/// An algorithm to model.
///
/// ```text
/// Subject::new(|| bucket).with_give_back().with_debt().with_forecast().with_gauge()
///     .promising(bound)
/// ```
pub struct Subject<A> {
    pub(crate) algorithm: Arc<dyn Fn() -> A + Send + Sync>,
    pub(crate) make_word: MakeWord,
    pub(crate) verbs: Vec<Verb<A>>,
    pub(crate) states: Vec<State<A>>,
    pub(crate) burst: u64,
    pub(crate) now: Tick,
    pub(crate) later: Tick,
    pub(crate) promise: Option<Bound>,
    pub(crate) exact: bool,
}

macro_rules! sample {
    ($name:ident(n), $burst:expr, $of:expr) => {
        $of($burst).map(Verb::$name).to_vec()
    };
    ($name:ident($($granted:ident)?), $burst:expr) => {
        vec![Verb::$name()]
    };
}

/// Makes the verbs of a group with the numbers that the list has for this burst.
macro_rules! samples {
    ({$burst:expr} [$trait:ident $($limiter:ident)?] $(
        $variant:ident $name:ident($($n:ident)?) = $method:ident $(/ $at:ident)?:
            $kind:ident -> $answer:expr $(, $of:expr)?;
    )*) => {
        [$(sample!($name($($n)?), $burst $(, $of)?)),*].concat()
    };
}

/// What is done to a fresh limiter before the actors begin.
pub(crate) struct State<A>(pub(crate) Vec<Verb<A>>);

impl<A: Algorithm + Send + Sync + 'static> Subject<A> {
    /// Makes a subject with the verbs that every algorithm has. Choose a small burst: at least 2,
    /// and not much more.
    pub fn new(algorithm: impl Fn() -> A + Send + Sync + 'static) -> Self {
        let now = Tick::from_nanos(20);
        let burst = algorithm().available(0, now);
        assert!(burst >= 2, "a subject needs at least 2 permits at once");
        Self {
            algorithm: Arc::new(algorithm),
            make_word: words::cell,
            verbs: [
                take_verbs!(samples! burst),
                word_verbs!(samples! burst),
                vec![Verb::start()],
            ]
            .concat(),
            states: vec![
                State(vec![]),
                State(vec![Verb::take(burst - 1)]),
                State(vec![Verb::take(burst)]),
            ],
            burst,
            now,
            later: Tick::from_nanos(21),
            promise: None,
            exact: true,
        }
    }

    /// Sets the two ticks of the threads; the second is later.
    #[must_use]
    pub fn at(mut self, now: u64, later: u64) -> Self {
        (self.now, self.later) = (Tick::from_nanos(now), Tick::from_nanos(later));
        self
    }

    /// Sets the bound that its grants must keep.
    #[must_use]
    pub fn promising(mut self, bound: Bound) -> Self {
        self.promise = Some(bound);
        self
    }

    /// Allows the algorithm to count a fraction of a permit against the caller, so that at a single
    /// tick the permits taken and left need not add up.
    #[must_use]
    pub fn rounding(mut self) -> Self {
        self.exact = false;
        self
    }

    /// Sets which kind of atomic word it uses.
    #[must_use]
    pub fn on(mut self, make_word: MakeWord) -> Self {
        self.make_word = make_word;
        self
    }

    /// Returns the earlier of the two ticks.
    pub const fn tick(&self) -> Tick {
        self.now
    }
}

impl<A: GiveBack + Send + Sync + 'static> Subject<A> {
    /// Adds the verbs that give back: `undo` and `refund`.
    #[must_use]
    pub fn with_give_back(mut self) -> Self {
        self.verbs.extend(give_back_verbs!(samples! self.burst));
        self
    }
}

impl<A: Debt + Send + Sync + 'static> Subject<A> {
    /// Adds the verb that goes into debt: `charge`.
    #[must_use]
    pub fn with_debt(mut self) -> Self {
        let charge = Verb::charge(self.burst + 1);
        self.states.push(State(vec![charge]));
        self.verbs.extend(debt_verbs!(samples! self.burst));
        self
    }
}

impl<A: Forecast + Send + Sync + 'static> Subject<A> {
    /// Adds the verb that predicts when permits are available: `time_until`.
    #[must_use]
    pub fn with_forecast(mut self) -> Self {
        self.verbs.extend(forecast_verbs!(samples! self.burst));
        self
    }
}

impl<A: Gauge + Send + Sync + 'static> Subject<A> {
    /// Adds the verb that returns how much is counted: `level`.
    #[must_use]
    pub fn with_gauge(mut self) -> Self {
        self.verbs.extend(gauge_verbs!(samples! self.burst));
        self
    }
}
