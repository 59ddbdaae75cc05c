//! What a request asks, as the recorder of its rules.

use std::collections::BTreeMap;
use std::ops::Deref;

use smallvec::SmallVec;
use tollgate::keyed::KeyHasher;

use super::asks::{AlsoAskedBy, Ask, Asks};
use crate::choose::{Asked, NoLimit, Recorder, Why};
use crate::facts::Facts;
use crate::limit::{Fixed, PolicyClock, RuleLimit, Spec};
use crate::policy::Policy;
use crate::rule::{Bytes, What};

/// What a request asks, while its rules are collected.
struct Collected<'a, C> {
    policy: &'a Policy<C>,
    keys: &'a mut Bytes,
    list: &'a mut SmallVec<[Ask; 3]>,
    remote: &'a mut Vec<Ask>,
    would_deny: &'a mut SmallVec<[usize; 1]>,
    also_asked_by: &'a mut AlsoAskedBy,
    looks: &'a mut bool,
    /// The set of facts that is read now, by its position.
    set: u32,
    /// The rules that apply by the facts that are read now.
    rules: SmallVec<[usize; 4]>,
    /// Where asks are in `list` and in `remote`, once there are many.
    places: Option<Box<[Places; 2]>>,
    allowed: Option<Why>,
    refused: Option<Why>,
}

/// The most asks of which one is searched without an index.
const FEW: usize = 64;

/// Where the asks of each rule and key begin, since a request may have many sets of facts. Those of
/// one rule and key lie side by side.
#[derive(Default)]
struct Places {
    first: BTreeMap<(usize, u64), usize>,
    /// How many asks are in it.
    read: usize,
}

/// Returns the asks of a rule and a key.
fn asks_of<'a>(
    asks: &'a mut [Ask],
    places: Option<&mut Places>,
    rule: usize,
    hash: u64,
) -> impl Iterator<Item = &'a mut Ask> + use<'a> {
    let is_it = move |ask: &Ask| (ask.rule, ask.hash) == (rule, hash);
    let first = match places {
        None => asks.iter().position(is_it),
        Some(Places { first, read }) => {
            for (place, ask) in asks.iter().enumerate().skip(*read) {
                first.entry((ask.rule, ask.hash)).or_insert(place);
            }
            *read = asks.len();
            first.get(&(rule, hash)).copied()
        }
    };
    let asks = first.and_then(|first| asks.get_mut(first..));
    let asks = asks.unwrap_or_default().iter_mut();
    asks.take_while(move |ask| is_it(ask))
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Asks<R, C> {
    /// Collects what each of these facts asks. Returns what decides without a limit, if anything
    /// does, and the set of facts for which it does.
    pub(crate) fn collect(&mut self, sets: &[impl Facts]) -> Option<(Why, u32)> {
        let policy = &*self.policy;
        let mut collected = Collected {
            policy,
            keys: &mut self.keys,
            list: &mut self.list,
            remote: &mut self.remote,
            would_deny: &mut self.would_deny,
            also_asked_by: &mut self.also_asked_by,
            looks: &mut self.looks,
            set: 0,
            rules: SmallVec::new(),
            places: None,
            allowed: None,
            refused: None,
        };
        let (chooser, rules, registry) = (&policy.chooser, &policy.rules, &policy.registry);
        let (mut exempt, mut allowed) = (0, None);
        for facts in sets {
            match registry.resolvers.is_empty() {
                true => chooser.choose(rules, facts, &mut collected),
                false => chooser.choose(rules, &registry.resolve(facts), &mut collected),
            }
            if collected.refused.is_some() {
                break;
            }
            exempt += usize::from(collected.allowed.is_some());
            allowed = allowed.or(collected.allowed.take());
            collected.rules.clear();
            collected.set = collected.set.saturating_add(1);
        }
        // If the list `allow` exempts some of them, the rules of the others decide.
        let why = collected
            .refused
            .or(allowed.filter(|_| exempt == sets.len()));
        why.map(|why| (why, collected.set))
    }
}

impl<C: PolicyClock> Collected<'_, C> {
    /// Raises the cost of a rule whose key other facts have too. Returns whether there is such a
    /// rule.
    #[cold]
    fn raise(&mut self, rule: usize, hash: u64, cost: u64, looks: bool) -> bool {
        let are_many = self.list.len().max(self.remote.len()) > FEW;
        let places = are_many.then(|| self.places.get_or_insert_default());
        let [in_list, in_remote] = match places.map(|it| &mut **it) {
            Some([list, remote]) => [Some(list), Some(remote)],
            None => [None, None],
        };
        let asks = asks_of(self.list, in_list, rule, hash);
        let asks = asks.chain(asks_of(self.remote, in_remote, rule, hash));
        let mut is_known = false;
        for ask in asks {
            is_known = true;
            if looks {
                continue;
            }
            let rule = self.policy.rules.get(rule);
            match ask.what {
                What::Limit(limit) => {
                    let limit = rule.and_then(|rule| rule.limits.get(limit));
                    let counts = limit.is_some_and(|limit| limit.counts_requests(ask.plan));
                    ask.cost = ask.cost.max(if counts { 1 } else { cost });
                }
                What::Attempt => ask.cost = 1,
                What::Ban | What::Clock => {}
            }
            ask.looks = false;
        }
        if is_known {
            let others = self.also_asked_by.get_or_insert_default();
            others.entry((rule, hash)).or_default().push(self.set);
        }
        is_known
    }

    fn hash(&self, (start, end): (usize, usize)) -> u64 {
        let key = self.keys.get(start..end).unwrap_or_default();
        self.policy.hasher.0.hash_key(key)
    }
}

