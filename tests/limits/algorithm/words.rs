//! What holds for any word at any tick, whether a limiter could have come to it or not: no verb
//! panics or makes the word that a limiter keeps for itself, a denial is exact to the nanosecond,
//! and no caller gets more for being late, early, or idle.

use std::time::Duration;

use tollgate::cell::{Cell, Place, UNSTARTED};
use tollgate::{
    Algorithm, AnyAlgorithm, At, Debt, Denied, Forecast, Gauge, Gcra, GiveBack, Granted,
    LeakyBucket, Rebase, Requota, Tick, TokenBucket,
};

use crate::algorithm::bucket::Bucket;
use crate::algorithm::{cases, quotas};
use crate::bad_input::EDGES;
use crate::support::random::Random;
use crate::support::reference::FIFTY_YEARS;

/// All algorithms of all comparisons.
pub(crate) fn all() -> Vec<AnyAlgorithm> {
    fn of<M>(cases: Vec<cases::Case<M>>) -> impl Iterator<Item = AnyAlgorithm> {
        cases.into_iter().map(|(algorithm, _)| algorithm)
    }
    let quotas = quotas::exact().into_iter().chain(quotas::elsewhere());
    let buckets = quotas.enumerate().map(|(i, quota)| match i % 5 {
        0 => LeakyBucket::meter(quota).map(AnyAlgorithm::from),
        1 => LeakyBucket::queue(quota).map(|queue| queue.free(i as u64 % 3).into()),
        2 => Gcra::new(quota).map(AnyAlgorithm::from),
        3 => TokenBucket::new(quota.initial(0)).map(AnyAlgorithm::from),
        _ => TokenBucket::new(quota).map(AnyAlgorithm::from),
    });
    let (ms, year) = (Duration::from_millis, Duration::from_nanos(quotas::YEAR));
    let tolerances = [(10, 25), (1000, 0), (7, 86_400_000)]
        .map(|(interval, tolerance)| Gcra::from_interval(ms(interval), ms(tolerance)));
    let tolerances = tolerances
        .into_iter()
        .chain([Gcra::from_interval(year, year / 3)]);
    let buckets = buckets.chain(tolerances.map(|gcra| gcra.map(AnyAlgorithm::from)));
    let windows = of(cases::fixed())
        .chain(of(cases::first_hit()))
        .chain(of(cases::sliding()));
    let intervals = of(cases::intervals()).chain(of(cases::greedy()));
    let buckets = buckets.map(|bucket| bucket.expect("a bucket"));
    buckets.chain(windows).chain(intervals).collect()
}

#[derive(Debug)]
struct Case<'a> {
    algorithm: &'a AnyAlgorithm,
    word: u64,
    now: Tick,
    n: u64,
    /// Whether no part of a nanosecond is rounded.
    exact: bool,
}

