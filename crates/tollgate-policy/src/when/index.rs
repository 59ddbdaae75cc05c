//! The index of a matcher: from what a request has to the rules that are worth a look.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::input::{Input, Inputs};
use super::networks::Networks;
use super::path::{next_segment, segments};

/// Lists of rules, in ascending order.
pub(super) type Sources<'m> = SmallVec<[&'m [u32]; 16]>;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A graph whose nodes have lists of rules. Facts lead from a node to others: a segment of a path,
/// or a whole value.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The texts that lead from some node to another, as numbers.
    pub(super) symbols: HashMap<Box<str>, u32, FixedState>,
    /// The length of the longest of these texts.
    pub(super) longest: usize,
    /// From a node and a text to the next node.
    pub(super) edges: HashMap<u64, u32, FixedState>,
    pub(super) nodes: Vec<Node>,
    /// The lists of all nodes.
    pub(super) lists: Vec<u32>,
    pub(super) probes: Vec<Probe>,
}

#[derive(Debug)]
pub(super) struct Node {
    /// The next node by any segment.
    pub(super) any: u32,
    /// Whether texts lead from here to other nodes.
    pub(super) leads: bool,
    /// The rules of requests that end here.
    pub(super) here: Span,
    /// The rules of requests that come through here.
    pub(super) below: Span,
}

/// A part of `lists`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A way to ask about one fact.
#[derive(Debug)]
pub(super) struct Probe {
    /// The number of the fact.
    pub(super) fact: usize,
    pub(super) root: u32,
    /// All rules that it can find.
    pub(super) all: Span,
    pub(super) kind: ProbeKind,
}

#[derive(Debug)]
pub(super) enum ProbeKind {
    Present,
    Exact,
    /// Prefixes of these lengths.
    Prefix(Vec<usize>),
    /// Suffixes of these lengths.
    Suffix(Vec<usize>),
    Network(Networks<u32>, Networks<u128>),
    Path,
    PathEnd,
}

impl Index {
    /// Adds the lists of a request to `sources`. `inputs` returns a fact by its number.
    pub(super) fn collect<'m, 'i, 'v: 'i>(
        &'m self,
        inputs: impl Fn(usize) -> Option<&'i Inputs<'v>>,
        sources: &mut Sources<'m>,
    ) {
        let mut several = false;
        for probe in &self.probes {
            match inputs(probe.fact) {
                None | Some(Inputs::None) => {}
                Some(Inputs::One(input)) => self.push_probe(probe, input, sources),
                // A value that is not known can be any.
                Some(Inputs::Several { more: true, .. }) => self.push(probe.all, sources),
                Some(Inputs::Several { known, more: false }) => {
                    several = true;
                    for input in known {
                        self.push_probe(probe, input, sources);
                    }
                }
            }
        }
        if several {
            // Several values can lead to the same list.
            sources.sort_unstable_by_key(|list| list.as_ptr());
            sources.dedup_by_key(|list| list.as_ptr());
        }
    }

    /// Adds the lists of one value.
    #[inline]
    fn push_probe<'m>(&'m self, probe: &'m Probe, input: &Input<'_>, sources: &mut Sources<'m>) {
        let root = probe.root;
        match &probe.kind {
            ProbeKind::Present => self.push_here(root, sources),
            ProbeKind::Exact => self.push_text(root, input.text(), sources),
            ProbeKind::Prefix(lengths) => {
                let text = input.text();
                let prefixes = lengths.iter().map_while(|length| part(text, 0, *length));
                prefixes.for_each(|prefix| self.push_text(root, prefix, sources));
            }
            ProbeKind::Suffix(lengths) => {
                let text = input.text();
                let starts = lengths
                    .iter()
                    .map_while(|length| text.len().checked_sub(*length));
                let suffixes = starts.map_while(|start| part(text, start, text.len()));
                suffixes.for_each(|suffix| self.push_text(root, suffix, sources));
            }
            ProbeKind::Network(v4, v6) => {
                let push = |node| self.push_here(node, sources);
                match input.address() {
                    Some(IpAddr::V4(address)) => v4.each(address.into(), push),
                    Some(IpAddr::V6(address)) => v6.each(address.into(), push),
                    None => {}
                }
            }
            ProbeKind::Path => self.push_path(root, input.text(), sources),
            ProbeKind::PathEnd => {
                if let Some(last) = segments(input.text()).next_back() {
                    self.push_text(root, last, sources);
                }
            }
        }
    }

    /// Goes along all paths of the graph that the segments allow.
    fn push_path<'m>(&'m self, root: u32, path: &str, sources: &mut Sources<'m>) {
        // Where the path goes on after a node at which it could go two ways.
        let mut branches: SmallVec<[(u32, &str); 4]> = SmallVec::new();
        let (mut at, mut rest) = (root, path);
        loop {
            let next = self.nodes.get(at as usize).and_then(|node| {
                self.push(node.below, sources);
                let Some((segment, after)) = next_segment(rest) else {
                    self.push(node.here, sources);
                    return None;
                };
                rest = after;
                let any = (node.any != NONE).then_some(node.any);
                let next = if node.leads {
                    self.next(at, segment)
                } else {
                    None
                };
                if let (Some(any), Some(_)) = (any, next) {
                    branches.push((any, after));
                }
                next.or(any)
            });
            (at, rest) = match next.map(|next| (next, rest)).or_else(|| branches.pop()) {
                Some(next) => next,
                None => return,
            };
        }
    }

    fn push_text<'m>(&'m self, root: u32, text: &str, sources: &mut Sources<'m>) {
        if let Some(node) = self.next(root, text) {
            self.push_here(node, sources);
        }
    }

    fn push_here<'m>(&'m self, node: u32, sources: &mut Sources<'m>) {
        if let Some(node) = self.nodes.get(node as usize) {
            self.push(node.here, sources);
        }
    }

    #[inline]
    fn push<'m>(&'m self, span: Span, sources: &mut Sources<'m>) {
        if span.start == span.end {
            return;
        }
        if let Some(list) = self.lists.get(span.start as usize..span.end as usize) {
            sources.push(list);
        }
    }

    /// The node that a text leads to.
    #[inline]
    fn next(&self, node: u32, text: &str) -> Option<u32> {
        // A long text is not even hashed.
        if text.len() > self.longest {
            return None;
        }
        let symbol = self.symbols.get(text)?;
        self.edges.get(&edge(node, *symbol)).copied()
    }
}

/// The key of an edge. One number is faster to hash than two.
pub(super) fn edge(node: u32, symbol: u32) -> u64 {
    u64::from(node) << 32 | u64::from(symbol)
}

/// A part of a text. It is empty if it would begin or end in the middle of a character, and `None`
/// beyond the text's end.
fn part(text: &str, start: usize, end: usize) -> Option<&str> {
    (end <= text.len()).then(|| text.get(start..end).unwrap_or_default())
}
