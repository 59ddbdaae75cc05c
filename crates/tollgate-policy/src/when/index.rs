//! The index of a matcher: from what a request has to the rules that are worth a test.
//!
//! A rule is listed under the hash of a part of a value that its requests have, such as the literal
//! segments of its path. Other values can have the same hash, so what is found is tested as a
//! whole.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use ipnet::IpNet;
use smallvec::SmallVec;

use crate::facts::{FactKind, FactName};

use super::condition::{Condition, Test, When};
use super::input::{Input, Inputs};
use super::path::{Segment, next_segment, segments};
use super::pattern::Pattern;

/// Lists of rules, in ascending order.
pub(super) type Lists<'m> = SmallVec<[&'m [u32]; 16]>;

/// The most bytes of a text that are hashed, so that a long value costs little.
const MAX_HASHED: usize = 512;

/// The part of a value that leads to rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Whole,
    /// This many bytes at the start. Each value has 0 bytes.
    Start(usize),
    End(usize),
    /// Some of the first 8 segments of a path: the lowest bit is the first one.
    Segments(u8),
    LastSegment,
    /// The network of an address, with this many bits.
    Network(u8),
}

/// A part of a fact, and the hash of what it must be.
type Key<'w> = (&'w FactName, Part, u64);

/// The rules by one part of one fact.
#[derive(Debug)]
struct Probe {
    fact: usize,
    part: Part,
    /// All rules that it can find.
    all: Vec<u32>,
    lists: HashMap<u64, Vec<u32>, FixedState>,
}

/// Finds rules by parts of a request's facts.
#[derive(Debug, Default)]
pub(super) struct Index {
    probes: Vec<Probe>,
    /// The rules that no part leads to.
    pub(super) others: Vec<u32>,
}

impl Index {
    /// Lists rules by their conditions, each under the key that it shares with the fewest others.
    /// `facts` are all facts that the conditions read, sorted.
    pub(super) fn new(whens: &[When], facts: &[FactName]) -> Self {
        let mut shared: HashMap<Key<'_>, u64, FixedState> = HashMap::default();
        for when in whens {
            each_key(when, &mut |key| *shared.entry(key).or_default() += 1);
        }
        let cost = |keys: &Vec<Key<'_>>| keys.iter().filter_map(|key| shared.get(key)).sum::<u64>();
        let mut index = Self::default();
        for (rule, when) in (0..).zip(whens) {
            match place(when, &cost) {
                Some(keys) => keys.into_iter().for_each(|key| index.add(key, facts, rule)),
                None => index.others.push(rule),
            }
        }
        index
    }

    fn add(&mut self, (fact, part, hash): Key<'_>, facts: &[FactName], rule: u32) {
        let fact = facts.binary_search(fact).unwrap_or(usize::MAX);
        let is_of = |probe: &&mut Probe| (probe.fact, probe.part) == (fact, part);
        let Some(probe) = self.probes.iter_mut().find(is_of) else {
            let all = vec![rule];
            let lists = HashMap::from_iter([(hash, all.clone())]);
            return self.probes.push(Probe {
                fact,
                part,
                all,
                lists,
            });
        };
        for list in [&mut probe.all, probe.lists.entry(hash).or_default()] {
            // Several values can put a rule under the same key.
            if list.last() != Some(&rule) {
                list.push(rule);
            }
        }
    }

    /// Adds the lists of a request. `inputs` returns a fact by its number.
    pub(super) fn push_lists<'m, 'i, 'v: 'i>(
        &'m self,
        inputs: impl Fn(usize) -> Option<&'i Inputs<'v>>,
        lists: &mut Lists<'m>,
    ) {
        if !self.others.is_empty() {
            lists.push(&self.others);
        }
        let mut path = Path::new();
        for probe in &self.probes {
            match inputs(probe.fact) {
                None | Some(Inputs::None) => {}
                Some(Inputs::One(input)) => probe.push(input, &mut path, lists),
                // A value that is not known can be any.
                Some(Inputs::Several { more: true, .. }) => lists.push(&probe.all),
                Some(Inputs::Several { known, .. }) => {
                    for input in known {
                        probe.push(input, &mut Path::new(), lists);
                    }
                }
            }
        }
        if lists.len() > self.probes.len() {
            // Several values can lead to the same list.
            lists.sort_unstable_by_key(|list| list.as_ptr());
            lists.dedup_by_key(|list| list.as_ptr());
        }
    }
}

impl Probe {
    /// Adds the rules of a value. `path` keeps the hashes of its segments for the next probe.
    #[inline]
    fn push<'m>(&'m self, input: &Input<'_>, path: &mut Path, lists: &mut Lists<'m>) {
        let hash = self.part.hash(input, path);
        if let Some(list) = hash.and_then(|hash| self.lists.get(&hash)) {
            lists.push(list);
        }
    }
}

/// The hashes of the first segments of a path.
type Path = SmallVec<[u64; 8]>;

