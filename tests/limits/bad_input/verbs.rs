//! Every verb with any number, any tick and any word.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::cell::{Cell, Place, UNSTARTED};
use tollgate::{
    Algorithm, At, Debt, Denied, Forecast, Gcra, GiveBack, Granted, Quota, Rebase, Requota, Tick,
    TokenBucket,
};

use crate::bad_input::{EDGES, FIFTY_YEARS_NS, YEAR_NS};

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// Buckets of every shape, among them those that fill the word to its last unit.
fn buckets() -> Vec<TokenBucket> {
    let largest = |quota: Quota| match TokenBucket::new(quota.burst(u64::MAX)) {
        Err(tollgate::ConfigError::BurstTooLarge { max, .. }) => quota.burst(max),
        other => panic!("{other:?}"),
    };
    let quotas = [
        Quota::per_second(1),
        Quota::per_second(10).burst(1),
        Quota::per_second(13).burst(1),
        Quota::per_second(97).initial(3),
        Quota::per_second(9_999_999_999).burst(100),
        per_ns(10, 1).burst(1),
        per_ns(10, 1).burst(1 << 40),
        per_ns(11, 1 << 40).burst(5),
        largest(per_ns(1, 1)),
        largest(Quota::per_second(1)),
        largest(per_ns(11, 1_000_003)),
        largest(Quota::per_second(9_999_999_999)),
        largest(per_ns(13, 13 * YEAR_NS - 1)).initial(0),
        largest(per_ns(1, YEAR_NS)).initial(0),
    ];
    quotas
        .map(|quota| TokenBucket::new(quota).expect("a bucket"))
        .to_vec()
}

/// What every bucket can do.
trait Every:
    Algorithm + GiveBack + Debt + Forecast + Rebase + Requota + Copy + std::fmt::Debug
{
}
impl Every for TokenBucket {}
impl Every for Gcra {}

/// All verbs, each on a word of its own that begins as `word`.
fn check<A: Every>(algorithm: &A, word: u64, now: u64, n: u64, other: &A) {
    let case = Case {
        algorithm,
        word,
        now: Tick::from_nanos(now),
        n,
    };
    case.acquire();
    case.take_up_to();
    case.charge();
    case.peek();
    case.give_back();
    case.reset();
    case.bare(other);
}

#[derive(Debug)]
struct Case<'a, A> {
    algorithm: &'a A,
    word: u64,
    now: Tick,
    n: u64,
}