impl Case<'_> {
    fn limit(&self) -> u64 {
        self.algorithm.quota().burst_size()
    }

    /// What a verb answers, and the word that it makes.
    #[track_caller]
    fn verb<T>(&self, verb: impl FnOnce(&At<'_, AnyAlgorithm>) -> T) -> (T, u64) {
        let cell = Cell::new(self.word);
        let answer = verb(&At::new(self.algorithm, &cell, self.now));
        let next = cell.load();
        assert_ne!(next, UNSTARTED, "{self:?}");
        assert!(
            self.algorithm.available(next, self.now) <= self.limit(),
            "{self:?}"
        );
        (answer, next)
    }

    /// What a verb answers that writes nothing.
    #[track_caller]
    fn look<T>(&self, verb: impl FnOnce(&At<'_, AnyAlgorithm>) -> T) -> T {
        let (answer, next) = self.verb(verb);
        assert_eq!(next, self.word, "{self:?}");
        answer
    }

    fn available(&self) -> u64 {
        self.look(|at| at.available())
    }

    /// A word after a grant: an admission never lowers it, and none at all leaves it.
    #[track_caller]
    fn took(&self, n: u64, next: u64) {
        let is_right = if n == 0 {
            next == self.word
        } else {
            next > self.word
        };
        assert!(is_right, "{self:?}: {next}");
    }

    /// What a grant of so many says that remains.
    #[track_caller]
    fn remains(&self, granted: Granted, next: u64) {
        let left = self.available() - granted.n();
        let least = left - u64::from(!self.exact).min(left);
        assert!(
            (least..=left).contains(&granted.remaining()),
            "{self:?}: {granted:?}"
        );
        assert_eq!(
            self.algorithm.available(next, self.now),
            granted.remaining(),
            "{self:?}"
        );
        assert!(granted.at() >= self.now, "{self:?}: {granted:?}");
    }

    fn acquire(&self) {
        let (available, wait) = (self.available(), self.look(|at| at.time_until(self.n)));
        let (answer, next) = self.verb(|at| at.try_acquire_n(self.n));
        match answer {
            Ok(granted) => {
                assert_eq!(
                    (granted.n(), wait),
                    (self.n, Some(Duration::ZERO)),
                    "{self:?}"
                );
                assert!(self.n <= available, "{self:?}: {granted:?}");
                self.took(self.n, next);
                self.remains(granted, next);
                let (same, back) = self.algorithm.undo(next, self.now, &granted);
                assert_eq!(back, self.n, "{self:?}: undone at once");
                let is_full = self.look(|at| at.is_idle());
                let then = self.algorithm.available(same, self.now);
                assert!(
                    then == available || is_full && !self.exact,
                    "{self:?}: {then}"
                );
            }
            Err(denied) => {
                assert_eq!(next, self.word, "{self:?}: a denial wrote");
                assert!(self.n == 0 || self.n > available, "{self:?}: {denied}");
                assert_eq!(
                    (denied.requested(), denied.retry_after()),
                    (self.n, wait),
                    "{self:?}"
                );
                let never = denied == Denied::never(self.n, self.limit());
                assert_eq!(never, self.n > self.limit(), "{self:?}: {denied}");
                self.denied(denied);
            }
        }
    }

    /// It passes when the denial says, and not a nanosecond before.
    fn denied(&self, denied: Denied) {
        assert!(!denied.to_string().is_empty());
        assert_eq!(denied.is_permanent(), denied.retry_after().is_none());
        let passes = |tick| self.algorithm.step(self.word, tick, self.n).is_ok();
        let due = denied
            .retry_after()
            .map(|wait| self.now.saturating_add(wait));
        assert_eq!(
            self.algorithm.due(self.word, self.now, self.n),
            due,
            "{self:?}: {denied}"
        );
        let Some(due) = due else {
            let fifty_years = Tick::from_nanos(FIFTY_YEARS);
            return assert!(
                !passes(Tick::MAX) && !passes(fifty_years),
                "{self:?}: {denied}"
            );
        };
        let before = due.saturating_sub(Duration::from_nanos(1));
        assert!(
            due > self.now && passes(due) && !passes(before),
            "{self:?}: {denied}"
        );
    }

    fn take_up_to(&self) {
        let (granted, next) = self.verb(|at| at.take_up_to(self.n));
        assert_eq!(granted.n(), self.n.min(self.available()), "{self:?}");
        self.took(granted.n(), next);
        self.remains(granted, next);
    }

    fn charge(&self) {
        let (charged, next) = self.verb(|at| at.charge(self.n));
        assert!(
            charged.n() <= self.n && charged.at() >= self.now,
            "{self:?}"
        );
        self.took(charged.n(), next);
        let free = self.algorithm.step(next, self.now, 0).is_ok();
        assert_eq!(free, charged.debt() == 0, "{self:?}: {charged:?}");
        assert_eq!(
            free,
            charged.clear_after().is_zero(),
            "{self:?}: {charged:?}"
        );
    }

    fn give_back(&self, mark: u64) {
        let back = |verb: &dyn Fn(&At<'_, AnyAlgorithm>) -> u64| {
            let (back, next) = self.verb(verb);
            assert!(back > 0 || next == self.word, "{self:?}: {next}");
            let (before, after) = (self.available(), self.algorithm.available(next, self.now));
            assert!(
                before <= after && after - before <= back,
                "{self:?}: {back} back"
            );
            back
        };
        // As much as is asked for, of what a request for everything would bring.
        let most = back(&|at| at.refund(u64::MAX));
        assert_eq!(back(&|at| at.refund(self.n)), self.n.min(most), "{self:?}");
        let forged = |n| Granted::new(n, self.now).with_mark(mark);
        let most = back(&|at| at.undo(forged(u64::MAX)));
        assert_eq!(
            back(&|at| at.undo(forged(self.n))),
            self.n.min(most),
            "{self:?}"
        );
    }

    fn reset(&self) {
        let all = |at: &At<'_, AnyAlgorithm>| {
            at.reset();
            (at.available(), at.is_idle())
        };
        assert_eq!(self.verb(all).0, (self.limit(), true), "{self:?}");
    }

    /// Time alone only ever brings permits, up to the end of it: no count comes back to life.
    fn left_alone(&self, later: Tick) {
        let (algorithm, word, now) = (self.algorithm, self.word, self.now.min(later));
        let later = later.max(self.now);
        let (had, has) = (
            algorithm.available(word, now),
            algorithm.available(word, later),
        );
        assert!(had <= has, "{self:?}: {had}, but {has} at {later:?}");
        let (level, then) = (algorithm.level(word, now), algorithm.level(word, later));
        assert!(
            level.ceil() >= then.ceil(),
            "{self:?}: {level:?}, but {then:?} at {later:?}"
        );
        let (idle, then) = (algorithm.is_idle(word, now), algorithm.is_idle(word, later));
        assert!(!idle || then, "{self:?} at {later:?}");
        let full = algorithm.idle_at(word, self.now);
        let is_full = algorithm.available(word, full) == self.limit();
        assert!(
            full >= self.now && (is_full || full == Tick::MAX),
            "{self:?}: {full:?}"
        );
    }

    /// A caller that is behind gets no more, and leaves no more to others.
    fn behind(&self, older: Tick) {
        let (algorithm, word, n) = (self.algorithm, self.word, self.n);
        let (now, older) = (self.now.max(older), self.now.min(older));
        let Ok((next, _)) = algorithm.step(word, older, n) else {
            return;
        };
        let in_time = algorithm.step(word, now, n);
        assert!(in_time.is_ok(), "{self:?}: granted at {older:?}");
        // A window of its own may have gone by since then; but not one of those that still count.
        let left = algorithm.available(next, now);
        assert!(
            left <= algorithm.available(word, now),
            "{self:?}: {left} left"
        );
    }

    /// An idle word can't be told from the word 0, then or later.
    fn idle(&self, later: Tick) {
        let (algorithm, word, n) = (self.algorithm, self.word, self.n);
        if !self.look(|at| at.is_idle()) {
            return;
        }
        for now in [self.now, later.max(self.now)] {
            let said = |(next, granted): (u64, Granted)| {
                let waits = (granted.reset_after(), granted.delay());
                (
                    next.max(word),
                    granted.n(),
                    granted.at(),
                    granted.remaining(),
                    waits,
                )
            };
            let answers = |from| {
                let (next, charged) = algorithm.charge(from, now, n);
                (
                    algorithm.step(from, now, n).map(said),
                    said(algorithm.take_up_to(from, now, n)),
                    (next.max(word), charged),
                    algorithm.due(from, now, n),
                    (
                        algorithm.available(from, now),
                        algorithm.level(from, now).is_zero(),
                    ),
                    algorithm.refund(from, now, n).1,
                )
            };
            assert_eq!(answers(word), answers(0), "{self:?} at {now:?}");
        }
    }

    /// On another clock, or under another limit, there is no more, and a full bucket stays one.
    fn moved(&self, to: Tick, other: &AnyAlgorithm) {
        let (algorithm, word, now) = (self.algorithm, self.word, self.now);
        let (had, is_idle) = (self.available(), self.look(|at| at.is_idle()));
        let moved = algorithm.rebase(word, now, to);
        let has = algorithm.available(moved, to);
        assert!(
            moved != UNSTARTED && has <= had,
            "{self:?}: {had}, but {has} at {to:?}"
        );
        assert!(!is_idle || to == now || moved == 0, "{self:?}");
        let is_line = |algorithm: &AnyAlgorithm| matches!(algorithm, AnyAlgorithm::LeakyBucket(queue) if queue.free_permits().is_some());
        // Those in line stay in line, and a longer queue has room for more.
        if is_line(algorithm) && is_line(other) {
            return;
        }
        let carried = algorithm.carry_over(word, now, other);
        let has = other.available(carried, now);
        assert!(
            carried != UNSTARTED && has <= had,
            "{self:?}: {had}, but {has} of {other}"
        );
    }
}

