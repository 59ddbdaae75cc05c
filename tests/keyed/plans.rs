//! A table of several plans, whose quotas change: each key's word is what the algorithms themselves make of it, one verb
//! after the other.

use std::collections::HashMap;

use tollgate::{
    Algorithm, AnyAlgorithm, Debt, GiveBack, Granted, Keep, Keyed, ManualClock, Quota, Requota,
    Tick,
};

use crate::{Random, all, with_less_at_first};

#[derive(Debug, Clone, Copy)]
enum Verb {
    Acquire(u64),
    TakeUpTo(u64),
    Available,
    /// Of this plan and version.
    Undo(Granted, (usize, u64)),
    Refund(u64),
    Charge(u64),
    Ban(Tick),
    Reset,
}

/// What a key has.
#[derive(Debug, Clone, Copy)]
struct Word {
    plan: usize,
    word: u64,
    is_banned: bool,
}

/// The table as its documentation has it.
struct Model {
    plans: Vec<(AnyAlgorithm, u64)>,
    keys: HashMap<u64, Word>,
}

impl Model {
    /// What is said: how many, and whether it is no denial.
    fn ask(&mut self, key: u64, plan: usize, now: Tick, verb: Verb) -> (u64, bool) {
        let (algorithm, version) = self.plans[plan];
        let held = self.keys.get(&key).copied();
        if held.is_none() && matches!(verb, Verb::Reset) {
            return (0, true);
        }
        if let Verb::Ban(until) = verb {
            self.ban(key, plan, now, until);
            return (0, true);
        }
        let word = match held {
            None => algorithm.initial_word(now),
            Some(held) if held.plan == plan => held.word,
            Some(held) if self.plans[held.plan].0.is_idle(held.word, now) => 0,
            Some(held) => self.plans[held.plan]
                .0
                .carry_over(held.word, now, &algorithm),
        };
        let is_banned = held.is_some_and(|held| held.is_banned);
        let is_banned = is_banned && algorithm.available(word, now) == 0;
        let (next, said) = match verb {
            Verb::Acquire(n) => match algorithm.step(word, now, n) {
                Ok((next, granted)) => (next, (granted.n(), true)),
                Err(_) => (word, (n, false)),
            },
            Verb::TakeUpTo(n) => {
                let (next, granted) = algorithm.take_up_to(word, now, n);
                (next, (granted.n(), true))
            }
            Verb::Available => (word, (algorithm.available(word, now), true)),
            Verb::Undo(_, of) if of != (plan, version) || is_banned => (word, (0, true)),
            Verb::Undo(granted, _) => {
                let (next, n) = algorithm.undo(word, now, &granted);
                (next, (n, true))
            }
            Verb::Refund(_) if is_banned => (word, (0, true)),
            Verb::Refund(n) => {
                let (next, n) = algorithm.refund(word, now, n);
                (next, (n, true))
            }
            Verb::Charge(n) => {
                let (next, charged) = algorithm.charge(word, now, n);
                (next, (charged.n(), true))
            }
            Verb::Reset | Verb::Ban(_) => (0, (0, true)),
        };
        let grants = matches!(verb, Verb::Acquire(_) | Verb::TakeUpTo(_) | Verb::Reset);
        let begins = held.is_none() && word != 0 && grants;
        if next != word || begins {
            let is_banned = is_banned && !grants;
            let word = Word {
                plan,
                word: next,
                is_banned,
            };
            self.keys.insert(key, word);
        }
        said
    }

    fn ban(&mut self, key: u64, plan: usize, now: Tick, until: Tick) {
        if until <= now {
            return;
        }
        let first = self.plans[plan].0.initial_word(now);
        let fresh = Word {
            plan,
            word: first,
            is_banned: false,
        };
        let held = self.keys.get(&key).copied().unwrap_or(fresh);
        let algorithm = self.plans[held.plan].0;
        let (word, _) = algorithm.take_up_to(held.word, until, u64::MAX);
        let banned = Word {
            word,
            is_banned: true,
            ..held
        };
        self.keys.insert(key, banned);
    }

    fn set_quota(&mut self, plan: usize, quota: Quota, keep: Keep, now: Tick) -> bool {
        let (old, version) = self.plans[plan];
        let Ok(new) = old.with_quota(quota) else {
            return false;
        };
        if keep == Keep::Fresh || quota != old.quota() {
            self.plans[plan] = (new, version + 1);
            for word in self.keys.values_mut().filter(|word| word.plan == plan) {
                word.word = match keep {
                    Keep::AsIs if old.is_idle(word.word, now) => 0,
                    Keep::AsIs => old.carry_over(word.word, now, &new),
                    Keep::Scaled => old.carry_scaled(word.word, now, &new),
                    Keep::Fresh => new.initial_word(now),
                };
            }
        }
        true
    }
}

struct Run {
    table: Keyed<AnyAlgorithm, ManualClock>,
    model: Model,
    random: Random,
    now: u64,
    kept: Vec<(u64, Granted, (usize, u64))>,
    moved: u64,
}

impl Run {
    fn new(plans: &[AnyAlgorithm], seed: u64) -> Self {
        let table = Keyed::with_plans(plans.to_vec(), 1, ManualClock::new());
        Self {
            table: table.expect("a table"),
            model: Model {
                plans: plans.iter().map(|plan| (*plan, 0)).collect(),
                keys: HashMap::new(),
            },
            random: Random(seed),
            now: 86_400_000_000_007,
            kept: Vec::new(),
            moved: 0,
        }
    }

