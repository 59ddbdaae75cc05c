//! Where nothing overflows, every verb says of each key what a limiter of its own would say: for every algorithm, also
//! to callers who come late, and through changes of the quota.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::{
    Denied, FixedWindow, Gcra, Granted, Intervals, Keep, Keyed, LeakyBucket, ManualClock, Quota,
    SlidingWindow, Tick, TokenBucket,
};

use crate::own::{Every, Gave, Owns, Said, Verb, ask_at, ask_now};
use crate::{Random, all, with_less_at_first};

/// A table and the limiters beside it.
pub(crate) struct Run<A> {
    pub(crate) table: Keyed<A, ManualClock>,
    pub(crate) owns: Owns<A>,
    pub(crate) random: Random,
    pub(crate) now: u64,
    period: u64,
    /// Grants that may be undone, and whose they are.
    kept: Vec<(u64, Granted)>,
    /// How many outcomes were grants, denials, and how often something came back.
    pub(crate) seen: [u64; 3],
    changes: u64,
}

impl<A: Every> Run<A> {
    pub(crate) fn new(algorithm: A, period: u64, seed: u64) -> Self {
        let table = Keyed::with_clock(algorithm.clone(), 1, ManualClock::new());
        Self {
            table: table.expect("a table"),
            owns: Owns::new(algorithm),
            random: Random(seed),
            now: 86_400_000_000_007,
            period,
            kept: Vec::new(),
            seen: [0; 3],
            changes: 0,
        }
    }

