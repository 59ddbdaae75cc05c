//! Which rules apply to a request.

use super::asks::{self, Outcome};
use super::{Applied, Explained, List, Listed};
use crate::choose::{Asked, Chooser, NoLimit, Recorder, Why};
use crate::facts::Facts;
use crate::file::{Applies, Apply, Override, PolicyFile, Rule};
use crate::limit::Fixed;
use crate::rule::{Bytes, Reads};

/// What became of a rule.
enum State {
    /// The rule would apply, but its key is missing.
    Skipped,
    /// The rule applies by its own conditions, or with the rule that names it.
    Applies(Option<usize>, Outcome),
}

/// A decision as it was recorded.
struct Recorded<'f> {
    file: &'f PolicyFile,
    reads: &'f [Reads],
    keys: Bytes,
    entry: Option<Listed>,
    rules: Vec<Option<State>>,
    /// The first rule that applies, if no other rule is asked after it.
    first: Option<usize>,
}

impl<'f> Recorded<'f> {
    /// Returns the override of a key. A decision compares hashes of the same bytes.
    fn own_limit(&self, rule: usize, (start, end): (usize, usize)) -> Option<&'f Override> {
        let spec = &self.reads.get(rule)?.key;
        let key = self.keys.get(start..end)?;
        spec.override_of(self.file.rules.get(rule)?, key)
    }

    fn set(&mut self, rule: usize, state: State) {
        if let Some(known) = self.rules.get_mut(rule) {
            *known = Some(state);
        }
    }
}

impl Recorder for Recorded<'_> {
    fn keys(&mut self) -> &mut Bytes {
        &mut self.keys
    }

    fn has(&self, rule: usize) -> bool {
        matches!(self.rules.get(rule), Some(Some(State::Applies(..))))
    }

    fn override_of(&self, rule: usize, key: (usize, usize)) -> Option<Option<Fixed>> {
        self.own_limit(rule, key).map(|own| Fixed::of(&own.limit))
    }

    fn list(&mut self, why: Why) {
        let (list, entries, index) = match why {
            Why::Allowed(index) => (List::Allow, &self.file.allow, index),
            Why::Entry(index) => (List::Deny, &self.file.deny, index),
            _ => return,
        };
        self.entry = entries.get(index).map(|entry| Listed {
            list,
            name: entry.name.value.clone(),
            status: entry.status.map(|status| status.value),
        });
    }

    fn skip(&mut self, rule: usize) {
        self.set(rule, State::Skipped);
    }

    fn refuse(&mut self, rule: usize, _: bool, by: Option<usize>, why: NoLimit) {
        self.set(rule, State::Applies(by, Outcome::Denies(why)));
    }

    fn ask(&mut self, rule: usize, _: bool, by: Option<usize>, asked: Asked) {
        self.set(rule, State::Applies(by, Outcome::Asks(asked)));
    }

    fn end(&mut self, rule: usize) {
        self.first = Some(rule);
    }

    /// A decision ends with the first rule that denies. The rules after it are explained too.
    fn is_over(&self) -> bool {
        false
    }
}

/// Explains all rules, unless an entry of a list decides.
pub(super) fn explain(
    file: &PolicyFile,
    facts: &(impl Facts + ?Sized),
) -> (Option<Listed>, Vec<Explained>) {
    let reads = Reads::of_all(file);
    let mut recorded = Recorded {
        file,
        reads: &reads,
        keys: Bytes::new(),
        entry: None,
        rules: file.rules.iter().map(|_| None).collect(),
        first: None,
    };
    Chooser::of(file).choose(&reads, &facts, &mut recorded);
    if recorded.entry.is_some() {
        return (recorded.entry, Vec::new());
    }
    let rules = file.rules.iter().zip(&recorded.rules).enumerate();
    let explained = rules.map(|(index, (rule, state))| {
        let (applies, why, asks) = match state {
            None => (Applied::No, why_not(rule, &recorded, facts), None),
            Some(State::Skipped) => (Applied::No, asks::skipped(rule, facts), None),
            Some(State::Applies(by, outcome)) => {
                let applies = match rule.shadow {
                    true => Applied::Shadow,
                    false => Applied::Yes,
                };
                let own = match outcome {
                    Outcome::Denies(NoLimit::Zero(asked)) | Outcome::Asks(asked) => {
                        recorded.own_limit(index, asked.key)
                    }
                    Outcome::Denies(_) => None,
                };
                let asks = asks::of(rule, outcome, own, facts);
                (applies, why(rule, *by, file, facts), Some(asks))
            }
        };
        Explained {
            name: rule.name.value.clone(),
            applies,
            why,
            asks,
        }
    });
    (None, explained.collect())
}

/// Returns why a rule applies.
fn why(rule: &Rule, by: Option<usize>, file: &PolicyFile, facts: &(impl Facts + ?Sized)) -> String {
    if let Some(by) = by.and_then(|by| file.rules.get(by)) {
        return format!("rule {:?} names it in `also`", by.name.as_str());
    }
    let Applies::When(when) = &rule.when.value else {
        return "it has no conditions".into();
    };
    let ends = file.apply == Apply::First && !rule.shadow;
    match ends && !when.holds_for_each(facts) {
        true => "its conditions hold, but not by each value, so the next one is tried too".into(),
        false => "its conditions hold".into(),
    }
}

/// Returns why a rule does not apply.
fn why_not(rule: &Rule, recorded: &Recorded<'_>, facts: &(impl Facts + ?Sized)) -> String {
    let failure = match &rule.when.value {
        Applies::Always => None,
        Applies::Never if rule.is_limit => Some("no rule that applies names it in `also`".into()),
        Applies::Never => Some("when is \"never\", and no rule that applies names it".into()),
        Applies::When(when) => when
            .first_failure(facts)
            .map(|failure| match failure.hint() {
                Some(hint) => format!("{failure}; {hint}"),
                None => failure.to_string(),
            }),
    };
    let first = recorded
        .first
        .and_then(|first| recorded.file.rules.get(first));
    let first = first.map_or("", |rule| rule.name.as_str());
    failure.unwrap_or_else(|| format!("rule {first:?} applies and comes first"))
}
