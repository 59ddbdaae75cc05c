//! Writes conditions as a tree.

use super::pattern;
use super::ser::{Fields, many, one_or_more};
use super::tree::Tree;
use crate::fact::{FactKind, FactName};
use crate::when::{Condition, Test, When};

pub(super) fn when(conditions: &When) -> Tree {
    let mut fields = Fields::default();
    let mut groups = [
        ("header", Fields::default()),
        ("query", Fields::default()),
        ("cookie", Fields::default()),
    ];
    for condition in &conditions.all {
        let (group, name) = split(&condition.fact);
        let written = test(condition);
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, fields)) => fields.push(name, written),
            None => fields.push(name, written),
        }
    }
    for (group, conditions) in groups {
        if !conditions.is_empty() {
            fields.push(group, conditions.table());
        }
    }
    if !conditions.any.is_empty() {
        fields.push("any", many(&conditions.any, when));
    }
    if let Some(not) = &conditions.not {
        fields.push("not", when(not));
    }
    fields.table()
}

/// Splits the name of a fact into the table that its condition is in, and its name there.
fn split(fact: &FactName) -> (&'static str, &str) {
    match fact.kind() {
        FactKind::Header(name) => ("header", name),
        FactKind::Query(name) => ("query", name),
        FactKind::Cookie(name) => ("cookie", name),
        _ => ("", fact.as_str()),
    }
}

fn test(condition: &Condition) -> Tree {
    match &condition.test {
        Test::Present => Tree::Bool(true),
        Test::Absent => Tree::Bool(false),
        Test::OneOf(patterns) => {
            let texts = one_or_more(patterns, |pattern| Tree::Text(pattern::text(pattern)));
            let form = patterns.first();
            match form.and_then(|pattern| pattern::form(&condition.fact, pattern)) {
                Some(form) => Fields::default().with(form, texts).table(),
                None => texts,
            }
        }
    }
}
