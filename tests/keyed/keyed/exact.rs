//! While no key lacks room, every verb on a key answers as the key's own word would, for every
//! algorithm: for late callers, through changes of quotas, in other plans, and when idle keys have
//! left and come back.

use tollgate::algorithm::{Debt, GiveBack, Settings};
use tollgate::error::LimiterError;

use crate::support::model::{Model, Of, Request, Said, ask_at, ask_now};
use crate::support::verbs::{Answer, Verb};
use crate::support::*;

/// So few keys that none lacks room.
const FEW: u64 = 60;
/// Many more keys than slots.
const MANY: u64 = 100_000;

/// A table and its model.
struct Run {
    table: Keyed<AnyAlgorithm, ManualClock>,
    model: Model,
    random: Random,
    now: u64,
    period: u64,
    keys: u64,
    changing: bool,
    /// The most keys with their own algorithms.
    overrides: usize,
    /// Grants that may be undone, each with its key and what granted it.
    kept: Vec<(u64, Granted, Of)>,
    /// The numbers of grants, of denials, and of returns.
    seen: [u64; 3],
}

impl Run {
    fn new(plans: &[AnyAlgorithm], keys: u64, seed: u64, changing: bool) -> Self {
        let table = match plans {
            [one] => table(*one),
            several => with_plans(several),
        };
        let (mut model, moves) = (Model::new(plans), KEEPS[seed as usize % 4]);
        model.moves = moves;
        Self {
            table: table.with_moves(moves),
            model,
            random: Random(seed),
            now: NOW,
            period: period(&plans[0]),
            keys,
            changing,
            overrides: 0,
            kept: Vec::new(),
            seen: [0; 3],
        }
    }

    fn with_overrides(mut self, overrides: usize) -> Self {
        self.table = self.table.with_overrides(overrides).expect("few plans");
        self.overrides = overrides;
        self
    }

    /// Advances the time, usually by nothing.
    fn go_on(&mut self) {
        let (random, period) = (&mut self.random, self.period);
        self.now += match random.below(24) {
            0 => 1,
            1..=3 => random.below(period / 8),
            4 => random.below(period),
            5 => period,
            6 => period - 1 - self.now % period + random.below(3),
            7 if random.one_in(4) => random.below(10 * period),
            _ => 0,
        };
    }

    /// Returns a caller's tick. With few keys none leaves, so some callers are up to two periods
    /// late.
    fn tick(&mut self) -> Tick {
        let behind = match self.keys == FEW && self.random.one_in(6) {
            true => self.random.below(2 * self.period),
            false => 0,
        };
        tick(self.now - behind)
    }

    /// Returns one of a few keys, or one of many that come and go.
    fn key(&mut self) -> u64 {
        match self.keys {
            FEW => self.random.skewed(FEW),
            _ if self.random.one_in(4) => self.random.below(20),
            keys => self.random.below(keys),
        }
    }

    fn request(&mut self, key: u64, plan: usize, now: Tick) -> Request {
        use tollgate::algorithm::Algorithm;
        let own = self.model.own.get(&key).map(|(own, _)| own);
        let burst = own.unwrap_or(&self.model.plans[plan]).available(0, now);
        let random = &mut self.random;
        let n = match random.below(12) {
            0 => 0,
            1 => burst,
            2 => burst + 1,
            3 => u64::MAX >> random.below(64),
            4 | 5 => 1 + random.below(burst),
            _ => 1,
        };
        Request::Verb(match random.below(32) {
            0..=11 => Verb::Take(n),
            12..=14 => Verb::TakeUpTo(n),
            15 | 16 => Verb::Available,
            17 => Verb::IsIdle,
            18 => Verb::Level,
            19 | 20 => Verb::TimeUntil(n),
            21..=24 => match self.kept.iter().position(|(whose, ..)| *whose == key) {
                Some(place) => {
                    let (_, granted, of) = self.kept.swap_remove(place);
                    return Request::Undo(granted, of);
                }
                None => Verb::Available,
            },
            25 => Verb::Refund(n),
            26 | 27 => Verb::Charge(n.min(2 * burst)),
            28 if random.one_in(3) => Verb::Reset,
            // With many keys it is unknown whether this one is still in the table.
            29 if random.one_in(3) && self.keys == FEW => return Request::Forget,
            // The tests of bans cover a ban in another plan or under another quota.
            30 if random.one_in(3) && !self.changing => {
                let until = (self.now + random.below(2 * self.period)) - self.period / 4;
                return Request::Ban(tick(until));
            }
            31 => {
                let every = Verb::every(n);
                every[random.below(every.len() as u64) as usize].0
            }
            _ => Verb::Take(1),
        })
    }

