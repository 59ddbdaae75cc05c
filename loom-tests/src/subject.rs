//! An algorithm with the verbs it has: what the suites work on.

use std::sync::Arc;

use tollgate::Tick;
use tollgate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack};
use tollgate::audit::Bound;
use tollgate::store::UNSTARTED;

use crate::verb::Verb;
use crate::word_scenario::{Turn, WordScenario};
use crate::words::{self, MakeWord};

/// An algorithm to be modelled.
///
/// ```text
/// Subject::new(|| bucket).with_give_back().with_debt().with_forecast().with_gauge()
///     .promising(bound)
/// ```
pub struct Subject<A> {
    pub(crate) algorithm: Arc<dyn Fn() -> A + Send + Sync>,
    pub(crate) place: MakeWord,
    pub(crate) verbs: Vec<Verb<A>>,
    pub(crate) states: Vec<State<A>>,
    pub(crate) burst: u64,
    pub(crate) now: Tick,
    pub(crate) later: Tick,
    promise: Option<Bound>,
    exact: bool,
}

/// What is done to a fresh limiter before the actors begin.
pub(crate) struct State<A>(pub(crate) Vec<Verb<A>>);

impl<A: Algorithm + Send + Sync + 'static> Subject<A> {
    /// An algorithm with the verbs that every algorithm has. Choose small parameters: it must
    /// have 2 permits or more at once, and few.
    ///
    /// # Panics
    ///
    /// If it has fewer than 2.
    pub fn new(algorithm: impl Fn() -> A + Send + Sync + 'static) -> Self {
        let now = Tick::from_nanos(20);
        let burst = algorithm().available(0, now);
        assert!(burst >= 2, "a subject needs 2 permits or more at once");
        Self {
            algorithm: Arc::new(algorithm),
            place: words::cell,
            verbs: vec![
                Verb::acquire(0),
                Verb::acquire(1),
                Verb::acquire(burst),
                Verb::take_up_to(burst),
                Verb::available(),
                Verb::is_idle(),
                Verb::start(),
                Verb::reset(),
            ],
            states: vec![
                State(vec![]),
                State(vec![Verb::acquire(burst - 1)]),
                State(vec![Verb::acquire(burst)]),
            ],
            burst,
            now,
            later: Tick::from_nanos(21),
            promise: None,
            exact: true,
        }
    }

    /// Threads run at these ticks, the second later than the first.
    #[must_use]
    pub fn at(mut self, now: u64, later: u64) -> Self {
        (self.now, self.later) = (Tick::from_nanos(now), Tick::from_nanos(later));
        self
    }

    /// Its grants keep this bound.
    #[must_use]
    pub fn promising(mut self, bound: Bound) -> Self {
        self.promise = Some(bound);
        self
    }

    /// At a standing tick it may count a part of a permit against the caller, so that permits
    /// taken and left need not add up.
    #[must_use]
    pub fn rounding(mut self) -> Self {
        self.exact = false;
        self
    }

    /// Its words live in places of this kind.
    #[must_use]
    pub fn on(mut self, place: MakeWord) -> Self {
        self.place = place;
        self
    }

    /// The tick of its scenarios.
    pub const fn tick(&self) -> Tick {
        self.now
    }

    /// A verb more.
    #[must_use]
    pub fn with(mut self, verb: Verb<A>) -> Self {
        self.verbs.push(verb);
        self
    }

    /// A scenario from a fresh limiter.
    pub fn scenario(
        &self,
        before: &[(Verb<A>, Tick)],
        actors: &[&[(Verb<A>, Tick)]],
    ) -> WordScenario<A> {
        let turns = |turns: &[(Verb<A>, Tick)]| {
            let turns = turns.iter().map(|(verb, now)| Turn {
                verb: verb.clone(),
                now: *now,
            });
            turns.collect::<Vec<_>>()
        };
        WordScenario {
            algorithm: Arc::clone(&self.algorithm),
            place: self.place,
            first: 0,
            before: turns(before),
            actors: actors.iter().map(|actor| turns(actor)).collect(),
            promise: self.promise,
            exact: self.exact,
            also: None,
        }
    }

    /// The same with a limiter that was not started.
    pub fn unstarted_scene(&self, actors: &[&[(Verb<A>, Tick)]]) -> WordScenario<A> {
        WordScenario {
            first: UNSTARTED,
            ..self.scenario(&[], actors)
        }
    }
}

impl<A: GiveBack + Send + Sync + 'static> Subject<A> {
    /// It can give back: `undo` and `refund`.
    #[must_use]
    pub fn with_give_back(self) -> Self {
        self.with(Verb::undo()).with(Verb::refund(1))
    }
}

impl<A: Debt + Send + Sync + 'static> Subject<A> {
    /// It can go into debt: `charge`.
    #[must_use]
    pub fn with_debt(mut self) -> Self {
        let charge = Verb::charge(self.burst + 1);
        self.states.push(State(vec![charge.clone()]));
        self.with(charge)
    }
}

impl<A: Forecast + Send + Sync + 'static> Subject<A> {
    /// It knows when permits will be there: `time_until`.
    #[must_use]
    pub fn with_forecast(self) -> Self {
        self.with(Verb::time_until(1))
    }
}

impl<A: Gauge + Send + Sync + 'static> Subject<A> {
    /// It can say how much it has counted: `level`.
    #[must_use]
    pub fn with_gauge(self) -> Self {
        self.with(Verb::level())
    }
}
