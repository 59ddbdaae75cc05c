//! Makes a policy from what a file says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::ChangeQuota;
use tollgate::{AnyAlgorithm, FixedWindow, Keyed, Quota};

use crate::fact::FactName;
use crate::file::{Applies, PolicyFile, Rule};
use crate::key::KeySpec;
use crate::limit::{Hashed, RuleLimit, Spec, Table};
use crate::make::Maker;
use crate::policy::{List, Policy, PolicyClock};
use crate::problem::{Problem, Problems, quoted};
use crate::registry::Registry;
use crate::rule::{Ban, CompiledRule, Cost, Plans};
use crate::when::{Condition, Matcher, Test, When};

/// Makes a policy. Adds what is wrong to `problems`; if there are errors, the policy lacks limits.
pub(crate) fn compile<C: PolicyClock>(
    file: &PolicyFile,
    registry: Arc<Registry<C>>,
    clock: C,
    hasher: Hashed,
    problems: &mut Problems,
) -> Policy<C> {
    problems.append(file.check_facts(|name| registry.resolvers.contains_key(name)));
    let also = Also::of(file);
    let maker = Maker {
        registry: &registry,
        clock: &clock,
        hasher: &hasher,
    };
    let rules: Vec<_> = file
        .rules
        .iter()
        .enumerate()
        .map(|(index, rule)| compile_rule(rule, also.with(index), &maker, problems))
        .collect();
    let never = never();
    let whens = file.rules.iter().map(|rule| match &rule.when.value {
        Applies::Always => None,
        Applies::Never => Some(&never),
        Applies::When(when) => Some(when),
    });
    Policy {
        apply: file.apply,
        deny: List::of(&file.deny),
        allow: List::of(&file.allow),
        matcher: Matcher::new(whens),
        rules,
        registry,
        hasher,
        clock,
    }
}

/// Returns conditions that no request has.
fn never() -> When {
    let condition = Condition {
        fact: FactName::new("method"),
        test: Test::OneOf(Vec::new()),
    };
    When {
        all: vec![condition],
        ..When::default()
    }
}

/// Which rules apply with which others.
struct Also<'f> {
    rules: &'f [Rule],
    positions: HashMap<&'f str, usize>,
}

impl<'f> Also<'f> {
    fn of(file: &'f PolicyFile) -> Self {
        let rules = file.rules.iter().enumerate();
        Self {
            rules: &file.rules,
            positions: rules
                .map(|(index, rule)| (rule.name.as_str(), index))
                .collect(),
        }
    }

    /// Returns the rules that apply with this one, directly or by way of others.
    fn with(&self, index: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = vec![index];
        while let Some(index) = next.pop() {
            let names = self.rules.get(index).map_or(&[][..], |rule| &rule.also);
            for other in names
                .iter()
                .filter_map(|name| self.positions.get(name.as_str()))
            {
                if !found.contains(other) {
                    found.push(*other);
                    next.push(*other);
                }
            }
        }
        found.retain(|other| *other != index);
        found.sort_unstable();
        found
    }
}

fn compile_rule<C: PolicyClock>(
    rule: &Rule,
    also: Vec<usize>,
    maker: &Maker<'_, C>,
    problems: &mut Problems,
) -> CompiledRule<C> {
    let key = KeySpec::of(rule);
    let (limits, texts) = maker.limits(rule, &key, problems);
    CompiledRule {
        name: rule.name.as_str().into(),
        ban: ban(rule, &limits, maker, problems),
        key,
        missing: rule.missing,
        limits: limits
            .into_iter()
            .map(|(limit, _)| Arc::new(limit))
            .collect(),
        texts,
        plans: rule.plan.as_ref().map(|plan| Plans {
            by: FactName::new(&plan.by),
            names: plan
                .limits
                .iter()
                .map(|(name, _)| name.as_str().into())
                .collect(),
            default: plan.default.as_ref().and_then(|default| {
                let mut names = plan.limits.iter();
                names.position(|(name, _)| name.value == default.value)
            }),
        }),
        cost: Cost {
            estimate: rule.cost.estimate.as_ref().map(|fact| fact.value.clone()),
            default: rule.cost.default.value,
            max: rule.cost.max.as_ref().map_or(u64::MAX, |max| max.value),
            settle: rule.cost.settle.as_ref().map(|fact| fact.value.clone()),
        },
        count: rule.count,
        also,
        shadow: rule.shadow,
    }
}

/// Makes what counts the denials of keys.
fn ban<C: PolicyClock>(
    rule: &Rule,
    limits: &[(RuleLimit<C>, Spec)],
    maker: &Maker<'_, C>,
    problems: &mut Problems,
) -> Option<Ban<C>> {
    let ban = rule.ban.as_ref()?;
    let refuse = |part: &str, message: &str, problems: &mut Problems| {
        let field = format!("rule {}: ban{part}", quoted(&rule.name));
        problems.push(Problem::error(field, "", message).at(ban.position));
    };
    let mut rates = limits.iter().filter_map(|(_, spec)| match spec {
        Spec::Rate(algorithm) => Some(algorithm.quota().period()),
        _ => None,
    });
    if limits.is_empty() {
        // Their errors are reported.
        return None;
    }
    if !limits.iter().any(|(limit, _)| limit.can_ban()) {
        refuse("", "needs a limit other than `concurrency`", problems);
        return None;
    }
    let within: Option<Duration> = ban.within.as_ref().map(|within| within.value);
    let Some(within) = within.or_else(|| rates.next()) else {
        let message = "is missing, but must be given for limits that the program registers";
        refuse(".within", message, problems);
        return None;
    };
    match strikes(ban.after.value, within, rule, maker) {
        Ok(strikes) => Some(Ban {
            duration: ban.duration.value,
            strikes: Arc::new(strikes),
        }),
        Err(error) => {
            refuse("", &format!("can't be counted: {error}"), problems);
            None
        }
    }
}

fn strikes<C: PolicyClock>(
    after: u64,
    within: Duration,
    rule: &Rule,
    maker: &Maker<'_, C>,
) -> Result<Table<C>, tollgate::ConfigError> {
    let window = FixedWindow::new(Quota::per(after, within))?.opened_by_first_hit()?;
    let capacity = usize::try_from(rule.capacity.value).unwrap_or(usize::MAX);
    let table = Keyed::with_clock(AnyAlgorithm::from(window), capacity, maker.clock.clone())?;
    Ok(table.with_hasher(maker.hasher.clone()))
}
