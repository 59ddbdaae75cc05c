//! Counts what one decision asked.

use std::time::Duration;

use tollgate_policy::{Asked, FallbackKind, RequestKey};

use super::{Counters, Did};
use crate::heaviest::End;

/// Counts a decision for each rule that was asked.
#[must_use = "the last rule is counted at the end"]
pub(crate) struct Counting<'a> {
    counters: &'a Counters,
    allowed: bool,
    /// The last rule. Its limits are side by side.
    rule: Option<Told<'a>>,
}

/// What the limits of a rule said.
struct Told<'a> {
    rule: &'a str,
    is_shadow: bool,
    would_allow: bool,
    waits: bool,
    fallback: Option<FallbackKind>,
    /// The last key, and whether its limits would allow the request. Each set of facts has one.
    key: Option<RequestKey<'a>>,
    key_would_allow: bool,
}

impl<'a> Counting<'a> {
    pub(super) const fn new(counters: &'a Counters, allowed: bool) -> Self {
        Self {
            counters,
            allowed,
            rule: None,
        }
    }

    pub(crate) fn add(&mut self, asked: &Asked<'a>) {
        let (counters, allowed) = (self.counters, self.allowed);
        let (key, would_allow) = (asked.key(), asked.would_allow());
        let waits = asked.grant().is_some_and(|it| it.delay() > Duration::ZERO);
        match &mut self.rule {
            Some(told) if told.rule == asked.rule() => {
                told.would_allow &= would_allow;
                told.waits |= waits;
                if told.has_key(key) {
                    told.key_would_allow &= would_allow;
                } else {
                    told.count_key(counters, allowed);
                    (told.key, told.key_would_allow) = (key, would_allow);
                }
            }
            last => {
                let next = Told {
                    rule: asked.rule(),
                    is_shadow: asked.is_shadow(),
                    would_allow,
                    waits,
                    fallback: asked.fallback(),
                    key,
                    key_would_allow: would_allow,
                };
                if let Some(last) = last.replace(next) {
                    last.count(counters, allowed);
                }
            }
        }
    }

    pub(crate) fn end(mut self) {
        if let Some(last) = self.rule.take() {
            last.count(self.counters, self.allowed);
        }
    }
}

impl Told<'_> {
    fn has_key(&self, key: Option<RequestKey<'_>>) -> bool {
        let hash = |key: RequestKey<'_>| key.hash();
        self.key.map(hash) == key.map(hash)
    }

    /// Returns whether the rule counts: one that could deny took nothing if another one denied.
    const fn counts(&self, allowed: bool) -> bool {
        self.is_shadow || allowed
    }

    fn count_key(&self, counters: &Counters, allowed: bool) {
        if let Some(key) = self.key.filter(|_| self.counts(allowed)) {
            let end = match self.is_shadow && !self.key_would_allow {
                true => End::WouldBeDenied,
                false => End::Allowed,
            };
            counters.count_key(self.rule, &key, end);
        }
    }

    fn count(&self, counters: &Counters, allowed: bool) {
        if !self.counts(allowed) {
            return;
        }
        self.count_key(counters, allowed);
        counters.of(self.rule, |rule| {
            if self.is_shadow {
                return rule.count(match self.would_allow {
                    true => Did::ShadowAllowed,
                    false => Did::Shadow,
                });
            }
            rule.count(Did::Allowed);
            if self.waits {
                rule.count(Did::Waited);
            }
            if let Some(kind) = self.fallback {
                rule.count_fallback(kind, true);
            }
        });
    }
}
