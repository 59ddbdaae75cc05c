//! What a limit is made from, and what its text says.

use std::collections::BTreeSet;

use tollgate::AnyAlgorithm;
use tollgate::clock::UtcClock;
use tollgate::error::{LimiterError, ParseAlgorithmError};

use super::hash::Hashed;
use crate::file::secret::Secret;
use crate::file::{Allowance, At, Fallback, Rule};
use crate::parse::known_names;

/// What a limit of a registered algorithm or store is made from. A
/// [`RemoteStore`](crate::RemoteStore) gets no clock.
#[derive(Debug)]
#[non_exhaustive]
pub struct LimitSpec<'s, C = ()> {
    /// The name of the rule.
    pub rule: &'s str,
    /// The position of the limit among those of the rule.
    pub index: usize,
    /// The text of the limit, or of each plan if the rule has plans: for an algorithm what follows
    /// its name, for a store the whole text.
    pub limits: Vec<&'s str>,
    /// The names of the plans, in the order of `limits`. Empty if the limit has no plans.
    pub plans: Vec<&'s str>,
    /// Whether this is the limit of one key alone, which an [override](crate::file::Override) gives
    /// it in place of the rule's. It has no plans.
    pub is_override: bool,
    /// Whether the rule has a key. If not, all requests have the same empty one.
    pub has_key: bool,
    /// The number of keys in use at once.
    pub capacity: usize,
    /// What happens to a new key that finds no slot.
    pub overflow: tollgate::keyed::Overflow,
    /// What decides while the store does not answer.
    pub fallback: &'s Fallback,
    /// Whether the store lends permits to this process ahead of need, so that most decisions make
    /// no call. A store that can't do this refuses the limit.
    pub is_leased: bool,
    /// The permits of each key that this process grants without the store. Only with `is_leased`. A
    /// store that can't do this refuses the limit.
    pub allowance: Option<&'s Allowance>,
    /// Whether the store may remember denials for up to a second, so that a flood of denied
    /// requests makes no calls: the rule says so, or nothing in it gives permits back.
    pub remembers_denials: bool,
    /// The secret by which a store hides keys, if the file has one. Only a store that
    /// [takes](crate::RemoteStore::take_key_secret) secrets gets one.
    pub key_secret: Option<&'s Secret>,
    /// The policy's clock.
    pub clock: &'s C,
    /// The hasher for a `Keyed` table.
    pub hasher: Hashed,
}

/// What a limit's text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spec {
    /// An algorithm of the core.
    Rate(AnyAlgorithm),
    /// At most this many requests at once.
    Concurrency(u64),
    /// A registered algorithm, or a limit of a registered store.
    Own { name: String },
    /// A limit that needs no state.
    Fixed(Fixed),
}

/// A limit that needs no state: nothing is counted, and no store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// `unlimited` grants everything.
    Unlimited,
    /// `0` denies everything, and no wait helps.
    Zero,
}

impl Fixed {
    /// Returns the limit that a text says, if it is one of these.
    pub(crate) fn of(text: &str) -> Option<Self> {
        match text.trim() {
            UNLIMITED => Some(Self::Unlimited),
            "0" => Some(Self::Zero),
            _ => None,
        }
    }

    /// Returns how many permits each key has at any time.
    pub(crate) const fn permits(self) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::Zero => 0,
        }
    }
}

const UNLIMITED: &str = "unlimited";

/// Returns how many limits of a rule count something, as far as they can.
pub(crate) fn limits_with_state(rule: &Rule) -> usize {
    let counts = |text: &&At<String>| !rule.overrides.is_empty() || Fixed::of(text).is_none();
    match &rule.plan {
        Some(_) => 1,
        None => rule.limits.iter().filter(counts).count(),
    }
}

/// The algorithms that a limit's text can begin with, in memory and on a server.
pub(crate) const ALGORITHMS: [&str; 6] = [
    "token-bucket",
    "gcra",
    "leaky-meter",
    "leaky-queue",
    "fixed-window",
    "sliding-window",
];

/// Returns whether the text of a limit is that of a concurrency.
pub(crate) fn is_concurrency(text: &str) -> bool {
    text.split_whitespace().next() == Some("concurrency")
}

impl Spec {
    /// Reads a limit. `own` are the names of the registered algorithms.
    pub(crate) fn parse(
        text: &str,
        own: &BTreeSet<&str>,
        clock: &impl UtcClock,
    ) -> Result<Self, String> {
        let trimmed = text.trim();
        if let Some(fixed) = Fixed::of(trimmed) {
            return Ok(Self::Fixed(fixed));
        }
        let (name, rest) = trimmed
            .split_once(char::is_whitespace)
            .unwrap_or((trimmed, ""));
        if own.contains(name) {
            let name = name.to_owned();
            return Ok(Self::Own { name });
        }
        if name == "concurrency" {
            let limit = rest.trim().replace('_', "").parse();
            return limit
                .map(Self::Concurrency)
                .map_err(|_| "must have a number of requests, as in `concurrency 50`".into());
        }
        let is_name = name.starts_with(|first: char| first.is_alphabetic());
        let known = ALGORITHMS
            .into_iter()
            .chain(["intervals", "concurrency", UNLIMITED]);
        if is_name && !known.clone().any(|known| known == name) {
            let known = known_names(name, known.chain(own.iter().copied()));
            return Err(format!("must begin with an algorithm or a rate{known}"));
        }
        match text.parse::<AnyAlgorithm>() {
            Ok(algorithm) => Ok(Self::Rate(algorithm.with_utc_of(clock))),
            Err(ParseAlgorithmError::Quota(error)) => Err(config_message(error)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns what is wrong with a limit, as a message about its whole text: `n is 0, but must be at
/// least 1 permit` becomes `the number of permits must be at least 1`.
pub(crate) fn config_message(error: impl Into<LimiterError>) -> String {
    let error = error.into();
    let text = error.to_string();
    let field = match error.field() {
        "n" => "the number of permits",
        "limit" => "the number of requests",
        field => field,
    };
    match text.split_once(", but ") {
        Some((_, rest)) if rest.starts_with("must ") => {
            format!("{field} {}", rest.trim_end_matches(" permit"))
        }
        Some((_, rest)) => rest.to_owned(),
        None => text,
    }
}