impl<A: Every> Case<'_, A> {
    /// Runs a verb and returns the word before it (started), its answer, and the word after it.
    fn verb<T>(&self, verb: impl FnOnce(&At<'_, A>) -> T) -> (u64, T, u64) {
        let cell = Cell::new(self.word);
        let at = At::new(self.algorithm, &cell, self.now);
        at.start();
        let before = cell.load();
        assert!(before != UNSTARTED && (self.word == UNSTARTED || before == self.word));
        let answer = verb(&at);
        let after = cell.load();
        assert!(after != UNSTARTED, "{self:?}");
        (before, answer, after)
    }

    fn burst(&self) -> u64 {
        self.algorithm.quota().burst_size()
    }

    fn acquire(&self) {
        let (before, answer, after) = self.verb(|at| at.try_acquire_n(self.n));
        let available = self.verb(|at| at.available()).1;
        match answer {
            Ok(granted) => {
                assert!(self.n <= available && available <= self.burst(), "{self:?}");
                assert!(
                    granted.n() == self.n && granted.at() == self.now,
                    "{self:?}"
                );
                assert!(granted.remaining() <= available - self.n, "{self:?}");
                // A grant raises the word, at most by all the permits there are.
                assert!(
                    if self.n == 0 {
                        after == before
                    } else {
                        after > before
                    },
                    "{self:?}"
                );
                assert_eq!(
                    self.algorithm.available(after, self.now),
                    granted.remaining()
                );
                let _ = (granted.reset_after(), format!("{granted:?}"));
            }
            Err(denied) => {
                assert!(after == before, "{self:?}: a denial wrote");
                assert_eq!(denied.requested(), self.n, "{self:?}");
                self.denied(before, denied);
            }
        }
    }

    fn denied(&self, word: u64, denied: Denied) {
        assert!(!denied.to_string().is_empty());
        assert_eq!(denied.is_permanent(), denied.retry_after().is_none());
        let never = Denied::never(self.n, self.burst());
        assert_eq!(
            denied == never,
            self.n > self.burst(),
            "{self:?}: {denied:?}"
        );
        if let Some(wait) = denied.retry_after() {
            let due = self.now.checked_add(wait).expect("a tick");
            assert!(!wait.is_zero(), "{self:?}: {denied:?}");
            assert!(
                self.algorithm.step(word, due, self.n).is_ok(),
                "{self:?}: {denied:?}"
            );
        }
        if denied == Denied::stuck(self.n) {
            // It never comes, nor within the fifty years that are promised.
            assert!(
                self.algorithm.step(word, Tick::MAX, self.n).is_err(),
                "{self:?}"
            );
            let promised = Tick::from_nanos(FIFTY_YEARS_NS);
            assert!(
                self.algorithm.step(word, promised, self.n).is_err(),
                "{self:?}"
            );
        }
    }

    fn take_up_to(&self) {
        let available = self.verb(|at| at.available()).1;
        let (before, granted, after) = self.verb(|at| at.take_up_to(self.n));
        assert_eq!(granted.n(), self.n.min(available), "{self:?}");
        assert!(
            if granted.n() == 0 {
                after == before
            } else {
                after > before
            },
            "{self:?}"
        );
        assert_eq!(
            granted.remaining(),
            self.algorithm.available(after, self.now)
        );
    }

    fn charge(&self) {
        let (before, charged, after) = self.verb(|at| at.charge(self.n));
        assert!(
            charged.n() <= self.n && charged.at() == self.now,
            "{self:?}"
        );
        assert!(
            if charged.n() == 0 {
                after == before
            } else {
                after > before
            },
            "{self:?}"
        );
        let free = self.algorithm.step(after, self.now, 0).is_ok();
        assert_eq!(free, charged.debt() == 0, "{self:?}: {charged:?}");
        // A burst of debt always fits, as long as the limiter is promised to work.
        let empty = self.algorithm.charge(0, self.now, self.burst()).0;
        let debt = self.algorithm.charge(empty, self.now, self.burst()).1;
        assert_eq!(debt.n(), self.burst(), "{self:?}");
        assert!(debt.debt().abs_diff(self.burst()) <= 1, "{self:?}");
    }

    fn peek(&self) {
        let (before, wait, after) = self.verb(|at| at.time_until(self.n));
        assert_eq!(before, after);
        let granted = self.verb(|at| at.try_acquire_n(self.n)).1;
        match granted {
            Ok(_) => assert_eq!(wait, Some(Duration::ZERO), "{self:?}"),
            Err(denied) => assert_eq!(wait, denied.retry_after(), "{self:?}"),
        }
        let (before, idle, after) = self.verb(|at| at.is_idle());
        assert_eq!(before, after);
        let all = self.verb(|at| at.available()).1 == self.burst();
        assert!(!idle || all, "{self:?}: idle and not full");
    }

    fn give_back(&self) {
        let back = |verb: &dyn Fn(&At<'_, A>) -> u64| {
            let (before, back, after) = self.verb(verb);
            assert!(after <= before, "{self:?}: {back}");
            assert_eq!(back == 0, after == before, "{self:?}: {back}");
            assert!(self.algorithm.available(after, self.now) <= self.burst());
            back
        };
        // As much as is asked for, of what a request for everything would bring.
        let most = back(&|at| at.refund(u64::MAX));
        assert_eq!(back(&|at| at.refund(self.n)), self.n.min(most), "{self:?}");
        let all = Granted::new(u64::MAX, self.now).with_mark(self.word);
        let forged = Granted::new(self.n, self.now).with_mark(self.word);
        let most = back(&|at| at.undo(all));
        assert_eq!(back(&|at| at.undo(forged)), self.n.min(most), "{self:?}");
        // What a limiter just granted comes back whole.
        let (before, back, after) = self.verb(|at| {
            let granted = at.try_acquire_n(self.n).ok();
            granted.map(|granted| (granted, at.undo(granted)))
        });
        if let Some((granted, back)) = back {
            let idle = self.algorithm.is_idle(before, self.now);
            assert_eq!(back, granted.n(), "{self:?}");
            assert!(after == before || idle, "{self:?}: {before} became {after}");
        }
    }

    fn reset(&self) {
        let (_, left, _) = self.verb(|at| {
            let _ = at.try_acquire_n(self.n);
            at.reset();
            at.available()
        });
        assert_eq!(left, self.burst(), "{self:?}");
    }

    /// The steps themselves, on words that no limiter would give them.
    fn bare(&self, other: &A) {
        let (algorithm, word, now, n) = (self.algorithm, self.word, self.now, self.n);
        let forged = Granted::new(n, now).with_mark(n);
        let _ = (
            algorithm.step(word, now, n),
            algorithm.take_up_to(word, now, n),
        );
        let _ = (
            algorithm.charge(word, now, n),
            algorithm.refund(word, now, n),
        );
        let _ = algorithm.undo(word, now, &forged);
        let due = algorithm.due(word, now, n);
        assert!(due.is_none_or(|due| due >= now), "{self:?}: {due:?}");
        let first = algorithm.initial_word(now);
        assert!(algorithm.available(first, now) <= algorithm.quota().initial_permits());

        let there = Tick::from_nanos(n);
        let (left, moved) = (
            algorithm.available(word, now),
            algorithm.rebase(word, now, there),
        );
        assert!(algorithm.available(moved, there) <= left, "{self:?}");
        let next = algorithm.carry_over(word, now, other);
        let most = left.saturating_add(1).min(other.quota().burst_size());
        let grown = algorithm.is_idle(word, now);
        assert!(
            other.available(next, now) <= most || grown,
            "{self:?} to {other:?}"
        );
    }
}

