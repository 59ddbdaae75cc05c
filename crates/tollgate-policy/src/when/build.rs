//! Builds the index of a matcher.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use ipnet::IpNet;

use super::index::{Index, NONE, Node, Probe, ProbeKind, Span, edge};
use super::key::KeyKind;
use super::networks::Networks;

/// An index whose lists still grow.
#[derive(Default)]
pub(super) struct Builder {
    index: Index,
    /// The lists of each node.
    lists: Vec<Lists>,
    /// The rules of each probe.
    found: Vec<Vec<u32>>,
    /// The networks of each probe.
    networks: HashMap<usize, Vec<(IpNet, u32)>>,
    /// The probes by their facts and kinds.
    probes: HashMap<(usize, &'static str), usize, FixedState>,
}

#[derive(Default)]
struct Lists {
    here: Vec<u32>,
    below: Vec<u32>,
}

impl Builder {
    /// Puts a rule under a key. `fact` is the number of the key's fact.
    pub(super) fn insert(&mut self, fact: usize, key: &KeyKind<'_>, rule: u32) {
        let probe = self.probe(fact, key);
        let root = self
            .index
            .probes
            .get(probe)
            .map_or(NONE, |probe| probe.root);
        if let Some(found) = self.found.get_mut(probe) {
            push_new(found, rule);
        }
        let mut below = false;
        let node = match key {
            KeyKind::Present => root,
            KeyKind::Exact(text) | KeyKind::PathEnd(text) => self.step(root, text),
            KeyKind::Prefix(text) | KeyKind::Suffix(text) => {
                self.add_length(probe, text.len());
                self.step(root, text)
            }
            KeyKind::Network(network) => self.network(probe, *network),
            KeyKind::Path(segments) => self.walk(root, segments),
            KeyKind::PathStart(segments) => {
                below = true;
                self.walk(root, segments)
            }
        };
        let Some(lists) = self.lists.get_mut(node as usize) else {
            return;
        };
        let list = if below {
            &mut lists.below
        } else {
            &mut lists.here
        };
        push_new(list, rule);
    }

    pub(super) fn build(mut self) -> Index {
        for (node, lists) in self.index.nodes.iter_mut().zip(self.lists) {
            node.here = append(&mut self.index.lists, &lists.here);
            node.below = append(&mut self.index.lists, &lists.below);
        }
        for (probe, found) in self.index.probes.iter_mut().zip(&self.found) {
            probe.all = append(&mut self.index.lists, found);
        }
        for (index, probe) in self.index.probes.iter_mut().enumerate() {
            match &mut probe.kind {
                ProbeKind::Prefix(lengths) | ProbeKind::Suffix(lengths) => lengths.sort_unstable(),
                ProbeKind::Network(v4, v6) => {
                    let networks = self.networks.remove(&index).unwrap_or_default();
                    (*v4, *v6) = by_version(&networks);
                }
                _ => {}
            }
        }
        self.index
    }

    fn probe(&mut self, fact: usize, key: &KeyKind<'_>) -> usize {
        let (name, kind) = match key {
            KeyKind::Present => ("present", ProbeKind::Present),
            KeyKind::Exact(_) => ("exact", ProbeKind::Exact),
            KeyKind::Prefix(_) => ("prefix", ProbeKind::Prefix(Vec::new())),
            KeyKind::Suffix(_) => ("suffix", ProbeKind::Suffix(Vec::new())),
            KeyKind::Network(_) => {
                let (v4, v6) = (Networks::default(), Networks::default());
                ("network", ProbeKind::Network(v4, v6))
            }
            KeyKind::Path(_) | KeyKind::PathStart(_) => ("path", ProbeKind::Path),
            KeyKind::PathEnd(_) => ("path end", ProbeKind::PathEnd),
        };
        if let Some(probe) = self.probes.get(&(fact, name)) {
            return *probe;
        }
        let root = self.node();
        let probe = self.index.probes.len();
        self.index.probes.push(Probe {
            fact,
            root,
            all: Span::default(),
            kind,
        });
        self.found.push(Vec::new());
        self.probes.insert((fact, name), probe);
        probe
    }

    fn node(&mut self) -> u32 {
        let number = number(self.index.nodes.len());
        self.index.nodes.push(Node {
            any: NONE,
            leads: false,
            here: Span::default(),
            below: Span::default(),
        });
        self.lists.push(Lists::default());
        number
    }

    /// The node that a text leads to.
    fn step(&mut self, node: u32, text: &str) -> u32 {
        let symbol = match self.index.symbols.get(text) {
            Some(symbol) => *symbol,
            None => {
                let symbol = number(self.index.symbols.len());
                self.index.symbols.insert(text.into(), symbol);
                self.index.longest = self.index.longest.max(text.len());
                symbol
            }
        };
        if let Some(next) = self.index.edges.get(&edge(node, symbol)) {
            return *next;
        }
        let next = self.node();
        self.index.edges.insert(edge(node, symbol), next);
        if let Some(node) = self.index.nodes.get_mut(node as usize) {
            node.leads = true;
        }
        next
    }

    /// The node that segments lead to.
    fn walk(&mut self, root: u32, segments: &[Option<&str>]) -> u32 {
        segments.iter().fold(root, |node, segment| match segment {
            Some(text) => self.step(node, text),
            None => self.step_any(node),
        })
    }

    fn step_any(&mut self, node: u32) -> u32 {
        let known = self.index.nodes.get(node as usize).map(|node| node.any);
        if let Some(next) = known.filter(|next| *next != NONE) {
            return next;
        }
        let next = self.node();
        if let Some(node) = self.index.nodes.get_mut(node as usize) {
            node.any = next;
        }
        next
    }

    fn network(&mut self, probe: usize, network: IpNet) -> u32 {
        let text = network.to_string();
        let root = self
            .index
            .probes
            .get(probe)
            .map_or(NONE, |probe| probe.root);
        let before = self.index.nodes.len();
        let node = self.step(root, &text);
        if self.index.nodes.len() > before {
            self.networks
                .entry(probe)
                .or_default()
                .push((network, node));
        }
        node
    }

    fn add_length(&mut self, probe: usize, length: usize) {
        let kind = self
            .index
            .probes
            .get_mut(probe)
            .map(|probe| &mut probe.kind);
        if let Some(ProbeKind::Prefix(lengths) | ProbeKind::Suffix(lengths)) = kind {
            if !lengths.contains(&length) {
                lengths.push(length);
            }
        }
    }
}

/// Adds a rule, unless it is the last one: several values can put it under the same key.
fn push_new(list: &mut Vec<u32>, rule: u32) {
    if list.last() != Some(&rule) {
        list.push(rule);
    }
}

fn append(lists: &mut Vec<u32>, list: &[u32]) -> Span {
    let start = number(lists.len());
    lists.extend(list);
    let end = number(lists.len());
    Span { start, end }
}

fn by_version(networks: &[(IpNet, u32)]) -> (Networks<u32>, Networks<u128>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (network, node) in networks {
        match network {
            IpNet::V4(network) => {
                v4.push((network.network().into(), network.broadcast().into(), *node));
            }
            IpNet::V6(network) => {
                v6.push((network.network().into(), network.broadcast().into(), *node));
            }
        }
    }
    (Networks::new(v4), Networks::new(v6))
}

/// A number of rules or nodes. No policy has four billion.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(NONE)
}
