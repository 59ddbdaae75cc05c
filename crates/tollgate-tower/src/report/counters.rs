//! Counters of the crate `metrics`, which are looked up once.

use std::sync::OnceLock;

#[cfg(feature = "policy")]
use std::{collections::HashMap, sync::Arc};

#[cfg(feature = "policy")]
use arc_swap::ArcSwap;
use metrics::{Counter, counter, describe_counter};

use super::Decided;

/// The counters of a layer: those of its own name, and those of the rules of its policy.
#[derive(Default)]
pub(crate) struct Counters {
    own: OfRule,
    /// A policy that is reloaded may have new rules.
    #[cfg(feature = "policy")]
    rules: ArcSwap<HashMap<Box<str>, Arc<OfRule>>>,
}

impl Counters {
    /// Uses the counters of a rule. A rule without counters gets them.
    #[inline]
    pub(super) fn with(&self, rule: &str, is_own: bool, use_them: impl FnOnce(&OfRule)) {
        #[cfg(feature = "policy")]
        if !is_own {
            return match self.rules.load().get(rule) {
                Some(counters) => use_them(counters),
                None => use_them(&self.insert(rule)),
            };
        }
        let _ = (rule, is_own);
        use_them(&self.own);
    }

    #[cfg(feature = "policy")]
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
}

/// The counters of one rule. Each is registered when it counts for the first time.
#[derive(Default)]
pub(super) struct OfRule {
    requests: [OnceLock<Counter>; 5],
    #[cfg(any(feature = "policy", feature = "redis"))]
    fallbacks: [OnceLock<Counter>; 6],
}

impl OfRule {
    /// Counts a decision.
    #[inline]
    pub(super) fn request(&self, rule: &str, decided: Decided) {
        let counter = self.requests.get(decided as usize);
        let register = || {
            let name = "tollgate_requests_total";
            describe_counter!(
                name,
                "Requests, by the rule that decided and what it decided."
            );
            counter!(name, "rule" => rule.to_owned(), "decision" => decided.name())
        };
        if let Some(counter) = counter {
            counter.get_or_init(register).increment(1);
        }
    }

    /// Counts a decision of a fallback.
    #[cfg(any(feature = "policy", feature = "redis"))]
    pub(super) fn fallback(&self, rule: &str, fallback: &'static str, decided: Decided) {
        let kind = ["closed", "open", "local"]
            .iter()
            .position(|kind| *kind == fallback);
        let place = kind.map(|kind| 2 * kind + usize::from(decided == Decided::Denied));
        let counter = place.and_then(|place| self.fallbacks.get(place));
        let register = || {
            let name = "tollgate_fallbacks_total";
            describe_counter!(
                name,
                "Requests that a fallback decided, while a store was down."
            );
            counter!(
                name,
                "rule" => rule.to_owned(), "fallback" => fallback, "decision" => decided.name(),
            )
        };
        if let Some(counter) = counter {
            counter.get_or_init(register).increment(1);
        }
    }
}
