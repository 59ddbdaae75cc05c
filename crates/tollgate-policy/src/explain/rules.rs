//! Which rules apply to a request.

use std::collections::HashMap;

use super::{Applied, Asks, Explained, asks};
use crate::facts::Facts;
use crate::file::{Applies, Apply, PolicyFile, Rule};

/// What became of a rule.
enum State {
    /// It does not apply, for this reason.
    No(String),
    /// It would apply, but its key is missing.
    Skipped(String),
    /// It applies, for this reason, and asks this.
    Asks(String, Box<Asks>),
}

impl State {
    /// Returns what becomes of a rule that should apply for this reason, by its own conditions or
    /// with another rule.
    fn of(rule: &Rule, is_own: bool, why: String, facts: &(impl Facts + ?Sized)) -> Self {
        match asks::of(rule, is_own, facts) {
            Ok(asks) => Self::Asks(why, Box::new(asks)),
            Err(why) => Self::Skipped(why),
        }
    }
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
            Some(first) => {
                let why = format!("rule {first:?} applies and comes first");
                search.set(index, State::No(why));
            }
            _ => {
                let ends = file.apply == Apply::First && !rule.shadow;
                let for_each = holds_for_each(rule, facts);
                let why = match ends && !for_each {
                    true => format!("{why}, but not by each value, so the next one is tried too"),
                    false => why,
                };
                if search.ask(index, rule, why) && ends && for_each {
                    first = Some(rule.name.as_str());
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
        Some(State::Asks(why, asks)) if rule.shadow => (Applied::Shadow, why, Some(*asks)),
        Some(State::Asks(why, asks)) => (Applied::Yes, why, Some(*asks)),
        Some(State::No(why) | State::Skipped(why)) => (Applied::No, why, None),
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

/// Returns whether a rule's conditions hold whichever of several values of a fact counts.
fn holds_for_each(rule: &Rule, facts: &(impl Facts + ?Sized)) -> bool {
    match &rule.when.value {
        Applies::When(when) => when.holds_for_each(facts),
        Applies::Always | Applies::Never => true,
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
    /// Sets the state of a rule. A rule that was tried stays so, but one that was skipped where
    /// another one names it can still be asked by its own conditions.
    fn set(&mut self, index: usize, state: State) {
        let Some(known) = self.states.get_mut(index) else {
            return;
        };
        match (&*known, &state) {
            (None | Some(State::No(_)), _) | (Some(State::Skipped(_)), State::Asks(..)) => {
                *known = Some(state);
            }
            _ => {}
        }
    }

    /// Asks a rule whose conditions hold, and those that go with it. Returns whether it applies.
    fn ask(&mut self, index: usize, rule: &Rule, why: String) -> bool {
        let state = State::of(rule, true, why, self.facts);
        let applies = matches!(state, State::Asks(..));
        self.set(index, state);
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
                let index = self.indices.get(other.as_str()).copied();
                let state = index.and_then(|index| self.states.get(index));
                let is_new = matches!(state, Some(None | Some(State::No(_))));
                let other = index.and_then(|index| Some((index, self.rules.get(index)?)));
                if let (true, Some((index, other))) = (is_new, other) {
                    let why = format!("rule {:?} names it in `also`", rule.name.as_str());
                    let state = State::of(other, false, why, self.facts);
                    // A skipped rule and a shadow rule bring no others.
                    if matches!(state, State::Asks(..)) && !other.shadow {
                        open.push(other);
                    }
                    self.set(index, state);
                }
            }
        }
    }
}
