//! Which rules apply to a request.

use std::collections::HashMap;

use super::asks::{self, Outcome};
use super::{Applied, Explained};
use crate::fact::Facts;
use crate::file::{Applies, Apply, PolicyFile, Rule};

/// What became of a rule.
enum State {
    /// It does not apply, for this reason.
    No(String),
    /// It applies, for this reason.
    Asked(String, Outcome),
}

/// Explains all rules.
pub(super) fn explain(file: &PolicyFile, facts: &(impl Facts + ?Sized)) -> Vec<Explained> {
    let mut search = Search {
        rules: &file.rules,
        indices: indices(&file.rules),
        states: file.rules.iter().map(|_| None).collect(),
        facts,
    };
    let mut first = None;
    for (index, rule) in file.rules.iter().enumerate() {
        let why = match holds(rule, facts) {
            Ok(why) => why,
            Err(why) => {
                search.set(index, State::No(why));
                continue;
            }
        };
        match first {
            Some(first) if !rule.shadow => {
                let why = format!("rule {first:?} applies and comes first");
                search.set(index, State::No(why));
            }
            _ => {
                let applies = search.ask(index, rule, why);
                if applies && !rule.shadow && file.apply == Apply::First {
                    first = first.or(Some(rule.name.as_str()));
                }
            }
        }
    }
    let states = search.states.into_iter();
    let explained = file.rules.iter().zip(states);
    explained
        .map(|(rule, state)| explained_as(rule, state))
        .collect()
}

fn explained_as(rule: &Rule, state: Option<State>) -> Explained {
    let name = rule.name.value.clone();
    let (applies, why, asks) = match state {
        Some(State::Asked(why, Outcome::Asks(asks))) => match rule.shadow {
            true => (Applied::Shadow, why, Some(asks)),
            false => (Applied::Yes, why, Some(asks)),
        },
        Some(State::Asked(_, Outcome::Skipped(why)) | State::No(why)) => (Applied::No, why, None),
        None => (Applied::No, String::new(), None),
    };
    Explained {
        name,
        applies,
        why,
        asks,
    }
}

/// Returns why a rule's conditions hold, or why they do not.
fn holds(rule: &Rule, facts: &(impl Facts + ?Sized)) -> Result<String, String> {
    match &rule.when.value {
        Applies::Always => Ok("it has no conditions".into()),
        Applies::Never => Err("when is \"never\", and no rule that applies names it".into()),
        Applies::When(when) => match when.first_failure(facts) {
            None => Ok("its conditions hold".into()),
            Some(failure) => Err(failure.to_string()),
        },
    }
}

/// The rules by their names.
fn indices(rules: &[Rule]) -> HashMap<&str, usize> {
    let rules = rules.iter().enumerate();
    rules
        .map(|(index, rule)| (rule.name.as_str(), index))
        .collect()
}

/// Collects what becomes of each rule.
struct Search<'s, F: ?Sized> {
    rules: &'s [Rule],
    indices: HashMap<&'s str, usize>,
    states: Vec<Option<State>>,
    facts: &'s F,
}

impl<F: Facts + ?Sized> Search<'_, F> {
    /// Sets the state of a rule. A rule that is asked stays so.
    fn set(&mut self, index: usize, state: State) {
        if let Some(known) = self.states.get_mut(index) {
            if !matches!(known, Some(State::Asked(..))) {
                *known = Some(state);
            }
        }
    }

    /// Asks a rule whose conditions hold, and those that go with it. Returns whether it applies.
    fn ask(&mut self, index: usize, rule: &Rule, why: String) -> bool {
        let outcome = asks::ask(rule, self.facts);
        let applies = matches!(outcome, Outcome::Asks(_));
        self.set(index, State::Asked(why, outcome));
        if applies && !rule.shadow {
            self.ask_also(rule);
        }
        applies
    }

    /// Asks the rules that a rule names in `also`, directly or by way of others.
    fn ask_also(&mut self, rule: &Rule) {
        let mut open = vec![rule];
        while let Some(rule) = open.pop() {
            for other in &rule.also {
                let Some(index) = self.indices.get(other.as_str()).copied() else {
                    continue;
                };
                let is_asked = matches!(self.states.get(index), Some(Some(State::Asked(..))));
                if let (false, Some(other)) = (is_asked, self.rules.get(index)) {
                    let why = format!("rule {:?} names it in `also`", rule.name.as_str());
                    self.set(index, State::Asked(why, asks::ask(other, self.facts)));
                    open.push(other);
                }
            }
        }
    }
}
