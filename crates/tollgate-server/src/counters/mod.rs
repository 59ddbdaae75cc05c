//! How often the rules decided, and what.

mod counting;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use tollgate_policy::{Decision, FallbackKind, Policy, PolicyClock, RequestKey};

pub(crate) use self::counting::Counting;
use crate::heaviest::{End, Heaviest};

/// What a rule did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Allowed,
    Denied,
    Waited,
    Shadow,
    ShadowAllowed,
}

const DID: [(Did, &str); 5] = [
    (Did::Allowed, "allowed"),
    (Did::Denied, "denied"),
    (Did::Waited, "waited"),
    (Did::Shadow, "shadow"),
    (Did::ShadowAllowed, "shadow-allowed"),
];

const FALLBACKS: [FallbackKind; 3] = [
    FallbackKind::Closed,
    FallbackKind::Open,
    FallbackKind::Local,
];

/// The protocol by which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `/decide`, each decision.
    Decide,
    /// A proxy's question over HTTP.
    Forwarded,
    /// Envoy's question.
    Envoy,
}

pub(crate) const PROTOCOLS: [(Protocol, &str); 3] = [
    (Protocol::Decide, "decide"),
    (Protocol::Forwarded, "forwarded"),
    (Protocol::Envoy, "envoy"),
];

/// The upper bounds of the time that decisions take, in microseconds.
pub(crate) const BOUNDS_US: [u64; 12] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000,
];

/// What a rule did with all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OfRuleNow {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) waited: u64,
    pub(crate) shadow: u64,
    pub(crate) shadow_allowed: u64,
    /// Those that a fallback decided.
    pub(crate) fallbacks: u64,
}

/// How many decisions of a protocol took how long: one number for each bound, and one for longer
/// ones.
pub(crate) type TimesNow = [u64; BOUNDS_US.len() + 1];

/// Counts decisions. A policy's rules are known by name, so a reload loses nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The keys that come most, if operators can ask for them.
    pub(crate) heaviest: Option<Heaviest>,
    /// The names are the operator's, so nobody chooses them to collide.
    rules: ArcSwap<HashMap<Box<str>, Arc<OfRule>, RandomState>>,
    times: [Times; PROTOCOLS.len()],
}

#[derive(Debug, Default)]
struct OfRule {
    did: [AtomicU64; DID.len()],
    /// Allowed and denied, by each fallback.
    fallbacks: [[AtomicU64; 2]; FALLBACKS.len()],
}

/// How long the decisions of a protocol took.
#[derive(Debug, Default)]
struct Times {
    /// One for each bound, and one for longer ones.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    total_us: AtomicU64,
}

fn add(counter: Option<&AtomicU64>, n: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(n, Relaxed);
    }
}

impl OfRule {
    fn count(&self, did: Did) {
        add(self.did.get(did as usize), 1);
    }

    fn count_fallback(&self, kind: FallbackKind, allowed: bool) {
        let place = FALLBACKS.iter().position(|known| *known == kind);
        let of_kind = place.and_then(|place| self.fallbacks.get(place));
        add(of_kind.and_then(|it| it.get(usize::from(!allowed))), 1);
    }
}

impl Counters {
    pub(crate) fn new(heaviest: Option<Heaviest>) -> Self {
        Self {
            heaviest,
            ..Self::default()
        }
    }

    /// Counts a decision for each rule that was asked, or for the one that denies.
    pub(crate) fn count<R, C>(&self, decision: &Decision<R, C>)
    where
        R: Deref<Target = Policy<C>>,
        C: PolicyClock,
    {
        let mut counting = self.begin(decision);
        decision.asked().for_each(|asked| counting.add(&asked));
        counting.end();
    }

    /// Begins to count a decision. Its limits are added one after the other.
    pub(crate) fn begin<'a, R, C>(&'a self, decision: &'a Decision<R, C>) -> Counting<'a>
    where
        R: Deref<Target = Policy<C>>,
        C: PolicyClock,
    {
        if let Some(rule) = decision.denied_by() {
            if let Some(key) = decision.denied_key() {
                self.count_key(rule, &key, End::Denied);
            }
            self.of(rule, |rule| {
                rule.count(Did::Denied);
                if let Some(kind) = decision.fallback() {
                    rule.count_fallback(kind, false);
                }
            });
        }
        Counting::new(self, decision.is_allowed())
    }

    /// Counts `n` decisions that took this time together.
    pub(crate) fn took(&self, protocol: Protocol, time: Duration) {
        let Some(times) = self.times.get(protocol as usize) else {
            return;
        };
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        add(times.buckets.get(bucket), 1);
        add(Some(&times.total_us), us);
    }

