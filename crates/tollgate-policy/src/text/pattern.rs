//! Reads what a fact is compared with.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::fact::{FactKind, FactName};
use crate::when::Pattern;

/// The ways to compare that a table can name.
pub(super) const FORMS: [&str; 5] = ["equal", "prefix", "suffix", "glob", "network"];

/// Reads a text in which `*` stands for anything.
pub(super) fn parse(fact: &FactName, text: &str) -> Result<Pattern, String> {
    match fact.kind() {
        FactKind::ClientIp => network(text),
        _ => Ok(Pattern::Equal(text.into())),
    }
}

/// Reads a text for one of the `FORMS`.
pub(super) fn explicit(fact: &FactName, form: &str, text: &str) -> Result<Pattern, String> {
    match form {
        "equal" => Ok(Pattern::Equal(text.into())),
        "prefix" => Ok(Pattern::Prefix(text.into())),
        "suffix" => Ok(Pattern::Suffix(text.into())),
        "network" => network(text),
        _ => parse(fact, text),
    }
}

/// Returns the names that a pattern captures.
pub(super) fn captures(_: &Pattern) -> Vec<String> {
    Vec::new()
}

/// Returns the form in which a pattern must be written, unless it is written as plain text. All
/// patterns of a test have the same form.
pub(super) fn form(fact: &FactName, pattern: &Pattern) -> Option<&'static str> {
    match (fact.kind(), pattern) {
        (FactKind::ClientIp, _) => None,
        (_, Pattern::Network(_)) => Some("network"),
        _ => None,
    }
}

/// Returns a pattern as it is written.
pub(super) fn text(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Network(network) => network.to_string(),
        Pattern::Equal(text) | Pattern::Prefix(text) | Pattern::Suffix(text) => text.clone(),
    }
}

fn network(text: &str) -> Result<Pattern, String> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse()
        .ok()
        .or_else(address)
        .map(Pattern::Network)
        .ok_or_else(|| "must be an address or a network, such as \"10.0.0.0/8\"".into())
}
