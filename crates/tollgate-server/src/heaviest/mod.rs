//! The keys that ask most, and those that are denied most.

mod cell;
mod sketch;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde::Serialize;
use tollgate_policy::RequestKey;

use self::sketch::Sketch;

/// The atomics of a cell, which a model replaces.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
}

/// How a request for a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Allowed,
    Denied,
    /// A rule in the shadow would deny it.
    WouldBeDenied,
}

/// The most bytes of a value that are kept. A longer one is cut.
const LONGEST: usize = 120;

/// Counts the keys of the last one to two minutes.
#[derive(Debug, Default)]
pub(crate) struct Heaviest {
    /// One is filled, and the other one has what came before.
    windows: [Window; 2],
    filled: AtomicUsize,
}

#[derive(Debug, Default)]
struct Window {
    asked: Sketch<Name>,
    denied: Sketch<Name>,
    /// Those that rules in the shadow would deny.
    would_be_denied: Sketch<Name>,
    /// When it began, in seconds since 1970.
    since: AtomicU64,
}

/// What operators call a key by.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    rule: Box<str>,
    values: Vec<String>,
}

impl Name {
    fn of(rule: &str, key: &RequestKey<'_>) -> Self {
        let mut values = key.values();
        for value in &mut values {
            if value.len() > LONGEST {
                let end = (0..=LONGEST).rev().find(|end| value.is_char_boundary(*end));
                value.truncate(end.unwrap_or(0));
                value.push('…');
                // Clients choose how much memory it had.
                value.shrink_to_fit();
            }
        }
        Self {
            rule: rule.into(),
            values,
        }
    }
}

/// The heaviest keys, as the page shows them.
#[derive(Debug, Serialize)]
pub(crate) struct Heavy {
    /// Since when keys are counted, in seconds since 1970.
    pub(crate) since: u64,
    pub(crate) denied: List,
    pub(crate) asked: List,
    pub(crate) would_be_denied: List,
}

#[derive(Debug, Serialize)]
pub(crate) struct List {
    pub(crate) keys: Vec<HeavyKey>,
    /// Each other key came at most this often.
    pub(crate) others_at_most: u64,
}

/// A key, and how often it came: at least, and at most.
#[derive(Debug, Serialize)]
pub(crate) struct HeavyKey {
    pub(crate) rule: String,
    pub(crate) values: Vec<String>,
    pub(crate) asked: (u64, u64),
    pub(crate) denied: (u64, u64),
    pub(crate) would_be_denied: (u64, u64),
}

impl Heaviest {
    pub(crate) fn new(now: u64) -> Self {
        let new = Self::default();
        new.windows
            .iter()
            .for_each(|it| it.since.store(now, Relaxed));
        new
    }

    /// Counts a request for a key of a rule, whose name has this hash.
    pub(crate) fn count(&self, rule: &str, rule_hash: u64, key: &RequestKey<'_>, end: End) {
        let Some(window) = self.windows.get(self.filled.load(Relaxed) % 2) else {
            return;
        };
        let hash = mixed(rule_hash, key.hash());
        let name = || Name::of(rule, key);
        window.asked.add(hash, name);
        match end {
            End::Allowed => {}
            End::Denied => window.denied.add(hash, name),
            End::WouldBeDenied => window.would_be_denied.add(hash, name),
        }
    }

    /// Begins a window. It takes the place of the older one.
    pub(crate) fn turn(&self, now: u64) {
        let next = self.filled.load(Relaxed) + 1;
        if let Some(window) = self.windows.get(next % 2) {
            window.asked.clear();
            window.denied.clear();
            window.would_be_denied.clear();
            window.since.store(now, Relaxed);
        }
        self.filled.store(next, Relaxed);
    }

    /// Returns the heaviest keys.
    pub(crate) fn list(&self, most: usize) -> Heavy {
        let since = self.windows.iter().map(|it| it.since.load(Relaxed));
        Heavy {
            since: since.min().unwrap_or(0),
            denied: self.list_of(most, |window| &window.denied),
            asked: self.list_of(most, |window| &window.asked),
            would_be_denied: self.list_of(most, |window| &window.would_be_denied),
        }
    }