impl<C: PolicyClock> Recorder for Collected<'_, C> {
    fn keys(&mut self) -> &mut Bytes {
        self.keys
    }

    fn has(&self, rule: usize) -> bool {
        self.rules.contains(&rule)
    }

    fn override_of(&self, rule: usize, key: (usize, usize)) -> Option<Option<Fixed>> {
        let rule = self.policy.rules.get(rule)?;
        Some(match rule.override_of(self.hash(key))? {
            Spec::Fixed(fixed) => Some(*fixed),
            _ => None,
        })
    }

    fn list(&mut self, why: Why) {
        match why {
            Why::Allowed(_) => self.allowed = Some(why),
            _ => self.refused = Some(why),
        }
    }

    fn refuse(&mut self, rule: usize, shadow: bool, _: Option<usize>, why: NoLimit) {
        // Once, however many rules name it.
        self.rules.push(rule);
        if let (NoLimit::Missing, Some(rule)) = (why, self.policy.rules.get(rule)) {
            rule.lacks_key();
        }
        match shadow {
            true if self.would_deny.contains(&rule) => {}
            true => self.would_deny.push(rule),
            false => {
                self.refused.get_or_insert(Why::Rule(rule, why));
            }
        }
    }

    /// Decisions call it in one place, and another call must not cost them the inlining.
    #[inline(always)]
    fn ask(&mut self, index: usize, trial: bool, _: Option<usize>, asked: Asked) {
        let Some(rule) = self.policy.rules.get(index) else {
            return;
        };
        self.rules.push(index);
        let Asked {
            key,
            plan,
            cost,
            looks,
        } = asked;
        let hash = self.hash(key);
        if self.set > 0 && self.raise(index, hash, cost, looks) {
            return;
        }
        *self.looks |= looks;
        let set = self.set;
        let mut ask = |what, plan, cost, is_remote| {
            let ask = Ask {
                rule: index,
                what,
                plan,
                trial,
                takes: true,
                looks,
                set,
                key,
                hash,
                cost: if looks { 0 } else { cost },
            };
            match is_remote {
                true => self.remote.push(ask),
                false => self.list.push(ask),
            }
        };
        if let Some(ban) = rule.ban.as_ref().filter(|_| !trial) {
            ask(What::Ban, 0, 0, false);
            if ban.attempts.is_some() {
                ask(What::Attempt, 0, 1, false);
            }
        }
        for (limit, state) in rule.limits.iter().enumerate() {
            let cost = match state.counts_requests(plan) {
                true => 1,
                false => cost,
            };
            let is_remote = matches!(**state, RuleLimit::Remote(_));
            ask(What::Limit(limit), plan, cost, is_remote);
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_unlimited(&mut self, index: usize, trial: bool, by: Option<usize>, asked: Asked) {
        let (here, remote) = (self.list.len(), self.remote.len());
        self.ask(index, trial, by, asked);
        let hash = self.hash(asked.key);
        let rule = self.policy.rules.get(index);
        let is_asked = |ask: &Ask| match ask.what {
            What::Limit(limit) => !rule.is_some_and(|it| it.is_unlimited(limit, ask.plan, hash)),
            _ => true,
        };
        // If another set of facts asks it, that is left out already.
        let asked: Vec<_> = self.list.drain(here..).filter(is_asked).collect();
        self.list.extend(asked);
        let asked: Vec<_> = self.remote.drain(remote..).filter(is_asked).collect();
        self.remote.extend(asked);
    }

    fn is_over(&self) -> bool {
        self.refused.is_some()
    }
}