/// A number at an edge, or anywhere.
fn any_number(random: &mut Random, algorithm: &AnyAlgorithm) -> u64 {
    let quota = algorithm.quota();
    let period = quota.period().as_nanos() as u64;
    match random.below(8) {
        0 => random.below(4),
        1 => u64::MAX - 1 - random.below(3),
        2 => quota.burst_size().saturating_add(random.below(3)) - 1,
        3 => FIFTY_YEARS.saturating_add(random.upto(FIFTY_YEARS)),
        4 => (period / 2)
            .saturating_mul(random.upto(50))
            .saturating_add(random.below(3)),
        5 => 1 << random.below(64),
        6 => EDGES[random.below(EDGES.len() as u64) as usize],
        _ => random.upto(u64::MAX),
    }
}

/// A word that this algorithm comes to at about that tick, or one beside it, or any.
fn any_word(random: &mut Random, algorithm: &AnyAlgorithm, now: u64) -> u64 {
    let period = algorithm.quota().period().as_nanos() as u64;
    let then = now
        .saturating_add(random.upto(period))
        .saturating_sub(random.upto(period));
    let later = Tick::from_nanos(then.saturating_add(random.upto(period)));
    let (then, n) = (Tick::from_nanos(then), any_number(random, algorithm));
    let (taken, granted) = algorithm.take_up_to(0, then, n);
    let (twice, _) = algorithm.take_up_to(taken, later, 1 + random.upto(n));
    let word = match random.below(8) {
        0 => 0,
        1 => random.next(),
        2 => any_number(random, algorithm),
        3 => algorithm.charge(0, then, n).0,
        4 => taken,
        5 => algorithm.undo(twice, later, &granted).0,
        6 => algorithm.refund(twice, later, random.upto(n)).0,
        _ => twice,
    };
    // The one that a limiter keeps for itself is never given to an algorithm.
    word.saturating_add(random.below(3) * random.below(2))
        .min(UNSTARTED - 1)
}

