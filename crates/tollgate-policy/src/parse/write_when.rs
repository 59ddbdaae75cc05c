//! Writes conditions as a tree.

use super::fields::{Fields, many, one_or_more};
use super::pattern;
use super::tree::Tree;
use crate::facts::{FactKind, FactName};
use crate::when::{Condition, Test, When};

pub(super) fn when(conditions: &When) -> Tree {
    let mut fields = Fields::default();
    for condition in &conditions.all {
        let written = test(condition);
        match split(&condition.fact) {
            (Some(group), name) => fields.push_in(group, name, written),
            (None, name) => fields.push(name, written),
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
fn split(fact: &FactName) -> (Option<&'static str>, &str) {
    match fact.kind() {
        FactKind::Header(name) => (Some("header"), name),
        FactKind::Query(name) => (Some("query"), name),
        FactKind::Cookie(name) => (Some("cookie"), name),
        _ => (None, fact.as_str()),
    }
}

fn test(condition: &Condition) -> Tree {
    match &condition.test {
        Test::Present => Tree::Bool(true),
        Test::Absent => Tree::Bool(false),
        Test::OneOf(patterns) => {
            let form = pattern::form(&condition.fact, patterns);
            let texts = one_or_more(patterns, |it| Tree::Text(pattern::text(it, form)));
            match form {
                Some(form) => Fields::default().with(form, texts).table(),
                None => texts,
            }
        }
    }
}
