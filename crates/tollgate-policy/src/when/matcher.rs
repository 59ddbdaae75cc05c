//! Finds the rules of a request without going through all of them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::facts::{FactName, Facts};

use super::condition::When;
use super::index::{Index, Lists};
use super::input::{Places, Request};
use super::reading::Reading;

/// Conditions of many rules, indexed: it finds those that a request fulfills without testing all.
///
/// Each rule is listed under a part of one of its conditions, such as the literal segments of its
/// path: the part that it shares with the fewest other rules. The rules that a request finds there
/// are then tested as a whole.
///
/// ```
/// use std::ops::ControlFlow;
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
///
/// let path = FactName::new("path");
/// let rules = ["/login", "/api/**"].map(|text| {
///     let test = Test::OneOf(vec![Pattern::parse(&path, text).unwrap()]);
///     When { all: vec![Condition { fact: path.clone(), test }], ..When::default() }
/// });
/// let matcher = Matcher::new(rules.iter().map(Some));
/// let first = matcher.each(&[("path", "/api/users")], ControlFlow::Break);
/// assert_eq!(first.break_value(), Some(1));
/// ```
#[derive(Debug)]
pub struct Matcher {
    /// The facts that the conditions read, sorted.
    facts: Vec<FactName>,
    index: Index,
    rules: Vec<When>,
}

impl Matcher {
    /// Indexes conditions. `None` always holds.
    #[must_use]
    pub fn new<'w>(rules: impl IntoIterator<Item = Option<&'w When>>) -> Self {
        let rules = rules
            .into_iter()
            .map(|when| when.cloned().unwrap_or_default());
        let rules: Vec<_> = rules.collect();
        let mut facts = BTreeSet::new();
        rules.iter().for_each(|when| when.add_facts(&mut facts));
        let facts: Vec<_> = facts.into_iter().collect();
        let index = Index::new(&rules, &facts);
        Self {
            facts,
            index,
            rules,
        }
    }

    /// Calls back the indexes of the conditions that [hold](When::holds), in ascending order, until
    /// told to stop.
    pub fn each<B>(
        &self,
        facts: &(impl Facts + ?Sized),
        mut found: impl FnMut(usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.find(facts, Reading::ANY, |index, _| found(index))
    }

    /// Calls back the indexes of the conditions that hold, and whether they also do by another
    /// reading.
    pub(crate) fn find<B>(
        &self,
        facts: &(impl Facts + ?Sized),
        reading: Reading,
        mut found: impl FnMut(usize, &dyn Fn(Reading) -> bool) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut places = Places::new();
        let request = Request::new(&self.facts, facts, &mut places);
        let mut lists = Lists::new();
        self.index
            .push_lists(|fact| request.inputs(fact), &mut lists);
        while let Some(rule) = next(&mut lists).map(|rule| rule as usize) {
            let Some(when) = self.rules.get(rule) else {
                continue;
            };
            let holds = |reading| {
                when.fulfilled(reading, &|condition, reading| {
                    let inputs = request.of(&condition.fact);
                    inputs.is_some_and(|it| condition.test.accepts(&condition.fact, it, reading))
                })
            };
            if holds(reading) {
                found(rule, &|other| !request.has_several() || holds(other))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the number of conditions that are not in the index. They are tested one by one.
    #[must_use]
    pub fn unindexed(&self) -> usize {
        let others = self.index.others.iter();
        let rules = others.filter_map(|rule| self.rules.get(*rule as usize));
        rules.filter(|when| **when != When::default()).count()
    }
}

/// Takes the least rule from lists in ascending order.
fn next(lists: &mut Lists<'_>) -> Option<u32> {
    if let [list] = &mut **lists {
        let (first, rest) = list.split_first()?;
        *list = rest;
        return Some(*first);
    }
    let least = *lists.iter().filter_map(|list| list.first()).min()?;
    for list in lists.iter_mut().filter(|list| list.first() == Some(&least)) {
        *list = list.get(1..).unwrap_or_default();
    }
    Some(least)
}

#[cfg(test)]
mod tests;
