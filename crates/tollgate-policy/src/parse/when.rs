//! Reads conditions.

use super::fact::{self, Allowed};
use super::field::Field;
use super::nearest::nearest;
use super::pattern;
use super::table::Table;
use super::tree::{Node, Tree};
use crate::facts::{FactKind, FactName};
use crate::file::At;
use crate::problem::Problems;
use crate::when::{Condition, Pattern, PatternError, Test, When};

/// How deep `any` and `not` may be nested.
const MAX_DEPTH: usize = 16;
/// The facts whose names have two parts. Conditions can't read headers of the answer, and say so.
const GROUPS: [&str; 4] = ["header", "query", "cookie", "response-header"];

/// Reads conditions, and collects what their paths capture.
pub(super) struct Reader<'r> {
    pub(super) facts: Option<&'r [At<String>]>,
    pub(super) captures: &'r mut Vec<String>,
    pub(super) problems: &'r mut Problems,
}

impl Reader<'_> {
    /// Reads a table of conditions. Returns `None` if it is not a table; wrong conditions are left
    /// out.
    pub(super) fn when(&mut self, field: Field<'_>, what: &str, depth: usize) -> Option<When> {
        let table = Table::of(field, what, self.problems)?;
        if depth > MAX_DEPTH {
            let message = format!("must not nest `any` and `not` more than {MAX_DEPTH} deep");
            field.refuse(message, self.problems);
            return None;
        }
        let mut when = When::default();
        for (name, node) in table.entries {
            let place = table.place.field(name);
            let field = Field { node, place };
            match name.as_str() {
                "any" => when.any = self.any(field, depth),
                "not" => {
                    let count = self.captures.len();
                    let not = self.when(field, "a table of conditions", depth + 1);
                    // Where a path does not match, it captures nothing.
                    self.captures.truncate(count);
                    when.not = not.map(Box::new);
                }
                group if GROUPS.contains(&group) => self.group(group, field, &mut when.all),
                plain => {
                    let fact = self.fact_name(plain, field, name);
                    when.all.extend(self.condition(fact, field));
                }
            }
        }
        Some(when)
    }

    fn any(&mut self, field: Field<'_>, depth: usize) -> Vec<When> {
        let list = field.list("a list of tables of conditions", self.problems);
        if matches!(&field.node.value, Tree::List(list) if list.is_empty()) {
            field.refuse("must have at least one element", self.problems);
        }
        let mut any = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            let place = field.place.element(index);
            let field = Field { node, place };
            any.extend(self.when(field, "a table of conditions", depth + 1));
        }
        any
    }

    /// Reads the conditions of headers, of parameters or of cookies.
    fn group(&mut self, group: &str, field: Field<'_>, all: &mut Vec<Condition>) {
        let what = format!("a table, as in `{group}.NAME = \"text\"`");
        let Some(table) = Table::of(field, &what, self.problems) else {
            return;
        };
        for (name, node) in table.entries {
            let place = table.place.field(name);
            let field = Field { node, place };
            let fact = self.fact_name(&format!("{group}:{}", name.value), field, name);
            all.extend(self.condition(fact, field));
        }
    }

    fn fact_name(&mut self, text: &str, field: Field<'_>, name: &At<String>) -> Option<FactName> {
        let allowed = Allowed {
            facts: self.facts,
            captures: &[],
            answer: false,
        };
        match fact::check(text, allowed) {
            Ok(fact) => Some(fact),
            Err(message) => {
                super::field::refuse_field(&field.place, name.position, message, self.problems);
                None
            }
        }
    }

    /// Reads a test. If the fact's name is wrong, the test can't be checked.
    fn condition(&mut self, fact: Option<FactName>, field: Field<'_>) -> Option<Condition> {
        let fact = fact?;
        let test = match &field.node.value {
            Tree::Bool(true) => Test::Present,
            Tree::Bool(false) => Test::Absent,
            Tree::Table(_) => Test::OneOf(self.explicit(&fact, field)?),
            _ => Test::OneOf(self.patterns(field, |text| Pattern::parse(&fact, text))),
        };
        if let Test::OneOf(patterns) = &test {
            self.captures
                .extend(patterns.iter().flat_map(pattern::captures));
        }
        Some(Condition { fact, test })
    }

    /// Reads a table that says how to compare, such as `{ prefix = "a" }`.
    fn explicit(&mut self, fact: &FactName, field: Field<'_>) -> Option<Vec<Pattern>> {
        let table = Table::of(field, "a test", self.problems)?;
        if let Some(group) = misspelled_group(fact, table.entries) {
            let message = format!("is not a test; did you mean `{group}`, as in `{group}.NAME`?");
            field.refuse(message, self.problems);
            return None;
        }
        table.only("a test", "test", self.problems);
        let [(form, node)] = table.entries else {
            let message = format!("must have exactly one of {}", pattern::forms().join(", "));
            field.refuse(message, self.problems);
            return None;
        };
        if !pattern::forms().contains(&form.as_str()) {
            return None;
        }
        let place = table.place.field(form);
        let field = Field { node, place };
        if matches!(form.as_str(), "prefix" | "suffix") && has_empty(node) {
            let message = "must not be empty; `true` stands for any value";
            field.refuse(message, self.problems);
            return None;
        }
        Some(self.patterns(field, |text| pattern::parse_form(fact, form, text)))
    }

    fn patterns(
        &mut self,
        field: Field<'_>,
        parse: impl Fn(&str) -> Result<Pattern, PatternError>,
    ) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for node in field.one_or_more(self.problems) {
            let message = match node.as_plain().map(|text| parse(&text)) {
                Some(Ok(pattern)) => {
                    patterns.push(pattern);
                    continue;
                }
                Some(Err(error)) => error.to_string(),
                None => String::from(
                    "must be text, a list of texts, true, false, or a table that says how to \
                     compare, such as { prefix = \"a\" }",
                ),
            };
            field.with(node).refuse(message, self.problems);
        }
        patterns
    }
}

/// Returns the name of the group that a table such as `headers = { x-id = "a" }` probably is.
fn misspelled_group(fact: &FactName, entries: &[(At<String>, Node)]) -> Option<&'static str> {
    let is_form = |(name, _): &(At<String>, Node)| pattern::forms().contains(&name.as_str());
    match fact.kind() {
        FactKind::Other(name) if !entries.iter().any(is_form) => nearest(name, GROUPS.into_iter()),
        _ => None,
    }
}

fn has_empty(node: &Node) -> bool {
    let is_empty = |node: &Node| matches!(&node.value, Tree::Text(text) if text.is_empty());
    node.one_or_more().iter().any(is_empty)
}
