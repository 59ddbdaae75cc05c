//! Finds the rules of a request without going through all of them.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::facts::{FactName, Facts};

use super::build::{Builder, number};
use super::condition::{Test, When};
use super::index::{Index, Sources};
use super::input::Inputs;
use super::key::{Key, each_key, place};
use super::reading::Reading;

/// Conditions of many rules, indexed: it finds those that a request fulfills without testing all.
///
/// Each rule is in the index under one of its conditions, the one that it shares with the fewest
/// other rules. The rules that a request finds there are then tested as a whole.
///
/// ```
/// use std::ops::ControlFlow;
/// use tollgate_policy::FactName;
/// use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
///
/// let path = FactName::new("path");
/// let rules = ["/login", "/api/**", "/api/users/{user}"].map(|text| {
///     let test = Test::OneOf(vec![Pattern::parse(&path, text).unwrap()]);
///     When { all: vec![Condition { fact: path.clone(), test }], ..When::default() }
/// });
/// let matcher = Matcher::new(rules.iter().map(Some));
/// let mut found = Vec::new();
/// let all = matcher.each(&[("path", "/api/users/alice")], |index| {
///     found.push(index);
///     ControlFlow::<()>::Continue(())
/// });
/// assert!(all.is_continue());
/// assert_eq!(found, [1, 2]);
/// ```
pub struct Matcher {
    facts: Vec<FactName>,
    index: Index,
    rules: Vec<Conditions>,
    /// The rules that are in no index.
    others: Vec<u32>,
    unindexed: usize,
}

/// A `When` with numbers in place of the names of facts.
#[derive(Default)]
struct Conditions {
    all: Box<[(u32, Test)]>,
    /// The condition by which the index finds the rule. It holds for a fact with one value.
    implied: Option<Box<(u32, Test)>>,
    any: Box<[Conditions]>,
    not: Option<Box<Conditions>>,
}

