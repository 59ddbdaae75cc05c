//! What came of a simulation.

use std::fmt;

use super::scene::{SECOND, Scene};

/// The keys that are asked for most are watched by node.
const WATCHED: usize = 8;

/// A second of all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Second {
    pub(super) requests: u64,
    /// Requests that one exact limit for each key would grant.
    pub(super) possible: u64,
    pub(super) granted: u64,
    /// Messages about leases.
    pub(super) messages: u64,
    /// Round trips for them: messages that are sent together.
    pub(super) trips: u64,
    /// Decisions by the server, each a call.
    pub(super) calls: u64,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) seconds: Vec<Second>,
    /// Granted beyond the bound.
    pub(super) over: u64,
    /// The grants of each watched key, by node, if one limit would deny some.
    by_node: Vec<Vec<u64>>,
    is_denied: Vec<bool>,
    /// Since when a node is denied a watched key.
    denied_since: Vec<Vec<Option<u64>>>,
    /// The longest time in which a node was denied a watched key.
    pub(super) longest_ns: u64,
}

impl Seen {
    pub(super) fn new(scene: &Scene) -> Self {
        let watched = WATCHED.min(scene.keys.count() as usize);
        Self {
            seconds: vec![Second::default(); scene.seconds as usize],
            over: 0,
            by_node: vec![vec![0; scene.nodes]; watched],
            is_denied: vec![false; watched],
            denied_since: vec![vec![None; scene.nodes]; watched],
            longest_ns: 0,
        }
    }

    /// Returns the second of a time. What is under way at the end counts in the last one.
    pub(super) fn second(&mut self, now: u64) -> &mut Second {
        let last = self.seconds.len() - 1;
        &mut self.seconds[last.min((now / SECOND) as usize)]
    }

    pub(super) fn asked(&mut self, now: u64, key: u64, is_possible: bool) {
        let second = self.second(now);
        second.requests += 1;
        second.possible += u64::from(is_possible);
        if let Some(is_denied) = self.is_denied.get_mut(key as usize) {
            *is_denied |= !is_possible;
        }
    }

    pub(super) fn granted(&mut self, now: u64, node: usize, key: u64) {
        self.second(now).granted += 1;
        if let Some(nodes) = self.by_node.get_mut(key as usize) {
            nodes[node] += 1;
            self.fed(now, node, key);
        }
    }

    pub(super) fn denied(&mut self, now: u64, node: usize, key: u64) {
        if let Some(nodes) = self.denied_since.get_mut(key as usize) {
            let _ = nodes[node].get_or_insert(now);
        }
    }

    /// Notes that a node is denied no more, or goes down.
    pub(super) fn fed(&mut self, now: u64, node: usize, key: u64) {
        if let Some(nodes) = self.denied_since.get_mut(key as usize) {
            let since = nodes[node].take().unwrap_or(now);
            self.longest_ns = self.longest_ns.max(now - since);
        }
    }

    pub(super) fn watched(&self) -> u64 {
        self.by_node.len() as u64
    }

    pub(super) fn sum(&self, of: impl Fn(&Second) -> u64) -> u64 {
        self.seconds.iter().map(of).sum()
    }

    pub(super) fn used_percent(&self) -> f64 {
        percent(
            self.sum(|second| second.granted),
            self.sum(|second| second.possible),
        )
    }

    /// Returns what the nodes with the fewest and with the most grants of a watched key got, in
    /// parts of the mean, over all that are not enough for all.
    pub(super) fn imbalance(&self) -> Option<(f64, f64)> {
        let scarce = self.by_node.iter().zip(&self.is_denied);
        let scarce = scarce.filter(|(_, is_denied)| **is_denied);
        let parts = scarce.flat_map(|(nodes, _)| {
            let mean = nodes.iter().sum::<u64>() as f64 / nodes.len() as f64;
            nodes.iter().map(move |granted| *granted as f64 / mean)
        });
        parts.fold(None, |found, part| {
            let (least, most) = found.unwrap_or((part, part));
            Some((part.min(least), part.max(most)))
        })
    }

    /// Returns Jain's index of the nodes' grants of the scarce keys, the lowest one: 1 if all got
    /// the same, and 1 / nodes if one got all.
    pub(super) fn fairness(&self) -> Option<f64> {
        let scarce = self.by_node.iter().zip(&self.is_denied);
        let scarce = scarce.filter(|(_, is_denied)| **is_denied);
        let indices = scarce.map(|(nodes, _)| {
            let sum = nodes.iter().sum::<u64>() as f64;
            let squares: f64 = nodes.iter().map(|granted| (*granted as f64).powi(2)).sum();
            sum * sum / (nodes.len() as f64 * squares)
        });
        indices.reduce(f64::min)
    }
}

fn percent(part: u64, of: u64) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

fn bar(part: u64, most: u64) -> String {
    let length = (part * 30).div_ceil(most.max(1));
    "=".repeat(length as usize)
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds.len().max(1) as u64;
        let [requests, possible, messages, trips, calls] = [
            self.sum(|second| second.requests),
            self.sum(|second| second.possible),
            self.sum(|second| second.messages),
            self.sum(|second| second.trips),
            self.sum(|second| second.calls),
        ];
        writeln!(
            f,
            "  {:.1} % of {possible} used, {} over, {} requests a second, {} messages in {} trips, \
             and {} calls",
            self.used_percent(),
            self.over,
            requests / seconds,
            messages / seconds,
            trips / seconds,
            calls / seconds,
        )?;
        if let (Some((least, most)), Some(index)) = (self.imbalance(), self.fairness()) {
            writeln!(
                f,
                "  scarce keys: fairness {index:.3}, a node got {least:.2} to {most:.2} of the mean, \
                 and nothing for {} ms at most",
                self.longest_ns / 1_000_000
            )?;
        }
        Ok(())
    }
}

/// What came of each second, as a picture.
pub(super) struct Plot<'a>(pub(super) &'a Seen);

impl fmt::Display for Plot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = &self.0.seconds;
        let most = |of: fn(&Second) -> u64| seconds.iter().map(of).max().unwrap_or(0);
        let (most_possible, most_asks) = (
            most(|second| second.possible),
            most(|second| second.messages + second.calls),
        );
        writeln!(
            f,
            "second  used  of what one limit grants        asked of the server"
        )?;
        for (i, second) in seconds.iter().enumerate() {
            let asks = second.messages + second.calls;
            writeln!(
                f,
                "{i:>6} {:>5.1} {:<30} {asks:>8} {}",
                percent(second.granted, second.possible),
                bar(second.granted, most_possible),
                bar(asks, most_asks),
            )?;
        }
        Ok(())
    }
}
