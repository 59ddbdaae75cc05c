//! Scenarios on a single word: an algorithm, the preparations, and then the turns of each actor,
//! which run concurrently.

use std::sync::Arc;

use tollgate::algorithm::Algorithm;
use tollgate::store::UNSTARTED;
use tollgate::store::WordStore;
use tollgate::sync::model::AtomicU64;
use tollgate::{Granted, Tick};
use tollgate_audit::Bound;

use crate::expected::Expected;
use crate::layout::{Layout, actor};
use crate::orders::orders;
use crate::rules;
use crate::run::{PrintOnPanic, Run};
use crate::traced_word::TracedWord;
use crate::verb::{Scope, Verb, in_words};
use crate::verbs::{Answer, Kind};
use crate::words::{self, MakeWord};

/// A verb at a tick.
pub struct Turn<A> {
    /// The verb.
    pub verb: Verb<A>,
    /// The tick at which it runs.
    pub now: Tick,
}

/// The outcome of one execution of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What each actor's verbs answered.
    pub answers: Vec<Vec<Answer>>,
    /// The word's final value.
    pub word: u64,
}

impl Outcome {
    /// Returns how many permits were granted in total.
    pub fn granted(&self) -> u64 {
        let grants = rules::grants(self.answers.iter().flatten());
        grants.iter().map(|(_, n)| n).sum()
    }

    /// Returns the answers to each actor, as text.
    pub fn in_words(&self) -> Vec<String> {
        in_words(&self.answers)
    }
}

type Judge = Arc<dyn Fn(&Outcome) + Send + Sync>;

/// A scenario for a model to explore.
pub struct WordScenario<A> {
    /// Makes the algorithm anew for each execution.
    pub algorithm: Arc<dyn Fn() -> A + Send + Sync>,
    /// Makes the atomic word.
    pub make_word: MakeWord,
    /// The first value of the word.
    pub first: u64,
    /// What is done before the actors begin. Each actor may undo the last of these grants.
    pub before: Vec<Turn<A>>,
    /// What each actor does.
    pub actors: Vec<Vec<Turn<A>>>,
    /// The bound that grants must keep.
    pub promise: Option<Bound>,
    /// Whether permits add up exactly at a single tick.
    pub exact: bool,
    /// A further check of each outcome.
    pub also: Option<Judge>,
}

