//! Scenarios on a limiter with several words: the preparations, and then the actions of each
//! thread, which run concurrently. A [`WordScenario`](crate::WordScenario) has a single word.

mod read;

use std::fmt::{self, Debug, Display};
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::sync::model::{Conditions, Stop, stopping, under};
use tollgate_audit::Bound;

use crate::action::Action;
use crate::expected::Expected;
use crate::layout::{Layout, actor};
use crate::rules;
use crate::run::{PrintOnPanic, Run};
use crate::schedule;
use crate::verb::in_words;
use crate::verbs::Answer;

/// The answers in one execution of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// The answers to each actor's preparations.
    pub before: Vec<Vec<Answer>>,
    /// The answers to each actor.
    pub answers: Vec<Vec<Answer>>,
    /// The state at the end, as far as it can be queried.
    pub after: Vec<Answer>,
}

impl ScenarioOutcome {
    /// Returns all answers.
    pub fn all(&self) -> impl Iterator<Item = &Answer> {
        let actors = self.before.iter().chain(&self.answers).flatten();
        actors.chain(&self.after)
    }

    /// Checks that all grants keep this bound, including those of the preparations and of the
    /// queries at the end. (Does not apply if permits are returned.)
    pub fn check_bound(&self, bound: &Bound) {
        let all: Vec<_> = self.all().copied().collect();
        rules::check_bound(bound, &[all]);
    }

    /// Returns the answers to the actors and those at the end, as text.
    pub fn told(&self) -> AnswerTexts {
        let all = self.answers.iter().chain([&self.after]);
        all.map(|answers| answers.iter().map(ToString::to_string).collect())
            .collect()
    }

    /// Returns how many permits the actors were granted in total.
    pub fn granted(&self) -> u64 {
        let grants = rules::grants(self.answers.iter().flatten());
        grants.iter().map(|(_, n)| n).sum()
    }

    /// Returns the answers to each actor, as text.
    pub fn in_words(&self) -> Vec<String> {
        in_words(&self.answers)
    }
}

/// Answers as text: to each actor, and at the end.
pub type AnswerTexts = Vec<Vec<String>>;

type Make<G> = dyn Fn() -> G + Send + Sync;
type After<G, M> = dyn Fn(&Arc<G>, &mut [M]) -> Vec<Answer> + Send + Sync;
type Rule = dyn Fn(&ScenarioOutcome) + Send + Sync;

/// What threads share.
pub trait Limits: Send + Sync + 'static {}
impl<G: Send + Sync + 'static> Limits for G {}

/// What a thread remembers.
pub trait Memory: Default + Send + 'static {}
impl<M: Default + Send + 'static> Memory for M {}

/// A limiter, and the actions of each actor on it. `M` is an actor's memory.
pub struct Scenario<G, M> {
    make: Arc<Make<G>>,
    /// Makes the limiter on which the sequential orders run.
    pub(crate) correct: Arc<Make<G>>,
    /// What the main thread does first, with each actor's memory.
    before: Vec<Vec<Action<G, M>>>,
    pub(crate) actors: Vec<Vec<Action<G, M>>>,
    pub(crate) after: Arc<After<G, M>>,
    rules: Vec<Arc<Rule>>,
}

impl<G: Limits, M: Memory> Scenario<G, M> {
    /// Makes a scenario. `make` makes the limiter anew for each execution.
    pub fn at(make: impl Fn() -> G + Send + Sync + 'static) -> Self {
        let make: Arc<Make<G>> = Arc::new(make);
        Self {
            correct: Arc::clone(&make),
            make,
            before: Vec::new(),
            actors: Vec::new(),
            after: Arc::new(|_, _| Vec::new()),
            rules: Vec::new(),
        }
    }

    /// Sets how the limiter is made on which the sequential orders run, if the other is broken.
    #[must_use]
    pub(crate) fn read_on(mut self, correct: impl Fn() -> G + Send + Sync + 'static) -> Self {
        self.correct = Arc::new(correct);
        self
    }