impl Part {
    /// Returns the hash of this part of a value, if the value has it.
    #[inline]
    fn hash(self, input: &Input<'_>, path: &mut Path) -> Option<u64> {
        let bytes = || input.text().as_bytes();
        Some(match self {
            Self::Whole => hash(bytes()),
            Self::Start(length) => hash(bytes().get(..length)?),
            Self::End(length) => hash(bytes().get(bytes().len().checked_sub(length)?..)?),
            Self::Segments(places) => {
                if path.is_empty() {
                    push_segments(input.text(), path);
                }
                at_places(places, path)?
            }
            Self::LastSegment => hash(segments(input.text()).next_back()?.as_bytes()),
            Self::Network(bits) => of_network(IpNet::new(input.address()?, bits).ok()?),
        })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(bytes.get(..MAX_HASHED).unwrap_or(bytes));
    hasher.finish()
}

fn of_network(network: IpNet) -> u64 {
    FixedState::default().hash_one(network.trunc())
}

fn push_segments(mut text: &str, path: &mut Path) {
    while let (0..8, Some((segment, rest))) = (path.len(), next_segment(text)) {
        path.push(hash(segment.as_bytes()));
        text = rest;
    }
}

/// Returns the hash of the segments at these places, if all of them exist.
#[inline]
fn at_places(mut places: u8, segments: &[u64]) -> Option<u64> {
    if u8::BITS.saturating_sub(places.leading_zeros()) as usize > segments.len() {
        return None;
    }
    let mut sum = 0_u64;
    for segment in segments {
        let is_wanted = u64::from(places & 1);
        sum = sum.rotate_left(8) ^ (segment * is_wanted);
        places >>= 1;
        if places == 0 {
            break;
        }
    }
    Some(sum)
}

/// Returns keys such that each request that fulfills the conditions has one of the keys, or `None`.
/// If several lists of keys would do, returns the one with the lowest `cost`.
fn place<'w>(when: &'w When, cost: &impl Fn(&Vec<Key<'w>>) -> u64) -> Option<Vec<Key<'w>>> {
    let any = when.any.iter().map(|when| place(when, cost));
    let any = any.collect::<Option<Vec<_>>>().map(|keys| keys.concat());
    let any = any.filter(|_| !when.any.is_empty());
    let all = when.all.iter().filter_map(keys);
    all.chain(any).min_by_key(cost)
}

/// Calls back each key that the conditions could be listed under.
fn each_key<'w>(when: &'w When, found: &mut impl FnMut(Key<'w>)) {
    when.all
        .iter()
        .filter_map(keys)
        .flatten()
        .for_each(&mut *found);
    when.any.iter().for_each(|when| each_key(when, found));
}

/// Returns a key for each value that fulfills a condition. `None` if there is a value without one.
fn keys(condition: &Condition) -> Option<Vec<Key<'_>>> {
    let fact = &condition.fact;
    let key = |pattern| {
        let (part, hash) = key(fact.kind() == FactKind::Path, pattern)?;
        Some((fact, part, hash))
    };
    match &condition.test {
        Test::Present => Some(vec![(fact, Part::Start(0), hash(b""))]),
        Test::Absent => None,
        Test::OneOf(patterns) => patterns.iter().map(key).collect(),
    }
}

/// Returns a part that each value matching a pattern has, and the part's hash.
fn key(is_path: bool, pattern: &Pattern) -> Option<(Part, u64)> {
    let (first, last) = match pattern {
        Pattern::Path(pattern) if is_path => return key_of_path(pattern.segments()),
        Pattern::Network(it) => {
            return Some((Part::Network(it.prefix_len()), of_network(*it)));
        }
        // A path that is compared as a text is rare.
        _ if is_path => return None,
        Pattern::Path(_) => return None,
        Pattern::Equal(text) => return Some((Part::Whole, hash(text.as_bytes()))),
        Pattern::Prefix(text) => (text.as_str(), ""),
        Pattern::Suffix(text) => ("", text.as_str()),
        Pattern::Glob(glob) => Some(glob.ends()).filter(|ends| *ends != ("", ""))?,
    };
    Some(match first.len() >= last.len() {
        true => (Part::Start(first.len()), hash(first.as_bytes())),
        false => (Part::End(last.len()), hash(last.as_bytes())),
    })
}

/// Returns the literal segments before `**`, or else the last one if it is literal. Each path has
/// what stars alone match.
fn key_of_path(segments: &[Segment]) -> Option<(Part, u64)> {
    let is_text = |it: &Segment| matches!(it, Segment::Literal(_) | Segment::Glob(_));
    let first = segments.iter().take_while(|it| **it != Segment::Rest);
    let mut hashes = Path::new();
    let mut places = 0;
    for (bit, segment) in first.take(8).enumerate() {
        match segment {
            Segment::Literal(text) => {
                places |= 1 << bit;
                hashes.push(hash(text.as_bytes()));
            }
            _ => hashes.push(0),
        }
    }
    match segments.last() {
        _ if places > 0 => Some((Part::Segments(places), at_places(places, &hashes)?)),
        Some(Segment::Literal(text)) => Some((Part::LastSegment, hash(text.as_bytes()))),
        _ => (!segments.iter().any(is_text)).then(|| (Part::Start(0), hash(b""))),
    }
}