    /// The time goes on, mostly by nothing.
    pub(crate) fn go_on(&mut self) {
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

    /// A caller's tick: up to two periods late, if callers are.
    fn tick(&mut self, late: bool) -> Tick {
        let behind = match late && self.random.one_in(6) {
            true => self.random.below(2 * self.period),
            false => 0,
        };
        Tick::from_nanos(self.now - behind)
    }

    pub(crate) fn verb(&mut self, key: u64, now: Tick) -> Verb {
        let burst = self.owns.algorithm.available(0, now);
        let random = &mut self.random;
        let n = match random.below(12) {
            0 => 0,
            1 => burst,
            2 => burst + 1,
            3 => u64::MAX >> random.below(64),
            4 | 5 => 1 + random.below(burst),
            _ => 1,
        };
        match random.below(32) {
            0..=11 => Verb::Acquire(n),
            12..=14 => Verb::TakeUpTo(n),
            15 | 16 => Verb::Available,
            17 => Verb::IsIdle,
            18 => Verb::Level,
            19 | 20 => Verb::TimeUntil(n),
            21..=24 => self.grant_of(key).map_or(Verb::Available, Verb::Undo),
            25 => Verb::Refund(n),
            26 | 27 => Verb::Charge(n.min(2 * burst)),
            28 if random.one_in(3) => Verb::Reset,
            29 if random.one_in(3) => Verb::Forget,
            30 if random.one_in(3) => {
                let until = (self.now + random.below(2 * self.period)) - self.period / 4;
                Verb::Ban(Tick::from_nanos(until))
            }
            _ => Verb::Acquire(1),
        }
    }

    /// One of this key's that are kept, if there is one.
    fn grant_of(&mut self, key: u64) -> Option<Granted> {
        let place = self.kept.iter().position(|(whose, _)| *whose == key)?;
        Some(self.kept.swap_remove(place).1)
    }

    /// Asks a key for something, by one of the ways there are, and compares.
    #[track_caller]
    pub(crate) fn ask(&mut self, key: u64, now: Tick, verb: Verb) -> Said {
        let right = self.owns.ask(key, now, verb);
        self.table.clock().set(now);
        let way = self.random.below(8);
        let outcome = |outcome: Result<Granted, Denied>| Said::Outcome(outcome.map(Gave));
        let said = match (verb, way) {
            (Verb::Acquire(n), 0) => outcome(self.table.try_acquire_n(&key, n)),
            (Verb::Acquire(n), 1) => outcome(self.table.try_acquire_n_at(&key, n, now)),
            (Verb::Acquire(n), 2) => outcome(self.table.plan(0).try_acquire_n(&key, n)),
            (Verb::Acquire(1), 3) => outcome(self.table.try_acquire(&key)),
            (Verb::Acquire(1), 4) => outcome(self.table.try_acquire_at(&key, now)),
            (Verb::Acquire(1), 5) => outcome(self.as_a_batch(key)),
            (Verb::Forget, 0..=3) => Said::Yes(self.table.forget(&key)),
            (Verb::Forget, _) | (_, 6) => ask_now(&self.table.key(&key), verb),
            _ => ask_at(&self.table.key(&key).at(now), verb),
        };
        let is = &self.owns.algorithm;
        assert_eq!(said, right, "{verb:?} of {key} at {now:?} by {is:?}");
        self.note(key, &said);
        said
    }

    fn as_a_batch(&self, key: u64) -> Result<Granted, Denied> {
        let mut outcomes = [Err(Denied::busy(1))];
        let many = self.table.check_many(&[key], &mut outcomes);
        many.expect("as long as the keys");
        outcomes[0]
    }

    fn note(&mut self, key: u64, said: &Said) {
        match said {
            Said::Outcome(Ok(Gave(granted))) | Said::Took(Gave(granted)) => {
                self.seen[0] += 1;
                let place = self.random.below(64) as usize;
                match self.kept.get_mut(place) {
                    Some(kept) => *kept = (key, *granted),
                    None => self.kept.push((key, *granted)),
                }
            }
            Said::Outcome(Err(_)) => self.seen[1] += 1,
            Said::Back(1..) => self.seen[2] += 1,
            _ => {}
        }
    }

    /// Another quota for all keys: one of a few, or none that can be.
    pub(crate) fn change(&mut self, keeps: &[Keep], late: bool) {
        let keep = keeps[self.random.below(keeps.len() as u64) as usize];
        let old = self.owns.algorithm.quota();
        let n = 1 + self.random.below(20);
        let mut quota = match self.random.below(5) {
            0 => old,
            1 => Quota::per(n, Duration::from_nanos(self.period * (1 + n % 3) / 2)),
            _ => Quota::per(n, old.period()),
        };
        let takes_bursts = self.owns.algorithm.with_quota(quota.burst(n + 1)).is_ok();
        if takes_bursts {
            quota = quota.burst(1 + self.random.below(30));
        }
        if self.random.one_in(10) {
            quota = quota.burst(0);
        }
        let now = self.tick(late);
        for key in self.owns.forget_banned() {
            // It may have left, if the ban was over.
            self.table.forget(&key);
        }
        let is_one = self.owns.set_quota(quota, keep, now);
        self.table.clock().set(now);
        let done = match self.random.one_in(2) {
            true => self.table.set_quota(quota, keep),
            false => self.table.plan(0).set_quota_at(quota, keep, now),
        };
        assert_eq!(done.is_ok(), is_one, "{quota} of {:?}", self.owns.algorithm);
        assert_eq!(self.table.plan(0).quota(), Ok(self.owns.algorithm.quota()));
        self.changes += 1;
    }

    /// A long random history, of so many keys.
    pub(crate) fn operate(&mut self, operations: u64, keys: u64, late: bool) {
        for _ in 0..operations {
            self.go_on();
            let (key, now) = (self.random.skewed(keys), self.tick(late));
            let verb = self.verb(key, now);
            self.ask(key, now, verb);
            assert_eq!(self.table.len(), self.owns.len(), "after {verb:?} of {key}");
        }
    }
}

/// As few keys as never are in each other's way.
const FEW: u64 = 60;

fn follow<A: Every>(algorithm: A, period: u64, seed: u64, changing: bool) {
    let text = format!("{algorithm:?}");
    let mut run = Run::new(algorithm, period, seed);
    for _ in 0..200 {
        run.operate(40, FEW, true);
        if changing {
            run.change(&[Keep::AsIs, Keep::AsIs, Keep::Scaled, Keep::Fresh], true);
        }
    }
    let stats = run.table.stats();
    assert_eq!(stats.tracked, run.owns.len() as u64);
    let left = [stats.taken_over, stats.evicted, stats.no_room];
    assert_eq!(left, [0; 3], "there was room, {text}");
    let [granted, denied, back] = run.seen;
    assert!(
        granted > 500 && denied > 200 && back > 20,
        "{:?} {text}",
        run.seen
    );
    assert_eq!(run.changes, if changing { 200 } else { 0 });
}

#[test]
fn every_answer_is_that_of_a_limiter_for_this_key_alone() {
    for (seed, (algorithm, period)) in all().into_iter().chain(with_less_at_first()).enumerate() {
        follow(algorithm, period, seed as u64, false);
    }
}

#[test]
fn it_is_through_all_changes_of_the_quota_too() {
    for (seed, (algorithm, period)) in all().into_iter().chain(with_less_at_first()).enumerate() {
        follow(algorithm, period, 100 + seed as u64, true);
    }
}

#[test]
fn each_algorithm_by_its_own_name_as_well() {
    const SECOND: u64 = 1_000_000_000;
    fn both<A: Every + Debug>(algorithm: A) {
        follow(algorithm.clone(), SECOND, 7, false);
        follow(algorithm, SECOND, 8, true);
    }
    let quota = Quota::per_second(10);
    both(TokenBucket::new(quota.burst(7)).expect("a bucket"));
    both(Gcra::new(quota).expect("a gcra"));
    both(LeakyBucket::queue(quota).expect("a queue"));
    both(FixedWindow::new(quota).expect("windows"));
    both(SlidingWindow::new(quota).expect("a window"));
    both(Intervals::new(quota.burst(7)).expect("a bucket"));
}

/// In a batch each key is decided on in its turn, those that come twice too.
#[test]
fn a_batch_says_what_one_by_one_says() {
    let bucket = TokenBucket::new(Quota::per_second(10).burst(5)).expect("a bucket");
    let mut random = Random(3);
    let [one, many] =
        [(); 2].map(|()| Keyed::with_clock(bucket, 1000, ManualClock::new()).expect("a table"));
    let mut denied = 0;
    for turn in 0..300 {
        let now = Tick::from_nanos(turn * 10_000_000);
        let keys: Vec<u64> = (0..turn % 67).map(|_| random.skewed(50)).collect();
        let mut outcomes = vec![Err(Denied::busy(1)); keys.len()];
        let done = many.plan(0).check_many_at(&keys, &mut outcomes, now);
        done.expect("as long as the keys");
        let right: Vec<_> = keys
            .iter()
            .map(|key| one.try_acquire_at(key, now))
            .collect();
        assert_eq!(outcomes, right);
        denied += right.iter().filter(|outcome| outcome.is_err()).count();
    }
    assert_eq!(many.len(), one.len());
    assert!(denied > 1000, "{denied}");
}
