//! Checks the rules that rules name in `also`.

use std::collections::HashMap;

use super::field::refuse_text;
use super::nearest::known_names;
use super::place::Place;
use crate::file::Rule;
use crate::problem::Problems;

/// The most rules of a cycle that a message names.
const MAX_SHOWN: usize = 12;

/// Reports names that no rule has, and rules that name themselves, directly or through others.
pub(super) fn check(rules: &[Rule], names: &HashMap<String, usize>, problems: &mut Problems) {
    for (index, rule) in rules.iter().enumerate() {
        for named in &rule.also {
            let message = match names.get(&named.value) {
                Some(target) if *target == index => "must not be the rule itself".into(),
                Some(_) => continue,
                None if problems.is_full() => "must be the name of a rule or a limit".into(),
                None => {
                    let known = rules.iter().map(|rule| rule.name.as_str());
                    let known = known.filter(|name| !name.is_empty());
                    let known = known_names(named, known);
                    format!("must be the name of a rule or a limit{known}")
                }
            };
            let rule = Place::rule(rule, index);
            refuse_text(&rule.field("also"), named, message, problems);
        }
    }
    Search::new(rules, names).run(problems);
}

/// A search in depth for cycles. It keeps its own stack, since a file may chain all its rules.
struct Search<'r> {
    rules: &'r [Rule],
    names: &'r HashMap<String, usize>,
    state: Vec<State>,
    /// The rules that lead to the one that is visited, each with the number of names that were
    /// followed.
    path: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
enum State {
    New,
    /// On the path, at this depth.
    Open(usize),
    Done,
}

impl<'r> Search<'r> {
    fn new(rules: &'r [Rule], names: &'r HashMap<String, usize>) -> Self {
        Self {
            rules,
            names,
            state: vec![State::New; rules.len()],
            path: Vec::new(),
        }
    }

    fn run(&mut self, problems: &mut Problems) {
        for start in 0..self.rules.len() {
            if matches!(self.state.get(start), Some(State::New)) {
                self.open(start);
                self.visit(problems);
            }
        }
    }

    fn open(&mut self, index: usize) {
        self.set(index, State::Open(self.path.len()));
        self.path.push((index, 0));
    }

    fn set(&mut self, index: usize, state: State) {
        if let Some(known) = self.state.get_mut(index) {
            *known = state;
        }
    }

    fn visit(&mut self, problems: &mut Problems) {
        while let Some((index, followed)) = self.path.last_mut() {
            let index = *index;
            let rule = self.rules.get(index);
            let Some(named) = rule.and_then(|rule| rule.also.get(*followed)) else {
                self.set(index, State::Done);
                self.path.pop();
                continue;
            };
            *followed += 1;
            let Some(target) = self.names.get(&named.value).copied() else {
                continue;
            };
            match self.state.get(target) {
                Some(State::New) => self.open(target),
                // A rule that names itself is reported already.
                Some(State::Open(depth)) if target != index => {
                    let message = self.cycle(*depth, target);
                    if let Some(rule) = rule {
                        let rule = Place::rule(rule, index);
                        refuse_text(&rule.field("also"), named, message, problems);
                    }
                }
                _ => {}
            }
        }
    }

    /// Names the rules of the path from this depth on, and the first one again.
    fn cycle(&self, depth: usize, first: usize) -> String {
        let name = |index: usize| self.rules.get(index).map_or("", |rule| &rule.name);
        let cycle = self.path.get(depth..).unwrap_or_default();
        let shown = cycle.iter().take(MAX_SHOWN).map(|(index, _)| name(*index));
        let mut names: Vec<String> = shown.map(Into::into).collect();
        if cycle.len() > MAX_SHOWN {
            names.push(format!("{} more", cycle.len() - MAX_SHOWN));
        }
        names.push(name(first).into());
        format!("must not make a cycle: {}", names.join(" -> "))
    }
}
