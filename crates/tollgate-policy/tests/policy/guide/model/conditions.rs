//! Conditions: tried one by one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use toml::{Table, Value};

use super::{fact_name, strings};

/// The values of each fact. Equal ones are one.
pub(super) type Facts = BTreeMap<String, Vec<String>>;

pub(super) type Captures = BTreeMap<String, String>;

/// Returns the only value of a fact.
pub(super) fn single<'f>(facts: &'f Facts, name: &str) -> Option<&'f String> {
    match facts.get(name)?.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// Returns what the path captures, or `None` if a condition does not hold. `each` says whether it
/// has to hold for each value.
pub(super) fn holds(when: Option<&Value>, facts: &Facts, each: bool) -> Option<Captures> {
    let mut captures = Captures::new();
    let Some(when) = when else {
        return Some(captures);
    };
    // Otherwise it is `never`.
    for (name, test) in when.as_table()? {
        match (name.as_str(), test) {
            ("any", Value::Array(list)) => {
                list.iter()
                    .find(|one| holds(Some(one), facts, each).is_some())?;
            }
            ("not", _) if holds(Some(test), facts, !each).is_some() => return None,
            ("not", _) => {}
            ("header" | "query" | "cookie", Value::Table(tests)) => {
                for (part, test) in tests {
                    let fact = format!("{name}:{part}");
                    passes(&fact, test, facts, each, &mut captures).then_some(())?;
                }
            }
            _ => passes(&fact_name(name), test, facts, each, &mut captures).then_some(())?,
        }
    }
    Some(captures)
}

fn passes(name: &str, test: &Value, facts: &Facts, each: bool, captures: &mut Captures) -> bool {
    let values = facts.get(name).map_or(&[][..], Vec::as_slice);
    if let Value::Boolean(is_there) = test {
        return values.is_empty() != *is_there;
    }
    let mut passes = values
        .iter()
        .map(|fact| value_passes(name, test, fact, captures));
    match each {
        true => !values.is_empty() && passes.all(|it| it),
        false => passes.any(|it| it),
    }
}

fn value_passes(name: &str, test: &Value, fact: &str, captures: &mut Captures) -> bool {
    if let Value::Table(forms) = test {
        return forms.iter().all(|(form, values)| {
            let mut values = strings(Some(values)).into_iter();
            values.any(|value| match form.as_str() {
                "equal" => fact == value,
                "prefix" => fact.starts_with(&value),
                "suffix" => fact.ends_with(&value),
                "glob" => glob(&value, fact),
                "network" => is_in(fact, &value),
                _ => unreachable!("{form}"),
            })
        });
    }
    let mut values = strings(Some(test)).into_iter();
    values.any(|value| match name {
        "path" => path(&segments(&value), &segments(fact), captures),
        "client-ip" => is_in(fact, &value),
        "host" => {
            let host = fact.split(':').next().unwrap_or_default();
            glob(&value.to_lowercase(), &host.to_lowercase())
        }
        _ => glob(&value, fact),
    })
}

/// Compares a text with a pattern with `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| &rest[at..]);
    ends.any(|rest| glob(after, rest)) || glob(after, "")
}

fn segments(path: &str) -> Vec<&str> {
    let path = path.split('?').next().unwrap_or_default();
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .collect()
}

fn path(pattern: &[&str], actual: &[&str], captures: &mut Captures) -> bool {
    match (pattern, actual) {
        ([], _) => actual.is_empty(),
        (["**", rest @ ..], _) => (0..=actual.len()).any(|n| path(rest, &actual[n..], captures)),
        ([first, rest @ ..], [segment, after @ ..]) => {
            let name = first.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
            let fits = name.is_some() || glob(first, segment);
            let found = fits && path(rest, after, captures);
            if let (true, Some(name)) = (found, name) {
                captures.insert(format!("path:{name}"), (*segment).to_owned());
            }
            found
        }
        _ => false,
    }
}

fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    Some(address.to_canonical())
}

fn is_in(fact: &str, network: &str) -> bool {
    let network = match network.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => network.parse().expect("a network"),
    };
    address(fact).is_some_and(|address| network.contains(&address))
}

/// Returns the part of an address that counts as a key, and other values as they are.
pub(super) fn network(value: &str, rule: &Table, client: Option<&Value>) -> String {
    let Some(address) = address(value) else {
        return value.to_owned();
    };
    let (name, all) = if address.is_ipv4() {
        ("v4", 32)
    } else {
        ("v6", 64)
    };
    let networks = [rule.get("network"), client.and_then(|it| it.get("network"))];
    let mut networks = networks.into_iter().flatten();
    let bits = networks.find_map(|bits| bits.get(name)?.as_integer());
    let bits = bits.map_or(all, |bits| bits as u8);
    let network = IpNet::new(address, bits).expect("enough bits");
    network.trunc().to_string()
}