    /// Makes a request for a key in one of the possible ways, and compares the answers.
    fn ask(&mut self) {
        let (key, now) = (self.key(), self.tick());
        let plan = self.random.below(self.model.plans.len() as u64) as usize;
        let request = self.request(key, plan, now);
        let (held, is) = (self.model.keys.get(&key), self.model.of(key, plan).0);
        if held.is_some_and(|(of, _, is_banned)| *is_banned && *of != is) {
            self.model.keys.remove(&key);
            assert!(self.table.key(&key).remove());
        }
        let right = self.model.ask(key, plan, now, &request);
        let asked = format!("{request:?}");
        self.table.clock().set(now);
        let (table, of_plan) = (&self.table, self.table.key(&key).with_plan(plan));
        let outcome = |outcome: Result<Granted, Denied>| Said(outcome.into());
        let way = self.random.below(8);
        let said = match (&request, way, plan) {
            (Request::Verb(Verb::Take(n)), 0, 0) => outcome(table.try_acquire_n(&key, *n)),
            (Request::Verb(Verb::Take(n)), 1, 0) => {
                outcome(table.key(&key).at(now).try_acquire_n(*n))
            }
            (Request::Verb(Verb::Take(n)), 2, _) => outcome(of_plan.try_acquire_n(*n)),
            (Request::Verb(Verb::Take(1)), 3, 0) => outcome(table.try_acquire(&key)),
            (Request::Verb(Verb::Take(1)), 4, 0) => outcome(table.key(&key).at(now).try_acquire()),
            (Request::Verb(Verb::Take(1)), 5, _) => {
                let mut said = [Err(Denied::busy(1))];
                assert_eq!(
                    table.try_acquire_batch_at(plan, &[key], &mut said, now),
                    Ok(())
                );
                let [said] = said;
                outcome(said)
            }
            (Request::Forget, 0..=3, _) => Said(table.key(&key).remove().into()),
            // A reset without a clock may move an idle key to this plan.
            (Request::Verb(Verb::Reset), _, _) if self.model.plans.len() > 1 => {
                ask_at(&of_plan.at(now), request)
            }
            (Request::Forget, ..) | (_, 6, _) => ask_now(&of_plan, request),
            _ => ask_at(&of_plan.at(now), request),
        };
        let plans = &self.model.plans;
        assert_eq!(said, right, "{asked} {key} {now:?} {plans:?}");
        let there = (self.table.len(), self.model.keys.len());
        assert!(
            self.keys == MANY || there.0 == there.1,
            "{there:?} after {asked} {plans:?}"
        );
        match said.0 {
            Answer::Granted(granted) => {
                self.seen[0] += 1;
                self.kept.truncate(63);
                let place = self.random.below(1 + self.kept.len() as u64) as usize;
                let granted = (key, granted, self.model.of(key, plan));
                self.kept.insert(place, granted);
            }
            Answer::Denied(_) => self.seen[1] += 1,
            Answer::Returned(1..) => self.seen[2] += 1,
            _ => {}
        }
    }

    /// Sets another quota for one plan: one of a few, or an invalid one.
    fn change(&mut self) {
        let plan = self.random.below(self.model.plans.len() as u64) as usize;
        // If keys leave, a full key must stay full, since any may have left.
        let keeps = match self.keys {
            FEW => KEEPS,
            _ => [Keep::Scaled, Keep::Used, Keep::Fresh, Keep::Fresh],
        };
        let keep = keeps[self.random.below(4) as usize];
        let (algorithm, n) = (self.model.plans[plan], 1 + self.random.below(20));
        let old = algorithm.quota();
        let period = match self.random.below(5) {
            0 => old.period() * (1 + n as u32 % 3) / 2,
            _ => old.period(),
        };
        let mut quota = if n > 16 { old } else { Quota::per(n, period) };
        if algorithm.with_quota(quota.burst(n + 1)).is_ok() {
            quota = quota.burst(1 + self.random.below(30));
        }
        if self.random.one_in(10) {
            quota = quota.burst(0);
        }
        // A key that has left the table starts fresh when it returns.
        if self.keys == FEW && self.random.one_in(4) {
            quota = quota.initial(self.random.below(4));
        }
        let now = self.tick();
        let is_one = self.model.set_quota(plan, quota, keep, now);
        self.table.clock().set(now);
        let done = match self.random.one_in(2) && plan == 0 {
            true => self.table.set_quota(quota, keep),
            false => self.table.set_plan_quota_at(plan, quota, keep, now),
        };
        assert_eq!(done.is_ok(), is_one, "{quota} of {algorithm}");
        let quota = self.model.plans[plan].quota();
        assert_eq!(self.table.plan_quota(plan), Ok(quota));
    }