    /// Adds an actor.
    #[must_use]
    pub fn actor(self, actions: &[Action<G, M>]) -> Self {
        self.actor_after(&[], actions)
    }

    /// Adds an actor, for which the actions `before` are done first.
    #[must_use]
    pub fn actor_after(mut self, before: &[Action<G, M>], actions: &[Action<G, M>]) -> Self {
        self.before.push(before.to_vec());
        self.actors.push(actions.to_vec());
        self
    }

    /// Sets the queries that are made when all actors have finished.
    #[must_use]
    pub fn after(
        mut self,
        after: impl Fn(&Arc<G>, &mut [M]) -> Vec<Answer> + Send + Sync + 'static,
    ) -> Self {
        self.after = Arc::new(after);
        self
    }

    /// Adds a rule that must hold in every execution.
    #[must_use]
    pub fn rule(mut self, rule: impl Fn(&ScenarioOutcome) + Send + Sync + 'static) -> Self {
        self.rules.push(Arc::new(rule));
        self
    }

    /// Explores the scenario: in every execution the rules hold and the actors get one of these
    /// sets of answers, such as `1 at 8, 0 left | denied for 4`, and each set occurs. The answers
    /// do not come from the limiter itself, so they show that it is right.
    pub fn explore_to(self, run: &mut Run, told: &[&str]) {
        let expected = Expected::told(told);
        explore(&Arc::new(self), run, &expected, ScenarioOutcome::in_words);
    }

    /// Explores the scenario: in every execution the rules hold and the answers, including those at
    /// the end, are among these, and each of `required` occurs.
    pub fn explore_among(
        self,
        run: &mut Run,
        required: Vec<AnswerTexts>,
        others: Vec<AnswerTexts>,
    ) {
        let expected = Expected::some(required, others);
        explore(&Arc::new(self), run, &expected, ScenarioOutcome::told);
    }

    /// Stops one actor forever, before each of its operations in turn: the others finish, the rules
    /// hold, and the answers are in `allowed[n]`, where `n` is the number of actions that the
    /// stopped actor finished.
    pub fn explore_stopping_among(self, run: &mut Run, who: usize, allowed: Vec<Vec<AnswerTexts>>) {
        let allowed = allowed.into_iter().map(|told| Expected::some(vec![], told));
        let allowed: Vec<_> = allowed.collect();
        stop_everywhere(&Arc::new(self), run, who, move |played| {
            allowed[played.answers[who].len()].note(&played.told());
        });
    }

    /// Explores the scenario: the rules hold in every execution.
    pub fn explore_rules(self, run: &mut Run) {
        let expected = Expected::at_least(vec![true]);
        explore(&Arc::new(self), run, &expected, |_| true);
    }

    /// Stops one actor forever, before each of its operations in turn: the others finish, and the
    /// rules hold.
    pub fn explore_stopping(self, run: &mut Run, who: usize) {
        stop_everywhere(&Arc::new(self), run, who, |_| {});
    }

    pub(crate) fn begin(&self, make: &Make<G>) -> (Arc<G>, Vec<Vec<Answer>>, Vec<M>) {
        let limiter = Arc::new(make());
        let mut memories = Vec::new();
        let mut answers = Vec::new();
        for before in &self.before {
            let mut memory = M::default();
            answers.push(all_of(before, &limiter, &mut memory));
            memories.push(memory);
        }
        (limiter, answers, memories)
    }

