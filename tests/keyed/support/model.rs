//! The expected answers of a table: each key has a word, and the algorithm changes it, one verb
//! after the other.

use std::collections::HashMap;

use tollgate::algorithm::GiveBack;
use tollgate::keyed::Key;
use tollgate::store::{AtomicWord, View, WordCell, WordStore};

use super::verbs::*;
use super::*;

/// What decides on a key: a plan and its number of quota changes, or [`OWN`] and the override's
/// number.
pub(crate) type Of = (usize, u64);

/// Stands for the key's own algorithm in place of a plan.
pub(crate) const OWN: usize = usize::MAX;

/// A request for a key.
#[derive(Debug)]
pub(crate) enum Request {
    Verb(Verb),
    /// Undoes a grant, and says what granted it.
    Undo(Granted, Of),
    Ban(Tick),
    Forget,
}

/// An answer. Grants are compared by all that they tell.
#[derive(Debug)]
pub(crate) struct Said(pub(crate) Answer);

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        let told = |granted: &Granted| {
            // A grant of zero permits has no mark.
            let mark = (granted.n() > 0).then_some(granted.mark());
            let counted = (granted.n(), granted.at(), mark);
            let left = (granted.remaining(), granted.reset_after());
            (counted, left, granted.due(), granted.delay())
        };
        match (&self.0, &other.0) {
            (Answer::Granted(granted), Answer::Granted(other)) => told(granted) == told(other),
            (answer, other) => answer == other,
        }
    }
}

/// Makes a request for a table's key at this tick.
pub(crate) fn ask_at<C, S>(view: &View<Key<&Keyed<AnyAlgorithm, C, S>>>, request: Request) -> Said {
    Said(match request {
        Request::Verb(verb) => ask!(view, verb, &mut None),
        Request::Undo(granted, _) => ask!(view, Verb::Undo, &mut Some(granted)),
        Request::Ban(until) => {
            view.ban(until).expect("there is room");
            Answer::Done
        }
        Request::Forget => unreachable!("a view does not forget"),
    })
}

/// Makes a request for a table's key at its clock's tick.
pub(crate) fn ask_now(key: &Key<&Keyed<AnyAlgorithm, ManualClock>>, request: Request) -> Said {
    Said(match request {
        Request::Verb(verb) => ask!(key, verb, &mut None),
        Request::Undo(granted, _) => ask!(key, Verb::Undo, &mut Some(granted)),
        Request::Forget => key.remove().into(),
        request => return ask_at(&key.at(key.now()), request),
    })
}

/// Returns the denial that a banned key gets in place of this one.
fn by_ban(denied: Denied) -> Denied {
    let n = denied.requested();
    match denied {
        Denied::Later { retry_after, .. } => Denied::banned(n, Some(retry_after)),
        Denied::Stuck { .. } => Denied::banned(n, None),
        other => other,
    }
}

fn carry(keep: Keep, old: &AnyAlgorithm, word: u64, now: Tick, new: &AnyAlgorithm) -> u64 {
    match keep {
        Keep::AsIs => old.carry_over(word, now, new),
        Keep::Scaled => old.carry_scaled(word, now, new),
        Keep::Used => old.carry_used(word, now, new),
        Keep::Fresh => new.initial_word(now),
    }
}

/// The state of keys that never need to make room for others.
pub(crate) struct Model {
    pub(crate) plans: Vec<AnyAlgorithm>,
    pub(crate) changes: u64,
    /// The algorithms of single keys, each with its number.
    pub(crate) own: HashMap<u64, (AnyAlgorithm, u64)>,
    pub(crate) sets: u64,
    /// What a key keeps when it moves to another algorithm.
    pub(crate) moves: Keep,
    /// Each key's plan, its word, and whether it is banned.
    pub(crate) keys: HashMap<u64, (usize, u64, bool)>,
}

impl Model {
    pub(crate) fn new(plans: &[AnyAlgorithm]) -> Self {
        Self {
            plans: plans.into(),
            changes: 0,
            own: HashMap::new(),
            sets: 0,
            moves: Keep::AsIs,
            keys: HashMap::new(),
        }
    }

    /// Returns the plan or override that decides on a key requested by this plan.
    pub(crate) fn of(&self, key: u64, plan: usize) -> Of {
        match self.own.get(&key) {
            Some((_, number)) => (OWN, *number),
            None => (plan, self.changes),
        }
    }

    /// Returns the algorithm that decides on a key requested by the first plan.
    pub(crate) fn algorithm_of(&self, key: u64) -> AnyAlgorithm {
        self.algorithm(key, self.of(key, 0).0)
    }

