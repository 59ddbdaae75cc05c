//! What holds for any word at any tick, whether a limiter could have come to it or not: no verb panics or
//! makes the word that a limiter keeps for itself, a denial is exact to the nanosecond, and nobody gets
//! more for being late, early, or idle.

use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, Debt, Denied, Forecast, Gauge, GiveBack, Granted, Rebase, Requota,
    Tick,
};

use crate::windows::budget::FIFTY_YEARS;
use crate::windows::quotas;
use crate::support::random::Random;

/// All algorithms of all models.
pub(crate) fn all() -> Vec<AnyAlgorithm> {
    fn of<A: Into<AnyAlgorithm>, M>(cases: Vec<(A, M)>) -> impl Iterator<Item = AnyAlgorithm> {
        cases.into_iter().map(|(algorithm, _)| algorithm.into())
    }
    let buckets = of(quotas::meters()).chain(of(quotas::queues()));
    let windows = of(quotas::fixed()).chain(of(quotas::first_hit()));
    let windows = windows.chain(of(quotas::sliding()));
    let intervals = of(quotas::intervals()).chain(of(quotas::greedy()));
    buckets.chain(windows).chain(intervals).collect()
}

#[derive(Debug)]
struct Case<'a> {
    algorithm: &'a AnyAlgorithm,
    word: u64,
    now: Tick,
    n: u64,
}

impl Case<'_> {
    fn limit(&self) -> u64 {
        self.algorithm.quota().burst_size()
    }

    /// A word that a verb made.
    #[track_caller]
    fn made(&self, next: u64, wrote: bool) {
        assert_ne!(next, u64::MAX, "{self:?}");
        assert!(wrote || next == self.word, "{self:?}: wrote {next}");
        assert!(
            self.algorithm.available(next, self.now) <= self.limit(),
            "{self:?}"
        );
    }

    fn acquire(&self) {
        let (algorithm, word, now, n) = (self.algorithm, self.word, self.now, self.n);
        let available = algorithm.available(word, now);
        match algorithm.step(word, now, n) {
            Ok((next, granted)) => {
                assert_eq!(granted.n(), n, "{self:?}");
                assert!(n <= available, "{self:?}: {granted:?}");
                assert!(granted.at() >= now, "{self:?}: {granted:?}");
                assert_eq!(granted.remaining(), available - n, "{self:?}");
                assert_eq!(algorithm.available(next, now), available - n, "{self:?}");
                assert_eq!(algorithm.due(word, now, n), Some(now), "{self:?}");
                // An admission never lowers the word.
                assert!(
                    if n == 0 { next == word } else { next > word },
                    "{self:?}: {next}"
                );
                self.made(next, true);
                let (same, back) = algorithm.undo(next, now, &granted);
                assert_eq!(back, n, "{self:?}: undone at once");
                assert_eq!(algorithm.available(same, now), available, "{self:?}");
            }
            Err(denied) => {
                assert!(n == 0 || n > available, "{self:?}: {denied}");
                assert_eq!(denied.requested(), n, "{self:?}");
                assert_eq!(denied == Denied::never(n, self.limit()), n > self.limit());
                self.denied(denied);
            }
        }
    }

    /// It passes when the denial says, and not a nanosecond before.
    fn denied(&self, denied: Denied) {
        let (algorithm, word, n) = (self.algorithm, self.word, self.n);
        let due = denied
            .retry_after()
            .map(|wait| self.now.saturating_add(wait));
        assert_eq!(algorithm.due(word, self.now, n), due, "{self:?}: {denied}");
        let Some(due) = due else {
            assert!(
                algorithm.step(word, Tick::MAX, n).is_err(),
                "{self:?}: {denied}"
            );
            return;
        };
        assert!(due > self.now, "{self:?}: {denied}");
        assert!(algorithm.step(word, due, n).is_ok(), "{self:?}: {denied}");
        let before = due.saturating_sub(Duration::from_nanos(1));
        assert!(
            algorithm.step(word, before, n).is_err(),
            "{self:?}: {denied}"
        );
    }

    fn take_up_to(&self) {
        let available = self.algorithm.available(self.word, self.now);
        let (next, granted) = self.algorithm.take_up_to(self.word, self.now, self.n);
        assert_eq!(granted.n(), self.n.min(available), "{self:?}");
        assert_eq!(granted.remaining(), available - granted.n(), "{self:?}");
        self.made(next, granted.n() > 0);
        assert!(next >= self.word, "{self:?}: {next}");
    }

    fn charge(&self) {
        let (next, charged) = self.algorithm.charge(self.word, self.now, self.n);
        assert!(
            charged.n() <= self.n && charged.at() >= self.now,
            "{self:?}"
        );
        self.made(next, charged.n() > 0);
        assert!(next >= self.word, "{self:?}: {next}");
        let free = self.algorithm.step(next, self.now, 0).is_ok();
        assert_eq!(free, charged.debt() == 0, "{self:?}: {charged:?}");
        assert_eq!(
            free,
            charged.clear_after().is_zero(),
            "{self:?}: {charged:?}"
        );
    }

    fn give_back(&self, mark: u64) {
        let (algorithm, word, now, n) = (self.algorithm, self.word, self.now, self.n);
        let before = algorithm.available(word, now);
        let check = |(next, back): (u64, u64)| {
            assert!(back <= n, "{self:?}: {back} back");
            self.made(next, back > 0);
            let after = algorithm.available(next, now);
            assert!(
                before <= after && after - before <= back,
                "{self:?}: {back} back"
            );
        };
        check(algorithm.refund(word, now, n));
        check(algorithm.undo(word, now, &Granted::new(n, now).with_mark(mark)));
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
        assert!(
            !algorithm.is_idle(word, now) || algorithm.is_idle(word, later),
            "{self:?}"
        );
    }

    /// Who is behind gets no more, and leaves no more to others.
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
        if !algorithm.is_idle(word, self.now) {
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
            let step = |word| algorithm.step(word, now, n).map(said);
            assert_eq!(step(word), step(0), "{self:?} at {now:?}");
            let part = |word| said(algorithm.take_up_to(word, now, n));
            assert_eq!(part(word), part(0), "{self:?} at {now:?}");
            let charge = |from| {
                let (next, charged) = algorithm.charge(from, now, n);
                (next.max(word), charged)
            };
            assert_eq!(charge(word), charge(0), "{self:?} at {now:?}");
            assert_eq!(
                algorithm.due(word, now, n),
                algorithm.due(0, now, n),
                "{self:?}"
            );
            assert_eq!(algorithm.refund(word, now, n).1, 0, "{self:?} at {now:?}");
            assert_eq!(
                algorithm.available(word, now),
                self.limit(),
                "{self:?} at {now:?}"
            );
            assert!(algorithm.level(word, now).is_zero(), "{self:?} at {now:?}");
        }
    }

    /// On another clock there is no more, and a full bucket stays one.
    fn moved(&self, to: Tick) {
        let moved = self.algorithm.rebase(self.word, self.now, to);
        assert_ne!(moved, u64::MAX, "{self:?}");
        let (had, has) = (
            self.algorithm.available(self.word, self.now),
            self.algorithm.available(moved, to),
        );
        assert!(has <= had, "{self:?}: {had}, but {has} at {to:?}");
        if self.algorithm.is_idle(self.word, self.now) && to != self.now {
            assert_eq!(moved, 0, "{self:?}");
        }
    }

    fn check(&self, other: u64) {
        self.acquire();
        self.take_up_to();
        self.charge();
        self.give_back(other);
        let then = Tick::from_nanos(other);
        self.left_alone(then);
        self.behind(then);
        self.idle(then);
        self.moved(then);
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
        _ => random.upto(u64::MAX),
    }
}

