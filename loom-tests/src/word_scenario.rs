//! Scenarios on a single word: an algorithm, the preparations, and then the verbs of each actor,
//! which run concurrently.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate::algorithm::Algorithm;
use tollgate::store::{UNSTARTED, WordStore};
use tollgate::{Granted, Tick};

use crate::action::Action;
use crate::rules;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::traced_word::{SharedWord, TracedWord};
use crate::verb::{Scope, Verb};
use crate::verbs::{Answer, Kind};
use crate::words::{self, MakeWord};

/// A verb at a tick.
pub type Turn<A> = (Verb<A>, Tick);

/// A scenario on a word.
pub type WordScenario<A> = Scenario<OneWord<A>, OnWord>;

/// An algorithm, and the word that the actors share.
pub struct OneWord<A> {
    algorithm: A,
    word: SharedWord,
    /// The last grant of the preparations, which each actor may undo. Loom does not track it.
    prepared: Mutex<Option<Granted>>,
}

/// An actor's access to the word, and its last grant.
#[derive(Default, Clone)]
pub struct OnWord(Option<(TracedWord, Option<Granted>)>);

impl<A: Algorithm + Send + Sync + 'static> Subject<A> {
    /// Makes a scenario that begins with a fresh limiter.
    pub fn scenario(&self, before: &[Turn<A>], actors: &[&[Turn<A>]]) -> WordScenario<A> {
        self.beginning_with(0, before, actors)
    }

    /// Makes a scenario that begins with a limiter that was not started. Starting it and the verb
    /// itself are two steps, between which other actors may act.
    pub fn unstarted_scene(&self, actors: &[&[Turn<A>]]) -> WordScenario<A> {
        self.beginning_with(UNSTARTED, &[], actors)
    }

    fn beginning_with(
        &self,
        first: u64,
        before: &[Turn<A>],
        actors: &[&[Turn<A>]],
    ) -> WordScenario<A> {
        let make = |make_word: MakeWord| {
            let algorithm = Arc::clone(&self.algorithm);
            move || OneWord {
                algorithm: algorithm(),
                word: make_word(first),
                prepared: Mutex::default(),
            }
        };
        let mut scenario = Scenario::at(make(self.make_word)).read_on(make(words::cell));
        for (who, actor) in actors.iter().enumerate() {
            let before = if who == 0 { before } else { &[] };
            let [before, actor] = [(before, true), (*actor, false)].map(|(turns, prepares)| {
                let actions = turns.iter().map(|turn| action(turn.clone(), prepares));
                actions.collect::<Vec<_>>()
            });
            scenario = scenario.actor_after(&before, &actor);
        }
        let scenario = scenario.after(|one, memories| {
            let traced = memories.iter().filter_map(|memory| memory.0.as_ref());
            rules::check_losses(&traced.map(|(traced, _)| traced).collect::<Vec<_>>());
            vec![Answer::Count(one.word.load())]
        });
        self.ruled(scenario, first, before, actors)
    }

    /// Adds the rules that apply to these verbs.
    fn ruled(
        &self,
        mut scenario: WordScenario<A>,
        first: u64,
        before: &[Turn<A>],
        actors: &[&[Turn<A>]],
    ) -> WordScenario<A> {
        let turns = || before.iter().chain(actors.iter().copied().flatten());
        let has = |kinds: [Kind; 2]| turns().any(|(verb, _)| kinds.contains(&verb.kind));
        let only_takes = turns().all(|(verb, _)| matches!(verb.kind, Kind::Takes | Kind::Looks));
        if let (Some(promise), true) = (self.promise, only_takes) {
            scenario = scenario.rule(move |played| {
                let answers = played.before.iter().chain(&played.answers);
                rules::check_bound(&promise, &answers.cloned().collect::<Vec<_>>());
            });
        }
        let Some((_, now)) = turns().next().cloned() else {
            return scenario;
        };
        let stands = turns().all(|(_, tick)| *tick == now);
        if stands && self.exact && !has([Kind::Charges, Kind::Resets]) {
            let (algorithm, before) = (Arc::clone(&self.algorithm), before.to_vec());
            let available = move |word, turns: &[Turn<A>]| {
                let (algorithm, traced) = (algorithm(), TracedWord::on(&words::alone(word)));
                for turn in turns {
                    perform(&algorithm, &traced, turn, &mut None);
                }
                WordStore::new(&algorithm, &traced).at(now).available()
            };
            scenario = scenario.rule(move |played| {
                let Some(Answer::Count(word)) = played.after.first() else {
                    unreachable!("the word stands last");
                };
                let (had, has) = (available(first, &before), available(*word, &[]));
                rules::check_balance(had, &played.answers, has);
            });
        }
        scenario
    }
}

/// Returns a verb as an action. Preparations leave their last grant to each actor.
fn action<A: Algorithm + Send + Sync + 'static>(
    turn: Turn<A>,
    prepares: bool,
) -> Action<OneWord<A>, OnWord> {
    let name = format!("{} at {}", turn.0.name, turn.1.as_nanos());
    Action::new(name, move |one: &Arc<OneWord<A>>, memory: &mut OnWord| {
        let mut prepared = one.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || (TracedWord::on(&one.word), *prepared);
        let (traced, granted) = memory.0.get_or_insert_with(begin);
        if prepares {
            let answer = perform(&one.algorithm, traced, &turn, granted);
            *prepared = *granted;
            return answer;
        }
        // Loom may switch threads inside.
        drop(prepared);
        perform(&one.algorithm, traced, &turn, granted)
    })
}

/// Runs a verb, and checks what it wrote.
fn perform<A>(
    algorithm: &A,
    traced: &TracedWord,
    (verb, now): &Turn<A>,
    granted: &mut Option<Granted>,
) -> Answer {
    let written = traced.writes();
    let answer = (verb.act)(&mut Scope {
        algorithm,
        traced,
        now: *now,
        granted,
    });
    rules::check_writes(verb.kind, answer, &traced.changes_since(written));
    answer
}
