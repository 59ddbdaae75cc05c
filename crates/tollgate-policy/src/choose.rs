//! Which rules apply to a request, and what they ask. A decision and an explanation record the same
//! run.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use crate::facts::{FactName, Facts};
use crate::file::{Applies, Apply, Entry, MissingFact, PolicyFile};
use crate::limit::Fixed;
use crate::rule::{Bytes, NoKey, Plans, Reads};
use crate::when::{Condition, Matcher, Reading, Test, When};

/// What decided without a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    /// An entry of `deny`, by its position.
    Entry(usize),
    /// An entry of `allow`.
    Allowed(usize),
    /// A rule, by its position, that can't ask its limits.
    Rule(usize, NoLimit),
}

/// Why a rule that applies asks no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoLimit {
    /// Its key is missing.
    Missing,
    /// It reads a fact of several values.
    Ambiguous,
    /// Its conditions depend on values that are not read.
    Unread,
    /// It has no plan for the request.
    NoPlan,
    /// Its limit for the request is 0: the limit of the plan, or the override of the key.
    Zero(Asked),
    /// Its store decides asynchronously.
    Remote,
}

/// What a rule that applies asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Where the key is among the bytes of all keys.
    pub(crate) key: (usize, usize),
    /// The plan, by its position.
    pub(crate) plan: usize,
    pub(crate) cost: u64,
    /// Whether the request takes nothing, but only looks: see [`Facts::permits`].
    pub(crate) looks: bool,
}

/// Records what is decided for each rule. `by` is the rule that names this one in `also`.
pub(crate) trait Recorder {
    /// Returns the bytes of the keys. Each key is appended.
    fn keys(&mut self) -> &mut Bytes;
    /// Returns whether a rule is recorded as one that asks or refuses.
    fn has(&self, rule: usize) -> bool;
    /// Returns the limit of a key's own, if it has one: a rate, or a limit that needs no state.
    fn override_of(&self, rule: usize, key: (usize, usize)) -> Option<Option<Fixed>>;
    /// An entry of a list decides.
    fn list(&mut self, why: Why);
    /// The rule does not apply, since its key is missing.
    fn skip(&mut self, _rule: usize) {}
    /// The rule denies the request whatever is left; a shadow rule only reports so.
    fn refuse(&mut self, rule: usize, shadow: bool, by: Option<usize>, why: NoLimit);
    /// The rule asks its limits.
    fn ask(&mut self, rule: usize, shadow: bool, by: Option<usize>, asked: Asked);
    /// The rule asks its limits, but for those that are `unlimited`.
    fn ask_unlimited(&mut self, rule: usize, shadow: bool, by: Option<usize>, asked: Asked) {
        self.ask(rule, shadow, by, asked);
    }
    /// The rule is the first one that applies, and no other rule is asked.
    fn end(&mut self, _rule: usize) {}
    /// Returns whether no more rules need to be found.
    fn is_over(&self) -> bool;
}

/// What becomes of a rule that matches a request.
#[derive(PartialEq, Eq)]
enum Applied {
    Yes,
    /// The rule was added before.
    Before,
    /// The rule's key is missing, so the rule does not apply.
    Skipped,
}

/// Finds the rules of a request.
pub(crate) struct Chooser {
    pub(crate) apply: Apply,
    pub(crate) deny: List,
    pub(crate) allow: List,
    pub(crate) matcher: Matcher,
}

impl Chooser {
    pub(crate) fn of(file: &PolicyFile) -> Self {
        let never = never();
        let whens = file.rules.iter().map(|rule| match &rule.when.value {
            Applies::Always => None,
            Applies::Never => Some(&never),
            Applies::When(when) => Some(when),
        });
        Self {
            apply: file.apply,
            deny: List::of(&file.deny),
            allow: List::of(&file.allow),
            matcher: Matcher::new(whens),
        }
    }

