//! Reads the names of facts.

use super::field::Field;
use super::nearest::known_names;
use crate::facts::{FactKind, FactName};
use crate::file::At;
use crate::problem::{Problems, quoted};

/// The names that the policy knows itself, and the prefixes of names in two parts.
const PREFIXES: [&str; 5] = ["header:", "query:", "cookie:", "path:", "response-header:"];
const OWN: [&str; 4] = ["method", "path", "host", "client-ip"];

/// What a field may name, besides the facts of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed<'a> {
    /// The facts that the program supplies, if the file lists them.
    pub(super) facts: Option<&'a [At<String>]>,
    /// What the rule's paths capture.
    pub(super) captures: &'a [String],
    /// Whether the field is read when there is an answer.
    pub(super) answer: bool,
}

/// Reads the name of a fact.
pub(super) fn fact(
    field: Field<'_>,
    allowed: Allowed<'_>,
    problems: &mut Problems,
) -> Option<At<FactName>> {
    let text = field.text("the name of a fact", problems)?;
    match check(&text, allowed) {
        Ok(value) => Some(At {
            value,
            position: text.position,
        }),
        Err(message) => {
            field.refuse(message, problems);
            None
        }
    }
}

/// Checks a name that may also be registered by the program, so plain names may be anything.
/// Returns the name as the policy knows it.
pub(super) fn check_or_registered(name: &str, allowed: Allowed<'_>) -> Result<String, String> {
    let allowed = Allowed {
        facts: None,
        ..allowed
    };
    check(name, allowed).map(|name| name.as_str().into())
}

/// Checks a name. The error says what is allowed.
pub(super) fn check(text: &str, allowed: Allowed<'_>) -> Result<FactName, String> {
    let name = FactName::new(text);
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("must be a fact's name, without white space".into());
    }
    match name.kind() {
        FactKind::Header("")
        | FactKind::Query("")
        | FactKind::Cookie("")
        | FactKind::PathPart("")
        | FactKind::ResponseHeader("") => {
            return Err("must have a name after the colon or the dot".into());
        }
        FactKind::ResponseHeader(_) if !allowed.answer => {
            return Err(
                "must be a fact of the request: only `cost.settle` can read the answer".into(),
            );
        }
        FactKind::PathPart(part) if !allowed.captures.iter().any(|known| known == part) => {
            let captures = allowed.captures.iter().map(String::as_str);
            return Err(format!(
                "must name a part that a path of the rule's `when` captures{}",
                known_names(part, captures)
            ));
        }
        FactKind::Other(plain) => check_plain(plain, allowed)?,
        _ => {}
    }
    Ok(name)
}

fn check_plain(name: &str, allowed: Allowed<'_>) -> Result<(), String> {
    if let Some((prefix, _)) = name.split_once(':') {
        let prefix = format!("{prefix}:");
        return Err(format!(
            "{} is not a kind of fact{}",
            quoted(&prefix),
            known_names(&prefix, PREFIXES.into_iter())
        ));
    }
    let Some(facts) = allowed.facts else {
        return Ok(());
    };
    if facts.iter().any(|known| known.value == name) {
        return Ok(());
    }
    let known = OWN
        .into_iter()
        .chain(facts.iter().map(|known| known.as_str()));
    Err(format!(
        "is not a fact that the file lists in `facts`{}",
        known_names(name, known)
    ))
}

/// Checks a name of the list `facts`.
pub(super) fn check_listed(name: &str) -> Result<(), String> {
    let is_plain = !name.contains(|c: char| c == ':' || c.is_control() || c.is_whitespace());
    match FactName::new(name).kind() {
        FactKind::Other(_) if !is_plain => {
            Err("must be a plain name, without colons and white space".into())
        }
        FactKind::Other(_) => Ok(()),
        _ => Err("must not be a fact that every policy knows".into()),
    }
}
