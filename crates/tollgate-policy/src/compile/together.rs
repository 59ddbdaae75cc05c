//! How many limits decide together about one request. A composition has room for [`MAX_MEMBERS`]:
//! limits that always apply must fit. Limits that apply by their conditions may be more; then a
//! slower function decides them.

use std::collections::{BTreeSet, HashMap};

use tollgate::compose::MAX_MEMBERS;

use crate::file::{Applies, Apply, BanOf, MissingFact, PolicyFile, Rule};
use crate::limit::limits_with_state;
use crate::problem::{Problem, Problems, quoted};
use crate::when::When;

/// The most rules that a message names.
const MAX_SHOWN: usize = 12;
/// The most pairs of rules that are compared. A policy with more is checked in part.
const MAX_PAIRS: usize = 1_000_000;

/// The rules of a file, and how many limits each of them asks.
struct Together<'f> {
    file: &'f PolicyFile,
    positions: HashMap<&'f str, usize>,
    counts: Vec<usize>,
}

/// Some rules, by their positions.
type Set = BTreeSet<usize>;

/// Adds an error if more limits always apply to one request than decide together. `is_elsewhere`
/// says which stores decide asynchronously: their limits are asked one after the other.
pub(crate) fn check_always(
    file: &PolicyFile,
    is_elsewhere: impl Fn(&str) -> bool,
    problems: &mut Problems,
) {
    let together = Together::of(file, is_elsewhere);
    let certain = |rule: &Rule| rule.missing != MissingFact::Skip || rule.key.is_empty();
    // The rules that apply to every request, or to every request that comes this far.
    let mut every = Set::new();
    for (index, rule) in file.rules.iter().enumerate() {
        let mut set = every.clone();
        if rule.when.value != Applies::Never {
            together.add(index, certain, &mut set);
        }
        let count = together.count(&set);
        if count > MAX_MEMBERS {
            let message = format!(
                "makes {count} limits that always apply to one request, but at most {MAX_MEMBERS} \
                 can (a ban counts too); they are those of {}",
                together.names(&set)
            );
            let field = rule.title();
            problems.push(Problem::error(field, "", message).at(rule.name.position));
            return;
        }
        let goes_on = rule.shadow || file.apply == Apply::All;
        if rule.when.value == Applies::Always && goes_on && certain(rule) {
            every = set;
        }
    }
}

/// Adds a warning if the conditions of rules allow that more limits apply to one request than
/// decide together.
pub(crate) fn check_possible(file: &PolicyFile, problems: &mut Problems) {
    let together = Together::of(file, |_| true);
    let mut errors = Problems::new();
    check_always(file, |_| true, &mut errors);
    // An error says more.
    if errors.has_errors() || together.counts.iter().sum::<usize>() <= MAX_MEMBERS {
        return;
    }
    let mut pairs = 0;
    for (index, rule) in file.rules.iter().enumerate() {
        if rule.when.value == Applies::Never {
            continue;
        }
        let mut roots = vec![rule];
        let mut set = Set::new();
        together.add(index, |_| true, &mut set);
        for (other_index, other) in file.rules.iter().enumerate() {
            // With `apply = "first"`, one rule decides. Only shadow rules before it apply too.
            let applies = file.apply == Apply::All || (other.shadow && other_index < index);
            if !applies || other.when.value == Applies::Never || other_index == index {
                continue;
            }
            pairs += roots.len();
            if pairs > MAX_PAIRS {
                return;
            }
            if !roots.iter().any(|root| exclude(root, other)) {
                roots.push(other);
                together.add(other_index, |_| true, &mut set);
            }
        }
        let count = together.count(&set);
        if count > MAX_MEMBERS {
            let message = format!(
                "can make {count} limits apply to one request, and more than {MAX_MEMBERS} (a ban \
                 counts too) are decided more slowly; they are those of {}",
                together.names(&set)
            );
            let field = rule.title();
            problems.push(Problem::warning(field, "", message).at(rule.when.position));
            return;
        }
    }
}

/// Whether no request meets the conditions of both rules.
fn exclude(rule: &Rule, other: &Rule) -> bool {
    let when = |rule: &Rule| match &rule.when.value {
        Applies::When(when) => when.clone(),
        Applies::Always | Applies::Never => When::default(),
    };
    when(rule).is_disjoint(&when(other))
}

impl<'f> Together<'f> {
    fn of(file: &'f PolicyFile, is_elsewhere: impl Fn(&str) -> bool) -> Self {
        let rules = file.rules.iter().enumerate();
        let count = |rule: &Rule| {
            let is_elsewhere =
                rule.store.as_str() != crate::parse::MEMORY && is_elsewhere(&rule.store);
            let limits = match is_elsewhere {
                true => 0,
                false => limits_with_state(rule),
            };
            let ban = rule.ban.as_ref().filter(|_| !rule.shadow);
            // Failures have a limit besides.
            limits
                + ban.map_or(0, |ban| match ban.of {
                    BanOf::Denials => 1,
                    BanOf::Failures => 2,
                })
        };
        Self {
            positions: rules
                .map(|(index, rule)| (rule.name.as_str(), index))
                .collect(),
            counts: file.rules.iter().map(count).collect(),
            file,
        }
    }

    /// Adds a rule, and those that apply with it as far as `follow` says.
    fn add(&self, index: usize, follow: impl Fn(&Rule) -> bool, set: &mut Set) {
        let mut next = vec![index];
        while let Some(index) = next.pop() {
            let Some(rule) = self.file.rules.get(index) else {
                continue;
            };
            // A rule on trial brings no others.
            if set.insert(index) && !rule.shadow {
                let also = rule
                    .also
                    .iter()
                    .filter_map(|name| self.positions.get(name.as_str()));
                let followed = |index: &&usize| self.file.rules.get(**index).is_some_and(&follow);
                next.extend(also.filter(followed));
            }
        }
    }

    fn count(&self, set: &Set) -> usize {
        set.iter().filter_map(|index| self.counts.get(*index)).sum()
    }

    fn names(&self, set: &Set) -> String {
        let rules = set.iter().filter_map(|index| self.file.rules.get(*index));
        let names: Vec<_> = rules.map(|rule| quoted(&rule.name)).collect();
        let shown = names.get(..MAX_SHOWN).unwrap_or(&names).join(", ");
        match names.len().checked_sub(MAX_SHOWN) {
            None | Some(0) => shown,
            Some(more) => format!("{shown} and {more} more"),
        }
    }
}
