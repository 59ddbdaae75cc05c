//! Reads the top level of a file.

use std::collections::HashMap;
use std::collections::hash_map;

use super::also;
use super::client::client;
use super::fact::check_listed;
use super::field::{Field, refuse_text};
use super::place::Place;
use super::rule::{OfRules, rule};
use super::rule_fields;
use super::secret::{KEY_SECRET, key_secret};
use super::store::store;
use super::table::Table;
use super::tree::{Entries, Node, Tree};
use super::when::Reader;
use crate::file::{Apply, At, Entry, PolicyFile, Rule};
use crate::problem::Problems;

const APPLY: [(&str, Apply); 2] = [("first", Apply::First), ("all", Apply::All)];

/// The most rules of a file, and the most entries of each of its lists.
const MAX_RULES: usize = 100_000;

/// Reads a file. An invalid part is reported, and left out.
pub(super) fn file(entries: &Entries, problems: &mut Problems) -> PolicyFile {
    let table = Table {
        entries,
        place: Place::TOP,
        position: None,
    };
    table.only("a policy", "top", problems);
    let apply = table.get("apply");
    let memory = table.get("memory");
    let secret = table.get(KEY_SECRET);
    let facts = table.get("facts").map(|facts| listed(facts, problems));
    let (client, network) = client(table.get("client"), problems);
    let (server, store) = store(table.get("store"), problems);
    let of_rules = OfRules {
        facts: facts.as_deref(),
        network,
        store,
    };
    let read_denied = |table: Table<'_>, problems: &mut Problems| {
        table.only("an entry of `deny`", "deny", problems);
        let status = rule_fields::status(&table, problems);
        let entry = entry(table, facts.as_deref(), problems)?;
        Some(Entry { status, ..entry })
    };
    let read_allowed = |table: Table<'_>, problems: &mut Problems| {
        table.only("an entry of `allow`", "allow", problems);
        entry(table, facts.as_deref(), problems)
    };
    let read_rule =
        |table: Table<'_>, problems: &mut Problems| Some(rule(table, false, &of_rules, problems));
    let read_limit =
        |table: Table<'_>, problems: &mut Problems| Some(rule(table, true, &of_rules, problems));
    let deny = items(&table, "deny", read_denied, problems);
    let allow = items(&table, "allow", read_allowed, problems);
    let mut rules: Vec<Rule> = items(&table, "rule", read_rule, problems);
    rules.extend(items(&table, "limit", read_limit, problems));
    unique(deny.iter().map(|entry| ("deny", &entry.name)), problems);
    unique(allow.iter().map(|entry| ("allow", &entry.name)), problems);
    let names = unique(rules.iter().map(|rule| (rule.kind(), &rule.name)), problems);
    also::check(&rules, &names, problems);
    PolicyFile {
        apply: apply
            .and_then(|field| field.choice(&APPLY, problems))
            .unwrap_or_default(),
        memory: memory.and_then(|field| field.number(1, u64::MAX, problems)),
        facts,
        client,
        store: server,
        key_secret: secret.and_then(|field| key_secret(field, problems)),
        deny,
        allow,
        no_rules: rules.iter().all(|rule| rule.is_limit) && table.get("rule").is_some(),
        rules,
    }
}

/// Reads the list of the facts that the program supplies.
fn listed(field: Field<'_>, problems: &mut Problems) -> Vec<At<String>> {
    let facts = field.texts("a list of names", problems);
    for fact in &facts {
        if let Err(message) = check_listed(fact) {
            refuse_text(&field.place, fact, message, problems);
        }
    }
    facts
}

/// Reads a list of tables, each with a name.
fn items<T>(
    table: &Table<'_>,
    kind: &str,
    read: impl Fn(Table<'_>, &mut Problems) -> Option<T>,
    problems: &mut Problems,
) -> Vec<T> {
    let Some(field) = table.get(kind) else {
        return Vec::new();
    };
    let list = field.list(
        &format!("a list of tables, written as [[{kind}]]"),
        problems,
    );
    if list.len() > MAX_RULES {
        let message = format!(
            "has {} elements, but may have at most {MAX_RULES}",
            list.len()
        );
        table.refuse(kind, message, problems);
        return Vec::new();
    }
    let item = |(index, node): (usize, &Node)| {
        let name = name_of(node);
        let place = Place::item(kind, name.as_deref(), index);
        let table = Table::of(Field { node, place }, "a table", problems)?;
        read(table, problems)
    };
    list.iter().enumerate().filter_map(item).collect()
}

/// Returns the name of a rule or an entry, if it has one.
fn name_of(node: &Node) -> Option<String> {
    let Tree::Table(entries) = &node.value else {
        return None;
    };
    let (_, name) = entries.iter().find(|(field, _)| field.value == "name")?;
    name.as_plain().filter(|name| !name.trim().is_empty())
}

fn entry(table: Table<'_>, facts: Option<&[At<String>]>, problems: &mut Problems) -> Option<Entry> {
    let name = table.need("name", problems);
    let name = name.and_then(|name| name.name(problems));
    let field = table.need("when", problems)?;
    let mut reader = Reader {
        facts,
        captures: &mut Vec::new(),
        problems,
    };
    let when = reader.when(field, "a table of conditions", 1)?;
    if matches!(&field.node.value, Tree::Table(entries) if entries.is_empty()) {
        field.refuse("must have a condition", problems);
    }
    Some(Entry {
        name: name?,
        when,
        status: None,
    })
}

/// Reports names that are used twice. Returns the index of each name.
fn unique<'n>(
    names: impl Iterator<Item = (&'static str, &'n At<String>)>,
    problems: &mut Problems,
) -> HashMap<String, usize> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut items = Vec::new();
    for (index, (kind, name)) in names.enumerate() {
        items.push((kind, name.position));
        if name.is_empty() {
            continue;
        }
        match known.entry(name.value.clone()) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(index);
            }
            hash_map::Entry::Occupied(entry) => {
                let first = items.get(*entry.get()).copied();
                let (first, position) = first.unwrap_or((kind, None));
                let line = position.map_or(String::new(), |it| format!(" (line {})", it.line));
                let article = if first == kind { "an earlier" } else { "a" };
                let place = Place::item(kind, Some(name), index);
                let message = format!("must not be the name of {article} {first}{line}");
                refuse_text(&place.field("name"), name, message, problems);
            }
        }
    }
    known
}
