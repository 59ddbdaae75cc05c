//! Checks the keys of overrides.

use std::collections::HashMap;

use super::table::Table;
use super::tree::{Tree, at};
use crate::facts::{FactKind, FactName};
use crate::file::{At, Override, Rule};
use crate::problem::{Excerpt, Problem, Problems};
use crate::rule::{Bytes, KeySpec, can_be_key};

/// Checks that each override has as many parts as the key, that a request can have its key, and
/// that no other override has it.
pub(super) fn check(table: &Table<'_>, rule: &Rule, problems: &mut Problems) {
    if rule.overrides.is_empty() {
        return;
    }
    // An invalid part of the key still counts.
    let parts = table
        .get("key")
        .map_or(0, |key| key.node.one_or_more().len());
    let mut keys = Keys {
        rule,
        spec: KeySpec::of(rule),
        seen: HashMap::new(),
    };
    for (index, own) in rule.overrides.iter().enumerate() {
        let wrong = match own.key.len() {
            // It is reported already.
            0 => None,
            has if has != parts => Some(format!(
                "must have as many parts as the rule's `key`, which has {parts}"
            )),
            // A part of the rule's key is wrong, and reported.
            has if has != rule.key.len() => None,
            _ => keys.add(own),
        };
        if let Some(message) = wrong {
            let place = table.place.field("override");
            let place = place.element(index);
            let problem = Problem::error(place.field("key").to_string(), shown(own), message);
            problems.push(problem.at(own.key.position));
        }
    }
}

/// The keys of a rule's overrides.
struct Keys<'r> {
    rule: &'r Rule,
    spec: KeySpec,
    seen: HashMap<Bytes, &'r Override>,
}

impl<'r> Keys<'r> {
    /// Adds the key of an override. Returns what is wrong with it.
    fn add(&mut self, own: &'r Override) -> Option<String> {
        let is_address = |name: &At<String>| FactName::new(name).kind() == FactKind::ClientIp;
        let mut parts = self.rule.key.iter().zip(&*own.key);
        if !parts.all(|(name, value)| can_be_key(&FactName::new(name), &value.into())) {
            let message = "must have an address such as `10.0.0.7` for `client-ip`; `network` says \
                           how many of its bits count";
            return Some(message.into());
        }
        let values = own.key.iter().map(String::as_str);
        let first = self.seen.insert(self.spec.of_values(values), own)?;
        if first.key == own.key {
            return Some("must not be given twice".into());
        }
        let why = match self.rule.key.iter().any(is_address) {
            true => "; `network` says how many bits of an address count",
            false => "",
        };
        Some(format!("must not be the same key as {}{why}", shown(first)))
    }
}

/// Returns the key of an override as messages show it.
fn shown(own: &Override) -> String {
    let parts = own
        .key
        .iter()
        .map(|part| at(Tree::Text(part.clone()), None));
    Excerpt::of_value(&Tree::List(parts.collect()))
}