    /// Returns the algorithm of a key whose word belongs to this plan.
    fn algorithm(&self, key: u64, plan: usize) -> AnyAlgorithm {
        match plan {
            OWN => self.own[&key].0,
            plan => self.plans[plan],
        }
    }

    /// Gives a key its own algorithm, or removes it. Then the key continues in this plan.
    pub(crate) fn set_own(&mut self, key: u64, own: Option<AnyAlgorithm>, plan: usize, now: Tick) {
        let was = self.keys.get(&key).map(|(of, ..)| self.algorithm(key, *of));
        let of = match own {
            Some(own) => {
                self.sets += 1;
                self.own.insert(key, (own, self.sets));
                OWN
            }
            None => match self.own.remove(&key) {
                Some(_) => plan,
                None => return,
            },
        };
        let is = self.algorithm(key, of);
        if let (Some(was), Some(held)) = (was, self.keys.get_mut(&key)) {
            *held = (of, carry(self.moves, &was, held.1, now, &is), held.2);
        }
    }

    pub(crate) fn ask(&mut self, key: u64, plan: usize, now: Tick, request: &Request) -> Said {
        let (plan, number) = self.of(key, plan);
        let algorithm = self.algorithm(key, plan);
        let first = (plan, algorithm.initial_word(now), false);
        let is_new = !self.keys.contains_key(&key);
        let (was, word, is_banned) = self.keys.get(&key).copied().unwrap_or(first);
        if let Request::Ban(until) = *request {
            if until > now {
                // Everything available at the end of the ban is taken.
                let (word, _) = self.algorithm(key, was).take_up_to(word, until, u64::MAX);
                self.keys.insert(key, (was, word, true));
            }
            return Said(Answer::Done);
        }
        let word = match was == plan {
            true => word,
            false => carry(self.moves, &self.algorithm(key, was), word, now, &algorithm),
        };
        let is_banned = is_banned && algorithm.available(word, now) == 0;
        let (next, said) = match request {
            Request::Ban(_) | Request::Forget => {
                return Said(self.keys.remove(&key).is_some().into());
            }
            // Resetting a fresh key changes nothing.
            Request::Verb(Verb::Reset) if is_new => return Said(Answer::Done),
            Request::Undo(_, of) if *of != (plan, number) => (word, Answer::Returned(0)),
            Request::Undo(..) | Request::Verb(Verb::Refund(_)) if is_banned => {
                (word, Answer::Returned(0))
            }
            Request::Undo(granted, _) => {
                let (next, n) = algorithm.undo(word, now, granted);
                (next, Answer::Returned(n))
            }
            Request::Verb(verb) => {
                let cell = WordCell::new(word);
                let at = WordStore::new(&algorithm, &cell).at(now);
                let said = match ask!(at, *verb, &mut None) {
                    Answer::Denied(denied) if is_banned => Answer::Denied(by_ban(denied)),
                    said => said,
                };
                (cell.load(), said)
            }
        };
        let grants = match request {
            Request::Verb(verb) => matches!(verb.kind(), Kind::Takes | Kind::Resets),
            _ => false,
        };
        // A request that would take permits, or is denied, starts a key with partial initial
        // permits.
        let begins = is_new && word != 0 && (grants || matches!(said, Answer::Denied(_)));
        if next != word || begins {
            self.keys.insert(key, (plan, next, is_banned && !grants));
        }
        Said(said)
    }

    /// Returns whether the quota is valid for this plan. If so it becomes the current one.
    pub(crate) fn set_quota(&mut self, plan: usize, quota: Quota, keep: Keep, now: Tick) -> bool {
        let old = self.plans[plan];
        let Ok(new) = old.with_quota(quota) else {
            return false;
        };
        if keep == Keep::Fresh || quota != old.quota() {
            self.changes += 1;
            self.plans[plan] = new;
            for (_, word, _) in self.keys.values_mut().filter(|(of, ..)| *of == plan) {
                *word = carry(keep, &old, *word, now, &new);
            }
        }
        true
    }

    pub(crate) fn is_busy(&self, key: u64, now: Tick) -> bool {
        let held = self.keys.get(&key);
        held.is_some_and(|(plan, word, _)| !self.algorithm(key, *plan).is_idle(*word, now))
    }

    /// Returns the keys that differ from fresh ones. The others are forgotten.
    pub(crate) fn busy(&mut self, now: Tick) -> Vec<u64> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.retain(|key, (plan, word, _)| !self.algorithm(*key, *plan).is_idle(*word, now));
        self.keys = keys;
        self.keys.keys().copied().collect()
    }
}