fn numbers(bucket: &TokenBucket) -> Vec<u64> {
    let burst = bucket.quota().burst_size();
    let mut numbers = EDGES.to_vec();
    numbers.extend([
        burst - 1,
        burst,
        burst + 1,
        burst.saturating_mul(2),
        YEAR_NS,
        1 << 62,
    ]);
    numbers
}

#[test]
fn every_verb_answers_at_every_edge() {
    let buckets = buckets();
    let mut cases = 0;
    for (i, bucket) in buckets.iter().enumerate() {
        let other = &buckets[(i * 5 + 3) % buckets.len()];
        // Words at an edge, and around what this bucket's own clock says there.
        let mut words = numbers(bucket);
        for tick in EDGES.map(Tick::from_nanos) {
            let full = bucket.charge(0, tick, u64::MAX).0;
            let empty = bucket.charge(0, tick, bucket.quota().burst_size()).0;
            words.extend([empty - 1, empty, empty + 1, full]);
        }
        words.sort_unstable();
        words.dedup();
        for &word in &words {
            for now in EDGES {
                for n in numbers(bucket) {
                    check(bucket, word, now, n, other);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 100_000, "{cases}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn every_verb_answers_anywhere(
        (i, j) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        (word, word_bits) in (any::<u64>(), 0..64_u32),
        (now, now_bits) in (any::<u64>(), 0..64_u32),
        (n, n_bits) in (any::<u64>(), 0..64_u32),
    ) {
        let buckets = buckets();
        let (bucket, other) = (i.get(&buckets), j.get(&buckets));
        check(bucket, word >> word_bits, now >> now_bits, n >> n_bits, other);
    }

    #[test]
    fn every_verb_answers_with_any_interval_and_tolerance(
        (interval, tolerance) in (1..=YEAR_NS, any::<u64>()),
        (interval_bits, tolerance_bits) in (0..55_u32, 1..64_u32),
        (word, now, n) in (any::<u64>(), any::<u64>(), any::<u64>()),
        bits in 0..64_u32,
    ) {
        let interval = Duration::from_nanos((interval >> interval_bits).max(1));
        let tolerance = Duration::from_nanos(tolerance >> tolerance_bits);
        if let Ok(gcra) = Gcra::from_interval(interval, tolerance) {
            check(&gcra, word, now, n >> bits, &gcra);
            check(&gcra, word, now >> bits, n, &gcra);
        }
    }
}