    /// Sets another algorithm for one key, or removes its own.
    fn change_own(&mut self) {
        let (key, now) = (self.key(), self.tick());
        let plan = self.random.below(self.model.plans.len() as u64) as usize;
        let held = self.model.keys.get(&key);
        // The tests of bans cover a ban under another algorithm. If keys leave, it is unknown
        // whether this one has.
        if held.is_some_and(|(_, _, is_banned)| *is_banned) || self.keys != FEW {
            self.model.keys.remove(&key);
            self.table.key(&key).remove();
        }
        // A key that left as idle starts again with its initial permits, so where keys leave, none
        // has a quota with initial permits.
        let possible = if self.keys == FEW { every() } else { all() };
        let random = &mut self.random;
        let own = possible[random.below(possible.len() as u64) as usize];
        let burst = own.quota().burst_size();
        let (owned, view) = (
            self.model.own.get(&key),
            self.table.key(&key).with_plan(plan),
        );
        match (owned, random.below(3)) {
            (Some(_), 0) => {
                assert!(view.at(now).remove_override());
                self.model.set_own(key, None, plan, now);
            }
            (None, 0) => assert!(!view.at(now).remove_override()),
            (None, _) if self.model.own.len() == self.overrides => {
                let max = self.overrides;
                let refused = view.at(now).set_override(own);
                assert_eq!(refused, Err(LimiterError::OverridesInUse { max }));
            }
            (_, 1)
                if self.model.plans[plan]
                    .with_quota(Quota::per_second(burst))
                    .is_ok() =>
            {
                let own = self.model.plans[plan].with_quota(Quota::per_second(burst));
                let own = own.expect("a quota");
                assert_eq!(view.at(now).set_quota(Quota::per_second(burst)), Ok(()));
                self.model.set_own(key, Some(own), plan, now);
            }
            _ => {
                assert_eq!(self.table.key(&key).at(now).set_override(own), Ok(()));
                self.model.set_own(key, Some(own), plan, now);
            }
        }
        let own = self.model.own.get(&key).map(|(own, _)| *own);
        assert_eq!(self.table.key(&key).override_algorithm(), own);
        assert_eq!(self.table.overrides(), self.model.own.len());
    }

    fn operate(&mut self, operations: u64) {
        for _ in 0..operations {
            if self.overrides > 0 && self.random.one_in(8) {
                self.change_own();
            }
            self.go_on();
            self.ask();
        }
    }

    /// Runs a long random history. The quota changes after every `verbs` verbs.
    fn follow(mut self, turns: u64, verbs: u64) {
        for _ in 0..turns {
            self.operate(verbs);
            if self.changing {
                self.change();
            }
        }
        let (stats, plans) = (self.table.stats(), &self.model.plans);
        let left = stats.expired + stats.removed;
        assert_eq!(stats.inserted, stats.tracked + left, "{plans:?}");
        assert_eq!((stats.evicted, stats.no_room), (0, 0), "{plans:?}");
        let [granted, denied, back] = self.seen;
        assert!(granted > 300 && denied > 100, "{:?} {plans:?}", self.seen);
        if self.keys == FEW {
            let there = (stats.tracked, stats.expired);
            assert_eq!(there, (self.model.keys.len() as u64, 0), "{plans:?}");
            assert!(back > 10, "{back} {plans:?}");
        } else {
            assert!(stats.expired > 100, "{stats:?} {plans:?}");
        }
    }
}

#[test]
fn a_key_answers_as_a_limiter_of_its_own() {
    for (seed, algorithm) in (0..).zip(every()) {
        for changing in [false, true] {
            Run::new(&[algorithm], FEW, seed, changing).follow(often(60), 40);
        }
    }
}

#[test]
fn a_key_that_returns_is_as_if_it_had_stayed() {
    for (seed, algorithm) in (0..).zip(all()) {
        for changing in [false, true] {
            if changing == (seed % 2 == 0) || !cfg!(debug_assertions) {
                Run::new(&[algorithm], MANY, seed, changing).follow(often(20), 300);
            }
        }
    }
}

