//! The parts of values that lead to rules, such as the literal segments of a path.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use ipnet::IpNet;
use smallvec::SmallVec;

use crate::facts::{FactKind, FactName};

use super::condition::{Condition, Test, When};
use super::input::Input;
use super::path::{Segment, next_segment, segments};
use super::pattern::Pattern;

/// The most bytes of a text that are hashed, so that a long value costs little.
const MAX_HASHED: usize = 512;

/// A part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
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
pub(super) type Key<'w> = (&'w FactName, Part, u64);

/// The hashes of the first segments of a path.
pub(super) type Path = SmallVec<[u64; 8]>;

impl Part {
    /// Returns the hash of this part of a value, if the value has it. `path` keeps the hashes of
    /// its segments for the next part.
    #[inline]
    pub(super) fn hash(self, input: &Input<'_>, path: &mut Path) -> Option<u64> {
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
            Self::Network(bits) => {
                let network = IpNet::new(input.address()?, bits).ok()?;
                FixedState::default().hash_one(network.trunc())
            }
        })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(bytes.get(..MAX_HASHED).unwrap_or(bytes));
    hasher.finish()
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
    let end = u8::BITS.saturating_sub(places.leading_zeros());
    let mut sum = 0_u64;
    for segment in segments.get(..end as usize)? {
        let is_wanted = u64::from(places & 1);
        sum = sum.rotate_left(8) ^ (segment * is_wanted);
        places >>= 1;
    }
    Some(sum)
}

/// Returns keys such that each request that fulfills the conditions has one of the keys, or `None`.
/// If several lists of keys would do, returns the one with the lowest `cost`.
pub(super) fn place<'w>(
    when: &'w When,
    cost: &impl Fn(&Vec<Key<'w>>) -> u64,
) -> Option<Vec<Key<'w>>> {
    let any = when.any.iter().map(|when| place(when, cost));
    let any = any.collect::<Option<Vec<_>>>().map(|keys| keys.concat());
    let any = any.filter(|_| !when.any.is_empty());
    let all = when.all.iter().filter_map(keys);
    all.chain(any).min_by_key(cost)
}

/// Calls back each key that the conditions could be listed under.
pub(super) fn each_key<'w>(when: &'w When, found: &mut impl FnMut(Key<'w>)) {
    let all = when.all.iter().filter_map(keys);
    all.flatten().for_each(&mut *found);
    when.any.iter().for_each(|when| each_key(when, found));
}

/// Returns a key for each value that fulfills a condition. `None` if there is a value without one.
fn keys(condition: &Condition) -> Option<Vec<Key<'_>>> {
    let fact = &condition.fact;
    let key = |(part, text): (Part, String)| {
        let hash = part.hash(&Input::Text(text.into()), &mut Path::new())?;
        Some((fact, part, hash))
    };
    let is_path = fact.kind() == FactKind::Path;
    match &condition.test {
        Test::Present => Some(vec![key(EACH)?]),
        Test::Absent => None,
        Test::OneOf(patterns) => patterns.iter().map(|it| key(part(is_path, it)?)).collect(),
    }
}

/// A part that each value has.
const EACH: (Part, String) = (Part::Start(0), String::new());

/// Returns a part that is the same in each value that matches a pattern, and a text with this part.
fn part(is_path: bool, pattern: &Pattern) -> Option<(Part, String)> {
    // A path that is compared as a text is rare.
    if is_path != matches!(pattern, Pattern::Path(_)) {
        return None;
    }
    let (first, last) = match pattern {
        Pattern::Network(it) => {
            return Some((Part::Network(it.prefix_len()), it.addr().to_string()));
        }
        Pattern::Path(pattern) => return part_of_path(pattern.segments()),
        Pattern::Equal(text) => return Some((Part::Whole, text.clone())),
        Pattern::Prefix(text) => (text.as_str(), ""),
        Pattern::Suffix(text) => ("", text.as_str()),
        Pattern::Glob(glob) => Some(glob.ends()).filter(|ends| *ends != ("", ""))?,
    };
    Some(match first.len() >= last.len() {
        true => (Part::Start(first.len()), first.into()),
        false => (Part::End(last.len()), last.into()),
    })
}

/// Returns the literal segments before `**`, or else the last one if it is literal. Each path has
/// what stars alone match.
fn part_of_path(segments: &[Segment]) -> Option<(Part, String)> {
    let is_text = |it: &Segment| matches!(it, Segment::Literal(_) | Segment::Glob(_));
    let first = segments.iter().take_while(|it| **it != Segment::Rest);
    let (mut places, mut path) = (0, String::new());
    for (bit, segment) in first.take(8).enumerate() {
        path.push('/');
        match segment {
            Segment::Literal(text) => {
                places |= 1 << bit;
                path.push_str(text);
            }
            _ => path.push('*'),
        }
    }
    match segments.last() {
        _ if places > 0 => Some((Part::Segments(places), path)),
        Some(Segment::Literal(text)) => Some((Part::LastSegment, text.to_string())),
        _ => (!segments.iter().any(is_text)).then_some(EACH),
    }
}