    fn count_key(&self, rule: &str, key: &RequestKey<'_>, end: End) {
        if let Some(heaviest) = &self.heaviest {
            let hash = self.rules.load().hasher().hash_one(rule);
            heaviest.count(rule, hash, key, end);
        }
    }

    /// Visits what each rule did.
    pub(crate) fn each_rule(&self, mut visit: impl FnMut(&str, OfRuleNow)) {
        for (name, rule) in self.rules.load().iter() {
            let [allowed, denied, waited, shadow, shadow_allowed] =
                rule.did.each_ref().map(|count| count.load(Relaxed));
            let fallbacks = rule.fallbacks.iter().flatten();
            visit(
                name,
                OfRuleNow {
                    allowed,
                    denied,
                    waited,
                    shadow,
                    shadow_allowed,
                    fallbacks: fallbacks.map(|count| count.load(Relaxed)).sum(),
                },
            );
        }
    }

    /// Returns how long the decisions of each protocol took.
    pub(crate) fn times(&self) -> [TimesNow; PROTOCOLS.len()] {
        let now = |times: &Times| times.buckets.each_ref().map(|count| count.load(Relaxed));
        self.times.each_ref().map(now)
    }

    fn of(&self, rule: &str, count: impl FnOnce(&OfRule)) {
        match self.rules.load().get(rule) {
            Some(counters) => count(counters),
            None => count(&self.insert(rule)),
        }
    }

    #[cold]
    fn insert(&self, rule: &str) -> Arc<OfRule> {
        let mut found = Arc::default();
        self.rules.rcu(|rules| {
            let mut rules = HashMap::clone(rules);
            found = Arc::clone(rules.entry(rule.into()).or_default());
            rules
        });
        found
    }

    /// Writes what was counted in the text format of Prometheus.
    pub(crate) fn write(&self, out: &mut String) -> fmt::Result {
        let rules = self.rules.load();
        let mut rules: Vec<_> = rules.iter().collect();
        rules.sort_by(|one, other| one.0.cmp(other.0));
        head(
            out,
            "tollgate_requests_total",
            "counter",
            "Requests, by the rule that decided and what it decided.",
        )?;
        for (name, rule) in &rules {
            for ((_, did), count) in DID.iter().zip(&rule.did) {
                let (name, count) = (Label(name), count.load(Relaxed));
                writeln!(
                    out,
                    "tollgate_requests_total{{rule={name},decision=\"{did}\"}} {count}"
                )?;
            }
        }
        head(
            out,
            "tollgate_fallbacks_total",
            "counter",
            "Requests that a fallback decided, while a store was down.",
        )?;
        for (name, rule) in &rules {
            for (kind, counts) in FALLBACKS.iter().zip(&rule.fallbacks) {
                for (did, count) in ["allowed", "denied"].iter().zip(counts) {
                    let (name, kind) = (Label(name), kind.as_str());
                    let count = count.load(Relaxed);
                    // Most services have no store: these say nothing of them.
                    if count > 0 {
                        writeln!(
                            out,
                            "tollgate_fallbacks_total{{rule={name},fallback=\"{kind}\",\
                             decision=\"{did}\"}} {count}"
                        )?;
                    }
                }
            }
        }
        head(
            out,
            "tollgate_decision_seconds",
            "histogram",
            "How long a question took, from its last byte to the answer, without its wait.",
        )?;
        for ((_, protocol), times) in PROTOCOLS.iter().zip(&self.times) {
            times.write(out, protocol)?;
        }
        Ok(())
    }
}

impl Times {
    fn write(&self, out: &mut String, protocol: &str) -> fmt::Result {
        let name = "tollgate_decision_seconds";
        let mut sum = 0;
        for (place, bucket) in self.buckets.iter().enumerate() {
            sum += bucket.load(Relaxed);
            let bound = BOUNDS_US.get(place).map(|us| seconds(*us));
            let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
            writeln!(
                out,
                "{name}_bucket{{protocol=\"{protocol}\",le=\"{bound}\"}} {sum}"
            )?;
        }
        let total = seconds(self.total_us.load(Relaxed));
        writeln!(out, "{name}_sum{{protocol=\"{protocol}\"}} {total}")?;
        writeln!(out, "{name}_count{{protocol=\"{protocol}\"}} {sum}")
    }
}

/// Writes microseconds as seconds.
fn seconds(us: u64) -> String {
    Duration::from_micros(us).as_secs_f64().to_string()
}

/// Writes the lines that describe a metric.
pub(crate) fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}")?;
    writeln!(out, "# TYPE {name} {kind}")
}

/// A label's value, in quotes.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                char => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}