    /// Records which rules apply, unless an entry of the lists does.
    pub(crate) fn choose<R: AsRef<Reads>>(
        &self,
        rules: &[R],
        facts: &impl Facts,
        recorder: &mut impl Recorder,
    ) {
        if let Some(why) = self.listed(facts) {
            recorder.list(why);
            return;
        }
        let _ = self.matcher.find(facts, Reading::ANY, |index, by| {
            let Some(shadow) = rules.get(index).map(|rule| rule.as_ref().shadow) else {
                return ControlFlow::Continue(());
            };
            let applies = match by(Reading::ANY_KNOWN) {
                false if !recorder.has(index) => {
                    recorder.refuse(index, shadow, None, NoLimit::Unread);
                    true
                }
                _ => apply(rules, index, facts, recorder),
            };
            // A rule that only some of several values match does not end the search.
            let is_last = applies && self.apply == Apply::First && !shadow && by(Reading::EACH);
            if is_last {
                recorder.end(index);
            }
            match is_last || recorder.is_over() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }

    /// Returns which entry of the lists applies: the first of `deny`, else the first of `allow`.
    fn listed(&self, facts: &impl Facts) -> Option<Why> {
        if self.deny.names.is_empty() && self.allow.names.is_empty() {
            return None;
        }
        let first = |index, _: &dyn Fn(Reading) -> bool| ControlFlow::Break(index);
        if let ControlFlow::Break(entry) = self.deny.matcher.find(facts, Reading::ANY, first) {
            return Some(Why::Entry(entry));
        }
        match self.allow.matcher.find(facts, Reading::EACH, first) {
            ControlFlow::Break(entry) => Some(Why::Allowed(entry)),
            ControlFlow::Continue(()) => None,
        }
    }
}

/// Adds what a rule asks, and the rules that apply with it. A rule that is skipped or in the shadow
/// brings no others. Returns whether it applies.
fn apply<R: AsRef<Reads>>(
    rules: &[R],
    index: usize,
    facts: &impl Facts,
    recorder: &mut impl Recorder,
) -> bool {
    let applied = add(rules, index, None, facts, recorder);
    let mut next: SmallVec<[(usize, usize); 4]> = SmallVec::new();
    if applied == Applied::Yes {
        push_also(rules, index, &mut next);
    }
    while let Some((other, by)) = next.pop() {
        if add(rules, other, Some(by), facts, recorder) == Applied::Yes {
            push_also(rules, other, &mut next);
        }
    }
    applied != Applied::Skipped
}

/// Adds the rules that apply with a rule directly, the last one first.
fn push_also<R: AsRef<Reads>>(rules: &[R], index: usize, next: &mut SmallVec<[(usize, usize); 4]>) {
    let rule = rules.get(index).map(AsRef::as_ref);
    let also = rule.filter(|rule| !rule.shadow).map(|rule| &rule.also);
    for other in also.into_iter().flatten().rev() {
        next.push((*other, index));
    }
}

/// Adds what one rule asks.
#[inline]
fn add<R: AsRef<Reads>>(
    rules: &[R],
    index: usize,
    by: Option<usize>,
    facts: &impl Facts,
    recorder: &mut impl Recorder,
) -> Applied {
    if recorder.has(index) {
        return Applied::Before;
    }
    let Some(rule) = rules.get(index).map(AsRef::as_ref) else {
        return Applied::Skipped;
    };
    let start = recorder.keys().len();
    let refused = match (rule.key.push(facts, recorder.keys()), rule.missing) {
        (Ok(()), _) | (Err(NoKey::Missing), MissingFact::Shared) => None,
        (Err(NoKey::Missing), MissingFact::Skip) => {
            recorder.keys().truncate(start);
            recorder.skip(index);
            return Applied::Skipped;
        }
        (Err(NoKey::Missing), MissingFact::Deny) => Some(NoLimit::Missing),
        (Err(NoKey::Ambiguous), _) => Some(NoLimit::Ambiguous),
    };
    let key = (start, recorder.keys().len());
    let plan = match (refused, &rule.plans) {
        (Some(why), _) => Err(why),
        (None, None) => Ok(0),
        (None, Some(plans)) => match plan(plans, index, key, facts, recorder) {
            Ok((plan, None)) => Ok(plan),
            Ok((plan, Some(fixed))) => {
                let cost = rule.cost.of(facts).unwrap_or(rule.cost.default);
                let asked = Asked {
                    key,
                    plan,
                    cost,
                    looks: false,
                };
                match fixed {
                    Fixed::Unlimited => recorder.ask_unlimited(index, rule.shadow, by, asked),
                    Fixed::Zero => recorder.refuse(index, rule.shadow, by, NoLimit::Zero(asked)),
                }
                return Applied::Yes;
            }
            Err(why) => Err(why),
        },
    };
    let asked = plan.and_then(|plan| {
        let cost = rule.cost.of(facts).ok_or(NoLimit::Ambiguous)?;
        let looks = facts.permits() == Some(0);
        Ok(Asked {
            key,
            plan,
            cost,
            looks,
        })
    });
    match asked {
        Ok(asked) => recorder.ask(index, rule.shadow, by, asked),
        Err(why) => recorder.refuse(index, rule.shadow, by, why),
    }
    Applied::Yes
}

/// Returns the plan of a request, and its limit if that needs no state.
fn plan(
    plans: &Plans,
    rule: usize,
    key: (usize, usize),
    facts: &impl Facts,
    recorder: &impl Recorder,
) -> Result<(usize, Option<Fixed>), NoLimit> {
    let plan = plans.of(facts);
    // An override replaces every plan, so it also helps where there is none.
    let asks_key = plan.is_none() || plans.keys_first;
    let own = asks_key.then(|| recorder.override_of(rule, key)).flatten();
    match (plan, own) {
        (plan, Some(own)) => Ok((plan.unwrap_or(0), own)),
        (Some(plan), None) => Ok((plan, plans.fixed.get(plan).copied().flatten())),
        (None, None) => Err(NoLimit::NoPlan),
    }
}

/// The list `deny` or `allow`.
pub(crate) struct List {
    pub(crate) names: Vec<Box<str>>,
    /// The status of each entry, if it has one.
    statuses: Vec<Option<u16>>,
    pub(crate) matcher: Matcher,
}

impl List {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        Self {
            names: entries
                .iter()
                .map(|entry| entry.name.as_str().into())
                .collect(),
            statuses: entries
                .iter()
                .map(|entry| entry.status.map(|status| status.value))
                .collect(),
            matcher: Matcher::new(entries.iter().map(|entry| Some(&entry.when))),
        }
    }

    pub(crate) fn name(&self, entry: usize) -> &str {
        self.names.get(entry).map_or("", |name| name)
    }

    pub(crate) fn status(&self, entry: usize) -> Option<u16> {
        self.statuses.get(entry).copied().flatten()
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