    fn list_of(&self, most: usize, of: fn(&Window) -> &Sketch<Name>) -> List {
        let mut named = HashMap::new();
        self.windows.iter().for_each(|it| of(it).named(&mut named));
        let mut keys: Vec<_> = named
            .into_iter()
            .map(|(hash, name)| (self.bounds(hash, of), hash, name))
            .collect();
        keys.sort_by(|(one, _, one_name), (other, _, other_name)| {
            let names = || {
                let name = |it: &Arc<Name>| (it.rule.clone(), it.values.clone());
                name(one_name).cmp(&name(other_name))
            };
            other.cmp(one).then_with(names)
        });
        keys.truncate(most);
        let listed: HashSet<u64> = keys.iter().map(|(_, hash, _)| *hash).collect();
        let others = self.windows.iter().map(|it| of(it).others(&listed));
        List {
            others_at_most: others.sum(),
            keys: keys
                .into_iter()
                .map(|(_, hash, name)| HeavyKey {
                    rule: name.rule.to_string(),
                    values: name.values.clone(),
                    denied: self.bounds(hash, |window| &window.denied),
                    would_be_denied: self.bounds(hash, |window| &window.would_be_denied),
                    // Last: a key that comes now is not denied more often than it asked.
                    asked: self.bounds(hash, |window| &window.asked),
                })
                .collect(),
        }
    }

    fn bounds(&self, hash: u64, of: fn(&Window) -> &Sketch<Name>) -> (u64, u64) {
        let bounds = self.windows.iter().map(|it| of(it).bounds(hash));
        bounds.fold((0, 0), |(low, high), (at_least, at_most)| {
            (low + at_least, high + at_most)
        })
    }
}

/// Mixes the hashes of a rule and a key. Both are secret.
const fn mixed(rule: u64, key: u64) -> u64 {
    let product = (rule.rotate_left(32) ^ key) as u128 * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use tollgate_policy::Policy;

    use super::{End, Heaviest, LONGEST, Name};

    #[test]
    fn a_name_keeps_no_more_memory_than_its_text() {
        let policy = "[[rule]]\nname = 'a'\nkey = ['user', 'session']\nlimit = '5/h'";
        let policy = Policy::from_toml(policy).unwrap();
        let long = "é".repeat(500_000);
        let decision = policy.decide(&[("user", long.as_str()), ("session", "s")]);
        let key = decision.tightest().unwrap().key().unwrap();
        let name = Name::of("a", &key);
        // A boxed text has no room that it does not use.
        let values: Vec<&str> = name.values.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            values,
            [format!("{}…", "é".repeat(LONGEST / 2)).as_str(), "s"]
        );
    }

    #[test]
    fn keys_are_counted_for_one_to_two_windows() {
        let policy = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5/h'";
        let policy = Policy::from_toml(policy).unwrap();
        let decision = policy.decide(&[("user", "ann")]);
        let key = decision.tightest().unwrap().key().unwrap();
        let heaviest = Heaviest::new(100);
        let asked = |heaviest: &Heaviest| {
            let heavy = heaviest.list(9);
            let keys = heavy.asked.keys.iter();
            let asked: Vec<_> = keys.map(|it| (it.rule.clone(), it.asked)).collect();
            (heavy.since, asked)
        };
        heaviest.count("a", 1, &key, End::Allowed);
        heaviest.count("b", 2, &key, End::Denied);
        let one = |rule: &str, count| (rule.to_owned(), (count, count));
        assert_eq!(asked(&heaviest), (100, vec![one("a", 1), one("b", 1)]));
        heaviest.turn(160);
        heaviest.count("a", 1, &key, End::WouldBeDenied);
        assert_eq!(asked(&heaviest), (100, vec![one("a", 2), one("b", 1)]));
        heaviest.turn(220);
        assert_eq!(asked(&heaviest), (160, vec![one("a", 1)]));
        heaviest.turn(280);
        assert_eq!(asked(&heaviest), (220, vec![]));
    }
}