impl<A: Algorithm + Send + Sync + 'static> WordScenario<A> {
    /// Adds a check of every outcome.
    #[must_use]
    pub fn judged(mut self, judge: impl Fn(&Outcome) + Send + Sync + 'static) -> Self {
        let also = self.also.take();
        self.also = Some(Arc::new(move |outcome| {
            if let Some(also) = &also {
                also(outcome);
            }
            judge(outcome);
        }));
        self
    }

    /// Explores the scenario: the actors get one of these sets of answers in every execution, and
    /// each set occurs. Unlike the orders of [`explore`](Self::explore), the answers do not come
    /// from the algorithm itself, so they show that it is right.
    pub fn explore_to(self, run: &mut Run, told: &[&str]) {
        let expected = Expected::told(told);
        let noted = expected.clone();
        self.judged(move |outcome| noted.note(&outcome.in_words()))
            .explore(run);
        expected.assert_reached();
    }

    /// Explores the scenario: in every execution the outcome is that of some sequential order of
    /// the same verbs, and the outcome of each such order occurs.
    pub fn explore(self, run: &mut Run) {
        let told = PrintOnPanic(self.to_string());
        let expected = self.expected();
        let scenario = Arc::new(self);
        for counts_loads in [false, true] {
            // Count loads only if loom missed an outcome without that.
            if counts_loads && expected.missed().is_empty() {
                break;
            }
            let (scenario, noted) = (Arc::clone(&scenario), expected.clone());
            run.explore(move |layout| noted.note(&scenario.execute(layout, counts_loads)));
        }
        expected.assert_reached();
        drop(told);
    }

    /// Runs one execution under loom.
    fn execute(&self, layout: Layout, counts_loads: bool) -> Outcome {
        let algorithm = Arc::new((self.algorithm)());
        let shared = (self.make_word)(self.first);
        let load_counter = counts_loads.then(|| Arc::new(AtomicU64::new(0)));
        let mut granted = None;
        let before = perform(
            &*algorithm,
            &TracedWord::on(&shared),
            &self.before,
            &mut granted,
        );
        let actors = self.actors.iter().map(|turns| {
            let (algorithm, shared) = (Arc::clone(&algorithm), Arc::clone(&shared));
            let (turns, load_counter) = (turns.clone(), load_counter.clone());
            actor(move || {
                let (traced, mut granted) = (
                    TracedWord::on(&shared).counting_loads(&load_counter),
                    granted,
                );
                let answers = perform(&*algorithm, &traced, &turns, &mut granted);
                (answers, traced)
            })
        });
        let (answers, traced_words): (Vec<_>, Vec<_>) =
            layout.act(actors.collect()).into_iter().unzip();
        let outcome = Outcome {
            answers,
            word: shared.load(),
        };
        rules::check_losses(&traced_words);
        self.check(&before, &outcome);
        outcome
    }

    /// Checks the rules that apply to this outcome.
    fn check(&self, before: &[Answer], outcome: &Outcome) {
        let mut all = vec![before.to_vec()];
        all.extend(outcome.answers.iter().cloned());
        if let (Some(promise), true) = (&self.promise, self.only_takes()) {
            rules::check_bound(promise, &all);
        }
        if let (Some(now), true) = (self.standing_tick(), self.exact && self.balances()) {
            let available = |word, turns: &[Turn<A>]| {
                let (algorithm, traced) = ((self.algorithm)(), TracedWord::on(&words::alone(word)));
                perform(&algorithm, &traced, turns, &mut None);
                WordStore::new(&algorithm, &traced).at(now).available()
            };
            let had = available(self.first, &self.before);
            let has = available(outcome.word, &[]);
            rules::check_balance(had, &outcome.answers, has);
        }
        if let Some(judge) = &self.also {
            judge(outcome);
        }
    }

    fn turns(&self) -> impl Iterator<Item = &Turn<A>> {
        self.before.iter().chain(self.actors.iter().flatten())
    }

    /// Returns the tick of all turns, if they have the same.
    fn standing_tick(&self) -> Option<Tick> {
        let now = self.turns().next()?.now;
        self.turns().all(|turn| turn.now == now).then_some(now)
    }

    fn only_takes(&self) -> bool {
        self.turns()
            .all(|turn| matches!(turn.verb.kind, Kind::Takes | Kind::Looks))
    }

    fn balances(&self) -> bool {
        self.turns()
            .all(|turn| !matches!(turn.verb.kind, Kind::Charges | Kind::Resets))
    }

    /// Returns the outcomes of the verbs in all sequential orders. If the limiter must be started
    /// first, starting it and the verb itself are two steps, between which other actors may act.
    fn expected(&self) -> Expected<Outcome> {
        let lengths: Vec<usize> = self.actors.iter().map(Vec::len).collect();
        let in_order = |order: &Vec<usize>| self.in_order(order, 1);
        let required = orders(&lengths).iter().map(in_order).collect();
        if self.first != UNSTARTED || !self.before.is_empty() {
            return Expected::all(required);
        }
        let lengths: Vec<usize> = lengths.iter().map(|length| length * 2).collect();
        let in_order = |order: &Vec<usize>| self.in_order(order, 2);
        Expected::some(required, orders(&lengths).iter().map(in_order).collect())
    }

    /// Returns the outcome of the verbs in this order. With two steps a turn, the first one starts
    /// the limiter.
    fn in_order(&self, order: &[usize], steps: usize) -> Outcome {
        let (algorithm, shared) = ((self.algorithm)(), words::alone(self.first));
        let traced = TracedWord::on(&shared);
        let mut granted = None;
        perform(&algorithm, &traced, &self.before, &mut granted);
        let mut grants = vec![granted; self.actors.len()];
        let mut taken = vec![0; self.actors.len()];
        let mut answers = vec![Vec::new(); self.actors.len()];
        for &who in order {
            let turn = &self.actors[who][taken[who] / steps];
            taken[who] += 1;
            if !taken[who].is_multiple_of(steps) {
                if turn.verb.kind != Kind::Resets {
                    WordStore::new(&algorithm, &traced).at(turn.now).start();
                }
                continue;
            }
            let turn = std::slice::from_ref(turn);
            answers[who].extend(perform(&algorithm, &traced, turn, &mut grants[who]));
        }
        Outcome {
            answers,
            word: shared.load(),
        }
    }
}

/// Runs turns one after the other, and checks what each one wrote.
fn perform<A>(
    algorithm: &A,
    traced: &TracedWord,
    turns: &[Turn<A>],
    granted: &mut Option<Granted>,
) -> Vec<Answer> {
    let answers = turns.iter().map(|turn| {
        let written = traced.writes();
        let mut scope = Scope {
            algorithm,
            traced,
            now: turn.now,
            granted,
        };
        let answer = (turn.verb.act)(&mut scope);
        rules::check_writes(turn.verb.kind, answer, &traced.changes_since(written));
        answer
    });
    answers.collect()
}

impl<A> Clone for Turn<A> {
    fn clone(&self) -> Self {
        Self {
            verb: self.verb.clone(),
            now: self.now,
        }
    }
}

impl<A> std::fmt::Display for WordScenario<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |turns: &[Turn<A>]| {
            let turns = turns
                .iter()
                .map(|turn| format!("{} at {}", turn.verb.name, turn.now.as_nanos()));
            turns.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "word {:#x}, before: {}", self.first, line(&self.before))?;
        for turns in &self.actors {
            writeln!(f, "  an actor: {}", line(turns))?;
        }
        Ok(())
    }
}
