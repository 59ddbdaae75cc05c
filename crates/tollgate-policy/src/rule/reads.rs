//! What a rule reads of a request: its key, its plan and its cost.

use std::collections::HashMap;

use super::fact::RuleFact;
use super::key::KeySpec;
use crate::facts::{FactName, Facts};
use crate::file::{MissingFact, PolicyFile, Rule};
use crate::limit::Fixed;
use crate::when::with_text;

/// What a rule reads of a request, and which rules the rule names in `also`.
#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) key: KeySpec,
    pub(crate) missing: MissingFact,
    /// The plans. A rule without plans has one here if it has a limit that needs no state, so that
    /// other rules need not ask for it.
    pub(crate) plans: Option<Plans>,
    pub(crate) cost: Cost,
    /// The rules that it names in `also`.
    pub(crate) also: Vec<usize>,
    pub(crate) shadow: bool,
}

impl AsRef<Self> for Reads {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Reads {
    /// Returns what each rule of a file reads.
    pub(crate) fn of_all(file: &PolicyFile) -> Vec<Self> {
        let rules = file.rules.iter().enumerate();
        let positions: HashMap<&str, usize> = rules
            .map(|(index, rule)| (rule.name.as_str(), index))
            .collect();
        let also = |rule: &Rule| {
            let found = rule.also.iter().map(|name| positions.get(name.as_str()));
            found.flatten().copied().collect()
        };
        file.rules
            .iter()
            .map(|rule| Self::of(rule, also(rule)))
            .collect()
    }

    fn of(rule: &Rule, also: Vec<usize>) -> Self {
        let cost = &rule.cost;
        let estimate = cost.estimate.as_ref();
        Self {
            key: KeySpec::of(rule),
            missing: rule.missing,
            plans: Plans::of_rule(rule),
            cost: Cost {
                estimate: estimate.map(|fact| RuleFact::of(rule, fact.as_str())),
                default: cost.default.value,
                min: cost.min.value,
                max: cost.max.as_ref().map(|max| max.value),
                settle: cost.settle.as_ref().map(|fact| fact.value.clone()),
            },
            also,
            shadow: rule.shadow,
        }
    }
}

/// The plans of a rule.
#[derive(Debug)]
pub(crate) struct Plans {
    by: Option<RuleFact>,
    /// The names, in the order of the plans.
    pub(crate) names: Vec<Box<str>>,
    default: Option<usize>,
    /// For each plan, its limit if that needs no state.
    pub(crate) fixed: Vec<Option<Fixed>>,
    /// Whether the limit of the key decides before `fixed` does.
    pub(crate) keys_first: bool,
}

impl Plans {
    fn of_rule(rule: &Rule) -> Option<Self> {
        let of_keys = rule
            .overrides
            .iter()
            .any(|own| Fixed::of(&own.limit).is_some());
        let plan = match &rule.plan {
            Some(plan) => plan,
            None => {
                let fixed = rule.limits.iter().find_map(|limit| Fixed::of(limit));
                return (of_keys || fixed.is_some()).then(|| Self {
                    by: None,
                    names: Vec::new(),
                    default: Some(0),
                    fixed: vec![fixed],
                    keys_first: !rule.overrides.is_empty(),
                });
            }
        };
        let names = || plan.limits.iter().map(|(name, _)| name.as_str());
        let fixed: Vec<_> = plan
            .limits
            .iter()
            .map(|(_, text)| Fixed::of(text))
            .collect();
        Some(Self {
            by: Some(RuleFact::of(rule, &plan.by)),
            names: names().map(Into::into).collect(),
            default: plan
                .default
                .as_ref()
                .and_then(|default| names().position(|name| name == default.value)),
            keys_first: of_keys
                || (!rule.overrides.is_empty() && fixed.iter().any(Option::is_some)),
            fixed,
        })
    }

    /// Returns the plan of a request, or the default. A fact with several values names no plan.
    pub(crate) fn of(&self, facts: &impl Facts) -> Option<usize> {
        let by = self.by.as_ref();
        let named = by
            .and_then(|by| by.values(facts).single())
            .and_then(|value| {
                let is = |name: &str| self.names.iter().position(|known| **known == *name);
                with_text(&value, is)
            });
        named.or(self.default)
    }
}

/// How many permits a request takes.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) estimate: Option<RuleFact>,
    pub(crate) default: u64,
    pub(crate) min: u64,
    /// The most that a fact can say, of the request or of the answer.
    pub(crate) max: Option<u64>,
    pub(crate) settle: Option<FactName>,
}

impl Cost {
    /// Returns the cost of a request: the largest value of the fact. `None` if not all are known.
    #[inline]
    pub(crate) fn of(&self, facts: &impl Facts) -> Option<u64> {
        let Some(fact) = &self.estimate else {
            // A rule without `cost` costs 1, or what the request says.
            return Some(match self.default {
                1 => facts.permits().unwrap_or(1),
                default => default,
            });
        };
        let (estimate, is_known) = fact.values(facts).largest();
        let most = self.max.unwrap_or(u64::MAX);
        let cost = estimate.map_or(self.default, |cost| cost.min(most).max(self.min));
        is_known.then_some(cost)
    }
}