    /// Runs one execution under loom. `stops` says which actor stops, and after how many
    /// operations. Also returns whether all actors finished.
    fn perform(&self, layout: Layout, stops: Option<(usize, u64)>) -> (ScenarioOutcome, bool) {
        let (limiter, before, memories) = self.begin(&*self.make);
        let actors = self.actors.iter().zip(memories).enumerate();
        let actors = actors.map(|(who, (actions, mut memory))| {
            let (actions, limiter) = (actions.clone(), Arc::clone(&limiter));
            let stops = stops.filter(|stops| stops.0 == who);
            actor(move || {
                let mut answers = Vec::new();
                let mut act = || {
                    for action in &actions {
                        answers.push(action.act(&limiter, &mut memory));
                    }
                };
                let ended = match stops {
                    Some((_, operations)) => stopping(Stop::Operations(operations), act).is_some(),
                    None => {
                        act();
                        true
                    }
                };
                (answers, memory, ended)
            })
        });
        let acted = layout.act(actors.collect());
        let ended = acted.iter().all(|(_, _, ended)| *ended);
        let (answers, mut memories): (Vec<_>, Vec<_>) = acted
            .into_iter()
            .map(|(answers, memory, _)| (answers, memory))
            .unzip();
        let played = ScenarioOutcome {
            before,
            answers,
            after: (self.after)(&limiter, &mut memories),
        };
        for rule in &self.rules {
            rule(&played);
        }
        (played, ended)
    }

    fn lengths(&self) -> Vec<usize> {
        self.actors.iter().map(Vec::len).collect()
    }

    /// Returns the orders of the actions within the run's bound on preemptions. Loom visits these,
    /// so they must be reached.
    fn in_reach(&self, run: &Run) -> Vec<schedule::Schedule> {
        schedule::within(schedule::in_order(&self.lengths()), run.bound())
    }
}

impl<G: Limits, M: Memory + Clone> Scenario<G, M> {
    /// Explores the scenario: in every execution the rules hold and the outcome is that of some
    /// sequential order of the same actions. The outcome of each order within the bound on
    /// preemptions is reached.
    pub fn explore(self, run: &mut Run) {
        let orders = schedule::in_order(&self.lengths());
        self.explore_orders(run, |required, scenario| {
            Expected::some(required, outcomes(scenario, orders))
        });
    }

    /// Like [`explore`](Self::explore), but actors may also see actions that another one has begun
    /// and not finished.
    pub fn explore_begun(self, run: &mut Run) {
        let begun = schedule::with_begun(&schedule::in_order(&self.lengths()));
        self.explore_orders(run, |required, scenario| {
            Expected::some(required, outcomes(scenario, begun))
        });
    }

    /// Explores the scenario: the rules hold in every execution, and the outcome of each sequential
    /// order within the bound on preemptions is reached. Other outcomes are allowed.
    pub fn explore_openly(self, run: &mut Run) {
        self.explore_orders(run, |required, _| Expected::at_least(required));
    }

    fn explore_orders(
        self,
        run: &mut Run,
        expect: impl FnOnce(Vec<ScenarioOutcome>, &Arc<Self>) -> Expected<ScenarioOutcome>,
    ) {
        let scenario = Arc::new(self);
        let required = outcomes(&scenario, scenario.in_reach(run));
        let expected = expect(required, &scenario);
        explore(&scenario, run, &expected, ScenarioOutcome::clone);
    }

    /// Explores the scenario: in every execution the rules hold and the outcome is that of some
    /// order. No order has to be reached. This is for broken limiters, where each layout
    /// must find the defect by itself, so loads are counted from the start.
    pub fn explore_any(self, run: &mut Run) {
        let scenario = Arc::new(self);
        let _said = PrintOnPanic(scenario.to_string());
        let others = outcomes(&scenario, schedule::in_order(&scenario.lengths()));
        let expected = Expected::some(vec![], others);
        let conditions = Conditions {
            counts_loads: true,
            ..Conditions::now()
        };
        under(conditions, || {
            run.explore(move |layout| expected.note(&scenario.perform(layout, None).0));
        });
    }

    /// Stops one actor forever, before each of its operations in turn. The others finish, and their
    /// answers are those of some order in which the stopped actor did its next action, or did not,
    /// or began it.
    pub fn explore_stopping_in_order(self, run: &mut Run, who: usize) {
        self.explore_stopping_by(run, who, |lengths, done| {
            schedule::with_begun(&schedule::stopped(lengths, who, done))
        });
    }

