//! Keys under which a rule can be found: what a request must have to fulfill its conditions.

use ipnet::IpNet;

use crate::facts::{FactKind, FactName};

use super::condition::{Condition, Test, When};
use super::path::{PathPattern, Segment};
use super::pattern::Pattern;

/// Something that a request has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key<'w> {
    pub(super) fact: &'w FactName,
    pub(super) kind: KeyKind<'w>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum KeyKind<'w> {
    /// The fact has a value.
    Present,
    /// The value is this text.
    Exact(&'w str),
    /// The value begins with this text.
    Prefix(&'w str),
    /// The value ends with this text.
    Suffix(&'w str),
    /// The value is an address in this network.
    Network(IpNet),
    /// The path has these segments. `None` is any segment.
    Path(Vec<Option<&'w str>>),
    /// The path begins with these segments.
    PathStart(Vec<Option<&'w str>>),
    /// The last segment of the path is this text.
    PathEnd(&'w str),
}

/// What a rule is put under: it is a candidate for requests that have one of the keys.
pub(super) struct Place<'w> {
    pub(super) keys: Vec<Key<'w>>,
    /// The condition of `all` that holds for exactly the requests that have one of the keys, if
    /// there is one.
    pub(super) implied: Option<usize>,
}

/// Where to put conditions: `None` if they have no keys.
///
/// Of each two keys that would do, it takes the one with the lower `cost`.
pub(super) fn place<'w>(when: &'w When, cost: &impl Fn(&Key<'w>) -> u64) -> Option<Place<'w>> {
    let conditions = when
        .all
        .iter()
        .enumerate()
        .filter_map(|(index, condition)| {
            let keys = alternatives(condition)?.into_iter();
            let keys: Vec<_> = keys
                .map(|keys| keys.into_iter().min_by_key(cost))
                .collect::<Option<_>>()?;
            let implied = condition
                .test
                .patterns()
                .iter()
                .all(has_exact_key)
                .then_some(index);
            Some(Place { keys, implied })
        });
    let any = || {
        let places = when.any.iter().map(|when| Some(place(when, cost)?.keys));
        let keys = places.collect::<Option<Vec<_>>>()?;
        let keys = keys.into_iter().flatten().collect();
        Some(Place {
            keys,
            implied: None,
        })
    };
    let any = if when.any.is_empty() { None } else { any() };
    let sum = |place: &Place<'w>| place.keys.iter().map(cost).sum::<u64>();
    conditions.chain(any).min_by_key(sum)
}

/// Whether each request that has the pattern's key matches it.
fn has_exact_key(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Path(path) => {
            let rest = path
                .segments()
                .iter()
                .skip_while(|segment| plain(segment).is_some());
            rest.take(2).all(|segment| *segment == Segment::Rest)
        }
        Pattern::Glob(_) => false,
        _ => true,
    }
}

/// Calls back each key that the conditions could be put under.
pub(super) fn each_key<'w>(when: &'w When, found: &mut impl FnMut(Key<'w>)) {
    let conditions = when.all.iter().filter_map(alternatives);
    conditions.flatten().flatten().for_each(&mut *found);
    for when in &when.any {
        each_key(when, found);
    }
}

/// For each value that fulfills a condition, the keys of which one is enough to find it. `None` if
/// there is a value without a key.
fn alternatives(condition: &Condition) -> Option<Vec<Vec<Key<'_>>>> {
    let fact = &condition.fact;
    let kinds = match &condition.test {
        Test::Present => vec![vec![KeyKind::Present]],
        Test::Absent => return None,
        Test::OneOf(patterns) => {
            let kinds = patterns.iter().map(|pattern| kinds(fact, pattern));
            kinds.collect::<Option<Vec<_>>>()?
        }
    };
    let keys = |kinds: Vec<_>| kinds.into_iter().map(|kind| Key { fact, kind }).collect();
    Some(kinds.into_iter().map(keys).collect())
}

/// The keys of a pattern, of which one is enough to find it.
fn kinds<'w>(fact: &FactName, pattern: &'w Pattern) -> Option<Vec<KeyKind<'w>>> {
    let is_path = fact.kind() == FactKind::Path;
    let kinds = match pattern {
        Pattern::Path(pattern) if is_path => path_kinds(pattern),
        Pattern::Network(network) => vec![KeyKind::Network(network.trunc())],
        Pattern::Prefix(text) | Pattern::Suffix(text) if text.is_empty() => vec![KeyKind::Present],
        // A path that is compared as a text is rare.
        _ if is_path => Vec::new(),
        Pattern::Path(_) => Vec::new(),
        Pattern::Equal(text) => vec![KeyKind::Exact(text)],
        Pattern::Prefix(text) => vec![KeyKind::Prefix(text)],
        Pattern::Suffix(text) => vec![KeyKind::Suffix(text)],
        Pattern::Glob(glob) => {
            let (first, last) = glob.ends();
            let first = (!first.is_empty()).then_some(KeyKind::Prefix(first));
            let last = (!last.is_empty()).then_some(KeyKind::Suffix(last));
            first.into_iter().chain(last).collect()
        }
    };
    (!kinds.is_empty()).then_some(kinds)
}

fn path_kinds(pattern: &PathPattern) -> Vec<KeyKind<'_>> {
    let segments = pattern.segments();
    let start: Vec<_> = segments.iter().map_while(plain).collect();
    if start.len() == segments.len() {
        return vec![KeyKind::Path(start)];
    }
    let mut kinds = Vec::new();
    let only_stars = segments
        .iter()
        .all(|segment| !matches!(segment, Segment::Literal(_) | Segment::Glob(_)));
    // A start without any text finds the rule for nearly all requests.
    if only_stars || start.iter().any(Option::is_some) {
        kinds.push(KeyKind::PathStart(start));
    }
    if let Some(Segment::Literal(text)) = segments.last() {
        kinds.push(KeyKind::PathEnd(text));
    }
    kinds
}

/// The text of a segment, or `None` for any text. Nothing if more depends on the segment.
fn plain(segment: &Segment) -> Option<Option<&str>> {
    match segment {
        Segment::Literal(text) => Some(Some(text)),
        Segment::One | Segment::Capture(_) => Some(None),
        Segment::Glob(_) | Segment::Rest => None,
    }
}
