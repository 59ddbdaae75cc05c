//! Finds the rules of a request without going through all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::facts::{FactName, Facts};

use super::condition::When;
use super::input::{Input, Inputs, Places, Request};
use super::part::{Key, Part, Path, each_key, place};
use super::reading::Reading;

/// Lists of rules, in ascending order.
type Lists<'m> = SmallVec<[&'m [u32]; 16]>;

/// Conditions of many rules, indexed: it finds those that a request fulfills without testing all.
///
/// Each rule is listed under the hash of a part of a value that its requests have, such as the
/// literal segments of its path: the part that it shares with the fewest other rules. Other values
/// can have the same hash, so the rules that a request finds there are tested as a whole.
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
    rules: Vec<When>,
    /// The lists of rules, by the number of a fact and a part of it.
    probes: Vec<((usize, Part), Probe)>,
    /// The rules that no part leads to.
    others: Vec<u32>,
}

/// The rules by one part of one fact.
#[derive(Debug, Default)]
struct Probe {
    /// All rules that it can find.
    all: Vec<u32>,
    lists: HashMap<u64, Vec<u32>, FixedState>,
}

impl Probe {
    /// Adds the rules of a value. `path` keeps the hashes of its segments for the next probe.
    #[inline]
    fn push<'m>(&'m self, part: Part, input: &Input<'_>, path: &mut Path, lists: &mut Lists<'m>) {
        let hash = part.hash(input, path);
        if let Some(list) = hash.and_then(|hash| self.lists.get(&hash)) {
            lists.push(list);
        }
    }
}

impl Matcher {
    /// Indexes conditions. `None` always holds.
    #[must_use]
    pub fn new<'w>(rules: impl IntoIterator<Item = Option<&'w When>>) -> Self {
        let when = |when: Option<&When>| when.cloned().unwrap_or_default();
        let rules: Vec<_> = rules.into_iter().map(when).collect();
        let mut facts = BTreeSet::new();
        rules.iter().for_each(|when| when.add_facts(&mut facts));
        let facts: Vec<_> = facts.into_iter().collect();
        let mut shared: HashMap<Key<'_>, u64, FixedState> = HashMap::default();
        for when in &rules {
            each_key(when, &mut |key| *shared.entry(key).or_default() += 1);
        }
        let cost = |keys: &Vec<Key<'_>>| keys.iter().filter_map(|key| shared.get(key)).sum::<u64>();
        let (mut probes, mut others) = (BTreeMap::<_, Probe>::new(), Vec::new());
        for (rule, when) in (0..).zip(&rules) {
            let Some(keys) = place(when, &cost) else {
                others.push(rule);
                continue;
            };
            for (fact, part, hash) in keys {
                let fact = facts.binary_search(fact).unwrap_or(usize::MAX);
                let Probe { all, lists } = probes.entry((fact, part)).or_default();
                for list in [all, lists.entry(hash).or_default()] {
                    // Several values can put a rule under the same key.
                    if list.last() != Some(&rule) {
                        list.push(rule);
                    }
                }
            }
        }
        let probes = probes.into_iter().collect();
        Self {
            facts,
            rules,
            probes,
            others,
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
        self.push_lists(&request, &mut lists);
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

    /// Adds the lists of a request.
    #[inline(always)]
    fn push_lists<'m>(
        &'m self,
        request: &Request<'_, '_, impl Facts + ?Sized>,
        lists: &mut Lists<'m>,
    ) {
        if !self.others.is_empty() {
            lists.push(&self.others);
        }
        let mut path = Path::new();
        for ((fact, part), probe) in &self.probes {
            match request.inputs(*fact) {
                None | Some(Inputs::None) => {}
                Some(Inputs::One(input)) => probe.push(*part, input, &mut path, lists),
                // A value that is not known can be any.
                Some(Inputs::Several { more: true, .. }) => lists.push(&probe.all),
                Some(Inputs::Several { known, .. }) => {
                    for input in known {
                        probe.push(*part, input, &mut Path::new(), lists);
                    }
                }
            }
        }
        if lists.len() > self.probes.len() {
            // Several values can lead to the same list.
            lists.sort_unstable_by_key(|list| list.as_ptr());
            lists.dedup_by_key(|list| list.as_ptr());
        }
    }

    /// Returns the number of conditions that are not in the index. They are tested one by one.
    #[must_use]
    pub fn unindexed(&self) -> usize {
        let others = self.others.iter();
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
