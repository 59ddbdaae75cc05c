//! Reads how a program finds the client of a request.

use super::field::{Field, refuse_text};
use super::rule_fields::{NETWORKS, networks};
use super::table::Table;
use super::tree::{Tree, at};
use crate::file::{At, ClientSettings, Networks, SeenPath};
use crate::problem::Problems;
use crate::when::Pattern;

const PATHS: [(&str, SeenPath); 3] = [
    ("decoded", SeenPath::Decoded),
    ("as-sent", SeenPath::AsSent),
    ("normalized", SeenPath::Normalized),
];

/// Reads the settings of clients, and how many bits of an address count unless a rule says so.
pub(super) fn client(
    field: Option<Field<'_>>,
    problems: &mut Problems,
) -> (ClientSettings, Networks) {
    let what = "a table, written as [client]";
    let Some(table) = field.and_then(|field| Table::of(field, what, problems)) else {
        return (ClientSettings::default(), NETWORKS);
    };
    table.only("a client", "client", problems);
    let trust = table.get("trust");
    let hops = table.get("hops");
    let header = table.get("header");
    let is_empty =
        trust.is_some_and(|trust| matches!(&trust.node.value, Tree::List(list) if list.is_empty()));
    if let Some(hops) = hops.filter(|_| is_empty) {
        hops.refuse("is not read, because `trust` names no proxy", problems);
    }
    let trusts_any = hops.is_some() || (trust.is_some() && !is_empty);
    match (trusts_any, header) {
        (true, None) => {
            let message = "is missing, but a proxy that is trusted must write one, such as \
                           \"x-forwarded-for\"";
            table.refuse("header", message, problems);
        }
        (false, Some(header)) => {
            header.refuse(
                "is not read unless `trust` or `hops` says which proxies write it",
                problems,
            );
        }
        _ => {}
    }
    let settings = ClientSettings {
        trust: trust.map(|trust| match is_empty {
            true => Vec::new(),
            false => trusted(trust, problems),
        }),
        hops: hops
            .and_then(|hops| hops.number(1, u8::MAX.into(), problems))
            .and_then(|hops| Some(at(hops.value.try_into().ok()?, hops.position))),
        header: header.and_then(|header| header_name(header, problems)),
        path: table
            .get("path")
            .and_then(|path| path.choice(&PATHS, problems)),
    };
    (settings, networks(&table, &NETWORKS, problems))
}

/// Reads the networks of trusted proxies.
fn trusted(field: Field<'_>, problems: &mut Problems) -> Vec<At<ipnet::IpNet>> {
    let mut trusted = Vec::new();
    for text in field.texts("an address or a network, such as \"10.0.0.0/8\"", problems) {
        match Pattern::network(&text) {
            Ok(Pattern::Network(network)) => trusted.push(at(network, text.position)),
            Ok(_) => {}
            Err(error) => refuse_text(&field.place, &text, error.to_string(), problems),
        }
    }
    trusted
}

/// Reads the name of a header, in lower case.
fn header_name(field: Field<'_>, problems: &mut Problems) -> Option<At<String>> {
    let name = field.text("the name of a header", problems)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.len() > 64 || !name.bytes().all(is_token) {
        let message = "must be the name of a header: 1 to 64 letters, digits and `-`";
        field.refuse(message, problems);
        return None;
    }
    Some(at(name.to_lowercase(), name.position))
}