/// A word that this algorithm comes to at about that tick, or one beside it, or any.
fn any_word(random: &mut Random, algorithm: &AnyAlgorithm, now: u64) -> u64 {
    let period = algorithm.quota().period().as_nanos() as u64;
    let then = now
        .saturating_add(random.upto(period))
        .saturating_sub(random.upto(period));
    let n = any_number(random, algorithm);
    let word = match random.below(8) {
        0 => 0,
        1 => random.next(),
        2 => any_number(random, algorithm),
        3 => algorithm.charge(0, Tick::from_nanos(then), n).0,
        4 => algorithm.take_up_to(0, Tick::from_nanos(then), n).0,
        _ => {
            let (word, granted) = algorithm.take_up_to(0, Tick::from_nanos(then), n);
            let now = then.saturating_add(random.upto(period));
            let (word, _) = algorithm.take_up_to(word, Tick::from_nanos(now), 1 + random.upto(n));
            match random.below(3) {
                0 => algorithm.undo(word, Tick::from_nanos(now), &granted).0,
                1 => {
                    algorithm
                        .refund(word, Tick::from_nanos(now), random.upto(n))
                        .0
                }
                _ => word,
            }
        }
    };
    let word = word.saturating_add(random.below(3) * random.below(2));
    // The one that a limiter keeps for itself is never given to an algorithm.
    word.min(u64::MAX - 1)
}

#[test]
fn any_word_is_answered_at_any_tick() {
    let mut random = Random(0x0070_11a7_e301);
    let turns = if cfg!(debug_assertions) { 200 } else { 4000 };
    let (mut cases, mut idle) = (0, 0);
    for algorithm in all() {
        for _ in 0..turns {
            let now = any_number(&mut random, &algorithm);
            let word = any_word(&mut random, &algorithm, now);
            let case = Case {
                algorithm: &algorithm,
                word,
                now: Tick::from_nanos(now),
                n: any_number(&mut random, &algorithm),
            };
            case.check(any_number(&mut random, &algorithm));
            cases += 1;
            idle += u64::from(algorithm.is_idle(word, case.now));
        }
    }
    println!("{cases} words, {idle} of them idle");
    assert!(cases > 40_000 && idle > cases / 50 && idle < cases / 2);
}

#[test]
fn the_word_zero_is_fresh_at_every_tick_and_fresh_is_full() {
    let mut random = Random(0x0070_11a7_e302);
    for algorithm in all() {
        let limit = algorithm.quota().burst_size();
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
        }
    }
}