/// The facts of a request, each read at most once.
struct Request<'m, 'v, F: ?Sized> {
    names: &'m [FactName],
    facts: &'v F,
    inputs: SmallVec<[OnceCell<Inputs<'v>>; 12]>,
    /// Whether a fact has several values.
    several: Cell<bool>,
    /// Whether there can be values that are not known.
    more: Cell<bool>,
}

/// Whether a rule's conditions hold, if facts have several values.
#[derive(Clone, Copy)]
pub(crate) struct By {
    /// The conditions hold by values that are known.
    pub(crate) known: bool,
    /// The conditions hold by each value.
    pub(crate) each: bool,
}

impl Matcher {
    /// Indexes conditions. `None` always holds.
    #[must_use]
    pub fn new<'w>(rules: impl IntoIterator<Item = Option<&'w When>>) -> Self {
        let whens: Vec<_> = rules.into_iter().collect();
        let mut shared: HashMap<Key<'w>, u64, FixedState> = HashMap::default();
        for when in whens.iter().flatten() {
            each_key(when, &mut |key| *shared.entry(key).or_default() += 1);
        }
        let cost = |key: &Key<'w>| shared.get(key).copied().unwrap_or(0);

        let mut facts = Numbers::default();
        let mut builder = Builder::default();
        let (mut others, mut unindexed) = (Vec::new(), 0);
        let mut rules = Vec::with_capacity(whens.len());
        for (rule, when) in (0..).zip(whens) {
            let place = when.and_then(|when| place(when, &cost));
            let mut implied = None;
            if let Some(place) = place {
                for key in place.keys {
                    builder.insert(facts.number(key.fact) as usize, &key.kind, rule);
                }
                implied = place.implied;
            } else {
                others.push(rule);
                unindexed += usize::from(when.is_some());
            }
            let conditions = when.map(|when| facts.conditions(when, implied));
            rules.push(conditions.unwrap_or_default());
        }
        Self {
            facts: facts.names,
            index: builder.build(),
            rules,
            others,
            unindexed,
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

    /// Calls back the indexes of the conditions that hold, and by which values they also do.
    pub(crate) fn find<B>(
        &self,
        facts: &(impl Facts + ?Sized),
        reading: Reading,
        mut found: impl FnMut(usize, By) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let request = Request::new(&self.facts, facts);
        let mut sources = Sources::new();
        if !self.others.is_empty() {
            sources.push(&self.others);
        }
        self.index
            .collect(|fact| request.inputs(fact), &mut sources);
        while let Some(rule) = next(&mut sources) {
            let rule = rule as usize;
            let conditions = self.rules.get(rule);
            if let Some(conditions) = conditions.filter(|it| it.hold(&request, reading)) {
                let (several, more) = (request.several.get(), request.more.get());
                let by = By {
                    known: !more || conditions.hold(&request, Reading::ANY_KNOWN),
                    each: !several || conditions.hold(&request, Reading::EACH),
                };
                found(rule, by)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the number of conditions that are not in the index. They are tested one by one.
    #[must_use]
    pub fn unindexed(&self) -> usize {
        self.unindexed
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("rules", &self.rules.len())
            .field("unindexed", &self.unindexed)
            .finish_non_exhaustive()
    }
}

/// Takes the least rule from lists in ascending order.
fn next(sources: &mut Sources<'_>) -> Option<u32> {
    if let [list] = &mut **sources {
        let (first, rest) = list.split_first()?;
        *list = rest;
        return Some(*first);
    }
    let firsts = sources.iter().filter_map(|list| list.first());
    let least = *firsts.min()?;
    for list in sources {
        match list.split_first() {
            Some((first, rest)) if *first == least => *list = rest,
            _ => {}
        }
    }
    Some(least)
}

impl Conditions {
    fn hold<F: Facts + ?Sized>(&self, request: &Request<'_, '_, F>, reading: Reading) -> bool {
        self.all
            .iter()
            .all(|(fact, test)| request.passes(*fact, test, reading))
            && self.implied.as_ref().is_none_or(|implied| {
                let (fact, test) = &**implied;
                !request.is_ambiguous(*fact) || request.passes(*fact, test, reading)
            })
            && (self.any.is_empty() || self.any.iter().any(|any| any.hold(request, reading)))
            && !self
                .not
                .as_ref()
                .is_some_and(|not| not.hold(request, reading.negated()))
    }
}

impl<'m, 'v, F: Facts + ?Sized> Request<'m, 'v, F> {
    fn new(names: &'m [FactName], facts: &'v F) -> Self {
        let inputs = names.iter().map(|_| OnceCell::new()).collect();
        Self {
            names,
            facts,
            inputs,
            several: Cell::new(false),
            more: Cell::new(false),
        }
    }

    fn inputs(&self, fact: usize) -> Option<&Inputs<'v>> {
        let name = self.names.get(fact)?;
        let inputs = self.inputs.get(fact)?;
        Some(inputs.get_or_init(|| {
            let inputs = Inputs::read(self.facts, name);
            if let Inputs::Several { more, .. } = inputs {
                self.several.set(true);
                self.more.set(self.more.get() || more);
            }
            inputs
        }))
    }

    /// Returns whether a fact has several values.
    fn is_ambiguous(&self, fact: u32) -> bool {
        matches!(self.inputs(fact as usize), Some(Inputs::Several { .. }))
    }

    fn passes(&self, fact: u32, test: &Test, reading: Reading) -> bool {
        let name = self.names.get(fact as usize);
        let inputs = self.inputs(fact as usize);
        let accepts = |(name, inputs)| test.accepts(name, inputs, reading);
        name.zip(inputs).is_some_and(accepts)
    }
}

/// Numbers of facts.
#[derive(Default)]
struct Numbers {
    names: Vec<FactName>,
    numbers: HashMap<FactName, u32, FixedState>,
}

impl Numbers {
    fn number(&mut self, name: &FactName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = number(self.names.len());
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    /// The conditions, with the one of this index apart.
    fn conditions(&mut self, when: &When, implied: Option<usize>) -> Conditions {
        let all = when.all.iter().enumerate();
        let all = all.filter(|(index, _)| Some(*index) != implied);
        let implied = implied.and_then(|index| when.all.get(index));
        let implied = implied.map(|it| Box::new((self.number(&it.fact), it.test.clone())));
        Conditions {
            implied,
            all: all
                .map(|(_, condition)| (self.number(&condition.fact), condition.test.clone()))
                .collect(),
            any: when
                .any
                .iter()
                .map(|when| self.conditions(when, None))
                .collect(),
            not: when
                .not
                .as_ref()
                .map(|when| self.conditions(when, None).into()),
        }
    }
}

#[cfg(test)]
mod tests;