#[test]
fn any_word_is_answered_at_any_tick() {
    let mut random = Random(0x0070_11a7_e301);
    let turns = if cfg!(debug_assertions) { 150 } else { 4000 };
    let (mut cases, mut idle) = (0, 0);
    let all = all();
    for algorithm in &all {
        let is_bucket = matches!(
            algorithm,
            AnyAlgorithm::TokenBucket(_) | AnyAlgorithm::Gcra(_) | AnyAlgorithm::LeakyBucket(_)
        );
        for _ in 0..turns {
            let [now, n, number] = [0; 3].map(|_| any_number(&mut random, algorithm));
            let (case, then) = (
                Case {
                    algorithm,
                    word: any_word(&mut random, algorithm, now),
                    now: Tick::from_nanos(now),
                    n,
                    exact: !is_bucket || Bucket::from_quota(algorithm.quota()).exact,
                },
                Tick::from_nanos(number),
            );
            case.acquire();
            case.take_up_to();
            case.charge();
            case.give_back(number);
            case.reset();
            case.left_alone(then);
            case.behind(then);
            case.idle(then);
            case.moved(then, &all[random.below(all.len() as u64) as usize]);
            cases += 1;
            idle += u64::from(algorithm.is_idle(case.word, case.now));
        }
    }
    println!("{cases} words, {idle} of them idle");
    assert!(cases > 40_000 && idle > cases / 50 && idle < cases / 2);
}

#[test]
fn the_word_zero_is_fresh_at_every_tick_and_fresh_is_full() {
    let mut random = Random(0x0070_11a7_e302);
    for algorithm in all() {
        let quota = algorithm.quota();
        let limit = quota.burst_size();
        let ticks = (0..100)
            .map(|_| any_number(&mut random, &algorithm))
            .collect::<Vec<_>>();
        for now in ticks.into_iter().chain([0, u64::MAX]).map(Tick::from_nanos) {
            assert!(algorithm.is_idle(0, now), "{algorithm} at {now:?}");
            assert_eq!(algorithm.available(0, now), limit, "{algorithm} at {now:?}");
            let all = algorithm.step(0, now, limit);
            assert!(all.is_ok_and(|(_, granted)| granted.remaining() == 0));
            let nothing = algorithm.step(0, now, 0);
            assert!(
                nothing.is_ok_and(|(next, granted)| next == 0 && granted.reset_after().is_zero())
            );
            // The first verb starts a limiter, with what its quota says.
            let cell = Cell::new(UNSTARTED);
            let there = At::new(&algorithm, &cell, now).available();
            assert_eq!(cell.load(), algorithm.initial_word(now).min(UNSTARTED - 1));
            assert!(there <= quota.initial_permits() && there + 1 >= quota.initial_permits());
        }
    }
}