    /// The same, but the others never see an action that was only begun.
    pub fn explore_stopping_or_done(self, run: &mut Run, who: usize) {
        self.explore_stopping_by(run, who, |lengths, done| {
            let orders = [done, done + 1].map(|done| {
                let mut lengths = lengths.to_vec();
                lengths[who] = done.min(lengths[who]);
                schedule::in_order(&lengths)
            });
            orders.concat()
        });
    }

    /// Stops one actor. `schedules` returns the orders in which it finished `done` actions.
    fn explore_stopping_by(
        self,
        run: &mut Run,
        who: usize,
        schedules: impl Fn(&[usize], usize) -> Vec<schedule::Schedule>,
    ) {
        let scenario = Arc::new(self);
        let lengths = scenario.lengths();
        let allowed = (0..=lengths[who]).map(|done| {
            let mut outcomes = outcomes(&scenario, schedules(&lengths, done));
            for outcome in &mut outcomes {
                // Remove the answer that the last action would have given.
                outcome.answers[who].truncate(done);
            }
            Expected::some(vec![], outcomes)
        });
        let allowed: Vec<_> = allowed.collect();
        stop_everywhere(&scenario, run, who, move |played| {
            allowed[played.answers[who].len()].note(played);
        });
    }
}

/// Explores a scenario, and checks `tell` of each outcome against `expected`.
fn explore<T: Clone + PartialEq + Debug + Send + Sync + 'static>(
    scenario: &Arc<Scenario<impl Limits, impl Memory>>,
    run: &mut Run,
    expected: &Expected<T>,
    tell: impl Fn(&ScenarioOutcome) -> T + Copy + Send + Sync + 'static,
) {
    let _said = PrintOnPanic(scenario.to_string());
    for counts_loads in [false, true] {
        // Count loads only if loom missed an outcome without that.
        if counts_loads && expected.missed().is_empty() {
            break;
        }
        let (scenario, noted) = (Arc::clone(scenario), expected.clone());
        let conditions = Conditions {
            counts_loads,
            ..Conditions::now()
        };
        under(conditions, || {
            run.explore(move |layout| noted.note(&tell(&scenario.perform(layout, None).0)));
        });
    }
    expected.assert_reached();
}

/// Stops one actor before each of its operations in turn.
fn stop_everywhere(
    scenario: &Arc<Scenario<impl Limits, impl Memory>>,
    run: &mut Run,
    who: usize,
    judge: impl Fn(&ScenarioOutcome) + Send + Sync + 'static,
) {
    let _said = PrintOnPanic(format!("actor {who} stops\n{scenario}"));
    let judge = Arc::new(judge);
    for operations in 0.. {
        let stopped = Arc::new(Mutex::new(false));
        let (stops, scenario, judge) = (
            Arc::clone(&stopped),
            Arc::clone(scenario),
            Arc::clone(&judge),
        );
        run.explore(move |layout| {
            let (played, ended) = scenario.perform(layout, Some((who, operations)));
            *stops.lock().unwrap_or_else(PoisonError::into_inner) |= !ended;
            judge(&played);
        });
        if !*stopped.lock().unwrap_or_else(PoisonError::into_inner) {
            assert!(operations > 1, "the actor never stopped");
            break;
        }
    }
}

fn all_of<G, M>(actions: &[Action<G, M>], limiter: &Arc<G>, memory: &mut M) -> Vec<Answer> {
    let answers = actions.iter().map(|action| action.act(limiter, memory));
    answers.collect()
}

fn outcomes(
    scenario: &Arc<Scenario<impl Limits, impl Memory + Clone>>,
    schedules: Vec<schedule::Schedule>,
) -> Vec<ScenarioOutcome> {
    let outcomes = read::read(scenario, schedules).into_iter();
    outcomes.flatten().collect()
}

impl<G, M> Display for Scenario<G, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (before, actions) in self.before.iter().zip(&self.actors) {
            let line = |actions: &[Action<G, M>]| {
                let actions = actions.iter().map(ToString::to_string);
                actions.collect::<Vec<_>>().join(", ")
            };
            writeln!(f, "  after {}: {}", line(before), line(actions))?;
        }
        Ok(())
    }
}