    fn verb(&mut self, key: u64) -> Verb {
        let (n, random) = (self.random.below(12), &mut self.random);
        match random.below(24) {
            0..=2 => Verb::TakeUpTo(n),
            3 | 4 => Verb::Available,
            5..=8 => match self.kept.iter().position(|(whose, ..)| *whose == key) {
                Some(place) => {
                    let (_, granted, of) = self.kept.swap_remove(place);
                    Verb::Undo(granted, of)
                }
                None => Verb::Available,
            },
            9 => Verb::Refund(n),
            10 => Verb::Charge(n),
            11 if random.one_in(4) => {
                let long = random.below(3_000_000_000);
                Verb::Ban(Tick::from_nanos(
                    (self.now + long).saturating_sub(500_000_000),
                ))
            }
            12 if random.one_in(4) => Verb::Reset,
            13..=15 => Verb::Acquire(n),
            _ => Verb::Acquire(1),
        }
    }

    fn ask(&mut self, key: u64, plan: usize, now: Tick) {
        let verb = self.verb(key);
        self.forget_banned(|(banned, word)| *banned == key && word.plan != plan);
        let right = self.model.ask(key, plan, now, verb);
        let part = (plan, self.model.plans[plan].1);
        let view = self.table.plan(plan).key(&key).at(now);
        let (granted, said) = match verb {
            Verb::Acquire(n) => match view.try_acquire_n(n) {
                Ok(granted) => (Some(granted), (granted.n(), true)),
                Err(denied) => (None, (denied.requested(), false)),
            },
            Verb::TakeUpTo(n) => {
                let granted = view.take_up_to(n);
                (Some(granted), (granted.n(), true))
            }
            Verb::Available => (None, (view.available(), true)),
            Verb::Undo(granted, _) => (None, (view.undo(granted), true)),
            Verb::Refund(n) => (None, (view.refund(n), true)),
            Verb::Charge(n) => (None, (view.charge(n).n(), true)),
            Verb::Ban(until) => (None, (0, view.ban(until).is_ok())),
            Verb::Reset => {
                view.reset();
                (None, (0, true))
            }
        };
        let plans = &self.model.plans;
        assert_eq!(
            said, right,
            "{verb:?} of {key} by {plan} at {now:?}: {plans:?}"
        );
        if let Some(granted) = granted {
            self.kept.truncate(100);
            self.kept.insert(0, (key, granted, part));
            self.moved += u64::from(granted.n() > 0);
        }
    }

    /// How a ban goes on in another plan, or under another quota, is shown by itself.
    fn forget_banned(&mut self, which: impl Fn(&(u64, Word)) -> bool) {
        let all = self.model.keys.iter().map(|(key, word)| (*key, *word));
        let banned: Vec<u64> = (all.filter(|(_, word)| word.is_banned).filter(which))
            .map(|(key, _)| key)
            .collect();
        for key in banned {
            self.model.keys.remove(&key);
            assert!(self.table.forget(&key), "{key} is banned");
        }
    }

    fn change(&mut self, now: Tick) {
        let plan = self.random.below(self.model.plans.len() as u64) as usize;
        let keep = [Keep::AsIs, Keep::Scaled, Keep::Fresh][self.random.below(3) as usize];
        let period = self.model.plans[plan].0.quota().period();
        let mut quota = Quota::per(1 + self.random.below(20), period);
        if self.model.plans[plan].0.with_quota(quota.burst(30)).is_ok() {
            quota = quota.burst(1 + self.random.below(30));
        }
        self.forget_banned(|_| true);
        let is_one = self.model.set_quota(plan, quota, keep, now);
        let done = self.table.plan(plan).set_quota_at(quota, keep, now);
        assert_eq!(done.is_ok(), is_one);
        let quota = self.model.plans[plan].0.quota();
        assert_eq!(self.table.plan(plan).quota(), Ok(quota));
    }

    fn operate(&mut self, operations: u64, changing: bool) {
        for operation in 0..operations {
            self.now += match self.random.below(8) {
                0 => self.random.below(300_000_000),
                1 => self.random.below(3_000_000),
                _ => 0,
            };
            let late = match self.random.one_in(8) {
                true => self.random.below(1_000_000_000),
                false => 0,
            };
            let now = Tick::from_nanos(self.now - late);
            let plan = self.random.below(self.model.plans.len() as u64) as usize;
            let key = self.random.skewed(60);
            self.ask(key, plan, now);
            assert_eq!(self.table.len(), self.model.keys.len());
            if changing && operation % 50 == 0 {
                self.change(now);
            }
        }
    }
}

#[test]
fn a_key_goes_on_in_another_plan_as_the_algorithms_say() {
    let all = all().into_iter().chain(with_less_at_first());
    let plans: Vec<AnyAlgorithm> = all.map(|(algorithm, _)| algorithm).collect();
    for (seed, changing) in [(1, false), (2, true), (3, true)] {
        for several in plans.windows(8).step_by(3) {
            let mut run = Run::new(several, seed);
            assert_eq!(run.table.plans(), 8);
            run.operate(2_000, changing);
            assert!(run.moved > 300, "{}", run.moved);
        }
    }
}

/// More changes than the bits of a version can tell apart, of keys that nobody asks for meanwhile.
#[test]
fn keys_that_sleep_through_hundreds_of_changes_are_carried_over() {
    let plans: Vec<AnyAlgorithm> = all().into_iter().map(|(algorithm, _)| algorithm).collect();
    for several in plans.chunks(3) {
        let mut run = Run::new(several, 5);
        for changes in [1, 61, 62, 63, 64, 65, 127, 128, 129, 200] {
            run.operate(300, false);
            for _ in 0..changes {
                run.now += 1_000_000;
                run.change(Tick::from_nanos(run.now));
            }
        }
        run.operate(300, false);
    }
}
