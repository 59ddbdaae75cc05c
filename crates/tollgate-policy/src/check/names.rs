//! Warns of names of facts that are probably misspelled, and of fields that became conditions.

use tollgate::AnyAlgorithm;

use crate::facts::{FactKind, FactName};
use crate::file::{Applies, Entry, PolicyFile, Rule};
use crate::limit::Fixed;
use crate::problem::{Position, Problem, Problems, quoted};
use crate::when::{Condition, Pattern, Test, When};

/// The names that each policy knows.
const OWN: [&str; 4] = ["method", "path", "host", "client-ip"];
/// What stands before the dot of the names in two parts that each policy knows.
const GROUPS: [&str; 5] = ["header", "query", "cookie", "path", "response-header"];

/// Warns of names, unless the file lists all names that the program supplies.
pub(super) fn check(
    file: &PolicyFile,
    is_registered: impl Fn(&str) -> bool,
    problems: &mut Problems,
) {
    if file.facts.is_some() {
        return;
    }
    let mut names = Names {
        is_registered,
        problems,
    };
    for entry in &file.deny {
        names.entry("deny", entry);
    }
    for entry in &file.allow {
        names.entry("allow", entry);
    }
    for rule in &file.rules {
        names.rule(rule);
    }
}

struct Names<'p, R> {
    is_registered: R,
    problems: &'p mut Problems,
}

impl<R: Fn(&str) -> bool> Names<'_, R> {
    fn entry(&mut self, kind: &str, entry: &Entry) {
        let place = format!("{kind} {}", quoted(&entry.name));
        self.conditions(&place, &entry.when, entry.name.position);
    }

    fn rule(&mut self, rule: &Rule) {
        let place = rule.title();
        if let Applies::When(when) = &rule.when.value {
            self.conditions(&place, when, rule.when.position);
            for condition in &when.all {
                self.field(&place, condition, rule.when.position);
            }
        }
        for name in &rule.key {
            self.name(&place, "key", name, name.position);
        }
        if let Some(plan) = &rule.plan {
            self.name(&place, "plan.by", &plan.by, plan.by.position);
        }
        let (estimate, settle) = (&rule.cost.estimate, &rule.cost.settle);
        for (field, fact) in [("cost.estimate", estimate), ("cost.settle", settle)] {
            if let Some(fact) = fact {
                self.name(&place, field, fact.as_str(), fact.position);
            }
        }
    }

    /// Warns of a name that a field has as its value.
    fn name(&mut self, place: &str, field: &str, name: &str, position: Option<Position>) {
        if let Some(message) = self.misspelled(name) {
            let problem = Problem::warning(format!("{place}: {field}"), quoted(name), message);
            self.problems.push(problem.at(position));
        }
    }

    fn conditions(&mut self, place: &str, when: &When, position: Option<Position>) {
        for condition in &when.all {
            let name = condition.fact.as_str();
            if let Some(message) = self.misspelled(name) {
                let problem = Problem::warning(format!("{place}: when.{name}"), "", message);
                self.problems.push(problem.at(position));
            }
        }
        for when in when.any.iter().chain(when.not.as_deref()) {
            self.conditions(place, when, position);
        }
    }

    /// Warns of a condition that has the name and the value of a rule's field.
    fn field(&mut self, place: &str, condition: &Condition, position: Option<Position>) {
        let name = condition.fact.as_str();
        if is_field(condition) && !(self.is_registered)(name) {
            let message = format!(
                "is a condition, not the field `{name}` of the rule; in TOML, write the field \
                 before `[rule.when]`. {SUPPLIED}"
            );
            let problem = Problem::warning(format!("{place}: when.{name}"), "", message);
            self.problems.push(problem.at(position));
        }
    }

    fn misspelled(&self, name: &str) -> Option<String> {
        let near = match name.split_once('.') {
            Some((group, rest)) => {
                let is_near = |own: &&str| is_slip(group, own) || group == format!("{own}s");
                format!("{}.{rest}", GROUPS.into_iter().find(is_near)?)
            }
            None => OWN.into_iter().find(|own| is_slip(name, own))?.to_owned(),
        };
        let is_plain = matches!(FactName::new(name).kind(), FactKind::Other(_));
        (is_plain && !(self.is_registered)(name))
            .then(|| format!("is probably misspelled; did you mean `{near}`? {SUPPLIED}"))
    }
}

const SUPPLIED: &str = "If the program supplies such a fact, list it in `facts`";

/// Whether a name differs from another one by a slip that makes no other word: case and separators,
/// two exchanged letters, a vowel missing from a short name, or one letter too many or too few in a
/// long name. `client-id` is another word.
fn is_slip(name: &str, own: &str) -> bool {
    if name.len() > 2 * own.len() {
        return false;
    }
    let plain = |text: &str| {
        let letters = text.chars().filter(|c| !"-_".contains(*c));
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    let (name, own) = (plain(name), plain(own));
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_one_letter = || strsim::damerau_levenshtein(&name, &own) == 1;
    let is_long = own.len() > 4;
    let vowels: &[char] = &['a', 'e', 'i', 'o', 'u'];
    name == own
        || (!is_long && name == own.replace(vowels, ""))
        || (is_long && name.chars().count() != own.chars().count() && is_one_letter())
        || (sorted(&name) == sorted(&own) && is_one_letter())
}

/// Whether a condition has the name of an optional field, and a value that the field can have.
fn is_field(condition: &Condition) -> bool {
    let text = match &condition.test {
        Test::Present | Test::Absent => return condition.fact.as_str() == "shadow",
        Test::OneOf(patterns) => match patterns.as_slice() {
            [Pattern::Equal(text)] => text.as_str(),
            _ => return false,
        },
    };
    let is_number = || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match condition.fact.as_str() {
        "capacity" | "cost" => is_number(),
        "limit" => Fixed::of(text).is_some() || text.parse::<AnyAlgorithm>().is_ok(),
        "key" => !matches!(FactName::new(text).kind(), FactKind::Other(_)),
        "missing" => ["deny", "skip", "shared"].contains(&text),
        "repeated" => ["deny", "first", "last"].contains(&text),
        "count" => ["failures", "successes"].contains(&text),
        "overflow" => ["evict", "deny", "admit"].contains(&text),
        "store" => ["memory", "redis"].contains(&text),
        "fallback" => ["closed", "open"].contains(&text),
        _ => false,
    }
}