#[test]
fn a_key_with_its_own_algorithm_answers_as_a_limiter_of_that_algorithm() {
    for (seed, several) in (0..).zip(every().windows(3).step_by(2)) {
        for (changing, overrides) in [(false, 1), (true, 5), (true, 60)] {
            let plans = &several[..1 + overrides % 3];
            let run = Run::new(plans, FEW, seed, changing).with_overrides(overrides);
            run.follow(often(40), 50);
        }
    }
}

#[test]
fn a_key_that_comes_back_has_its_own_algorithm_again() {
    for (seed, algorithm) in (0..).zip(all()) {
        let changing = seed % 3 == 0;
        let run = Run::new(&[algorithm], MANY, seed, changing).with_overrides(100);
        run.follow(often(10), 600);
    }
}

/// Checks that a key of a table of this type answers as one in a table of [`AnyAlgorithm`].
fn answers_as_any<A>(own: A)
where
    A: ChangeQuota + Settings + GiveBack + Debt + Clone + Into<AnyAlgorithm>,
{
    let any = table::<AnyAlgorithm>(own.clone().into());
    let own = table(own);
    let mut random = Random(7);
    for turn in 0..often(1_000) {
        let (key, n) = (random.skewed(20), random.below(9));
        let now = tick(NOW + turn * SECOND / 40);
        macro_rules! said {
            ($limiter:expr) => {{
                let at = $limiter.key(&key).at(now);
                let outcome = Said(at.try_acquire_n(n).into());
                (outcome, at.charge(n / 4), at.refund(n / 3), at.available())
            }};
        }
        assert_eq!(said!(own), said!(any), "{turn} {:?}", any);
        if turn % 40 == 39 {
            let keep = KEEPS[n as usize % 4];
            let quota = Quota::per_second(5 + n);
            assert!(own.set_plan_quota_at(0, quota, keep, now).is_ok());
            assert!(any.set_plan_quota_at(0, quota, keep, now).is_ok());
        }
    }
}

#[test]
fn a_table_of_a_concrete_algorithm_answers_as_one_of_any_algorithm() {
    let quota = Quota::per_second(10);
    answers_as_any(bucket("10/s burst 7"));
    answers_as_any(Gcra::new(quota).expect("a quota"));
    answers_as_any(LeakyBucket::meter(quota).expect("a quota"));
    answers_as_any(FixedWindow::new(quota).expect("a quota"));
    answers_as_any(SlidingWindow::new(quota).expect("a quota"));
    answers_as_any(Intervals::new(quota).expect("a quota"));
}

#[test]
fn a_key_moves_to_another_plan_as_the_algorithms_carry_it_over() {
    for (seed, several) in (0..).zip(every().windows(8).step_by(3)) {
        for changing in [false, true] {
            let run = Run::new(several, FEW, seed, changing);
            assert_eq!(run.table.plans(), 8);
            run.follow(often(60), 50);
        }
    }
}

/// A slot distinguishes 64 versions. No caller asks for these keys in the meantime.
#[test]
fn keys_unused_during_hundreds_of_changes_are_migrated() {
    for several in all().chunks(3) {
        let mut run = Run::new(several, FEW, 5, true);
        for changes in [1, 61, 62, 63, 64, 65, 127, 128, 129, 200] {
            run.operate(100);
            for _ in 0..changes {
                run.now += 1_000_000;
                run.change();
            }
        }
        run.operate(100);
    }
}

/// A batch decides its keys in order, including keys that occur twice.
#[test]
fn a_batch_answers_as_single_requests_do() {
    let [one, many] = [(); 2].map(|()| table(bucket("10/s burst 5")));
    let mut random = Random(3);
    let mut denied = 0;
    for turn in 0..300 {
        let now = tick(NOW + turn * SECOND / 100);
        let keys: Vec<u64> = (0..turn % 67).map(|_| random.skewed(50)).collect();
        let mut said: Vec<_> = keys.iter().map(|_| Err(Denied::busy(1))).collect();
        let done = match turn % 2 {
            0 => {
                many.clock().set(now);
                many.try_acquire_batch(&keys, &mut said)
            }
            _ => many.try_acquire_batch_at(0, &keys, &mut said, now),
        };
        let right = keys.iter().map(|key| one.key(key).at(now).try_acquire());
        assert_eq!((done, &said), (Ok(()), &right.collect()));
        denied += said.iter().filter(|outcome| outcome.is_err()).count();
    }
    assert_eq!(many.len(), one.len());
    assert!(denied > 1000, "{denied}");
}
