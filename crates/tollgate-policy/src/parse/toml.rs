//! Reads TOML as a tree.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Error};

use super::lines::Lines;
use super::secret::KEY_SECRET;
use super::tree::{Entries, Node, Tree, at};
use crate::problem::{Problem, Problems};

/// The largest file in which all errors of syntax are reported, in bytes. Each error costs memory
/// before it can be counted.
const MAX_RECOVERED: usize = 1 << 20;

/// Returns the fields of a file, or `None` if its text is not TOML.
pub(super) fn parse(text: &str, problems: &mut Problems) -> Option<Entries> {
    if let Err(problem) = super::check_separators(text, "=,.[{") {
        problems.push(problem);
        return None;
    }
    let lines = Lines::new(text);
    match DeTable::parse(text) {
        Ok(table) => Some(entries(table.into_inner(), &lines)),
        Err(first) => {
            for problem in syntax_errors(text, first, &lines) {
                problems.push(problem);
            }
            None
        }
    }
}

/// Returns the errors of syntax, at most one of a line: what follows the first may be its effect.
fn syntax_errors(text: &str, first: Error, lines: &Lines<'_>) -> Vec<Problem> {
    let errors = match text.len() {
        0..=MAX_RECOVERED => DeTable::parse_recoverable(text).1,
        _ => vec![first],
    };
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| syntax_error(text, error, lines))
        .collect();
    problems.sort_by_key(|problem| problem.position);
    problems.dedup_by_key(|problem| problem.position.map(|position| position.line));
    problems
}

fn syntax_error(text: &str, error: &Error, lines: &Lines<'_>) -> Problem {
    let Range { start, end } = error.span().unwrap_or_default();
    let part = text.get(start..end).unwrap_or_default();
    let part = match part.trim() {
        "" => String::new(),
        _ if shows_secret(text.get(..end).unwrap_or(text)) => String::new(),
        part => format!(" (at `{}`)", part.chars().take(40).collect::<String>()),
    };
    let message = format!("the text is not TOML: {}{part}", error.message());
    Problem::error("", "", message).at(lines.position(start))
}

/// Returns whether the text up to here ends with the secret of keys or the URL of a server, or with
/// fields that follow them.
fn shows_secret(text: &str) -> bool {
    let begins = [KEY_SECRET, "store", "://"];
    begins.into_iter().any(|begin| {
        let secret = text.rfind(begin).and_then(|at| text.get(at..));
        secret.is_some_and(|rest| !rest.contains("\n["))
    })
}

fn entries(table: DeTable<'_>, lines: &Lines<'_>) -> Entries {
    let position = |range: Range<usize>| Some(lines.position(range.start));
    let entry = |(name, value): (Spanned<DeString<'_>>, _)| {
        let name = at(name.get_ref().to_string(), position(name.span()));
        (name, node(value, lines))
    };
    table.into_iter().map(entry).collect()
}

fn node(value: Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let position = Some(lines.position(value.span().start));
    let tree = match value.into_inner() {
        DeValue::String(text) => Tree::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Tree::Integer(number),
            Err(_) => Tree::Other(number.to_string()),
        },
        DeValue::Float(number) => Tree::Other(number.to_string()),
        DeValue::Boolean(value) => Tree::Bool(value),
        DeValue::Datetime(date) => Tree::Other(date.to_string()),
        DeValue::Array(list) => {
            Tree::List(list.into_iter().map(|value| node(value, lines)).collect())
        }
        DeValue::Table(table) => Tree::Table(entries(table, lines)),
    };
    at(tree, position)
}
