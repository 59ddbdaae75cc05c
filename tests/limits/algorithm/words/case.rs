//! One word at one tick, and the required answer of every verb.

use tollgate::algorithm::{Debt, Forecast, Gauge, GiveBack, Rebase};
use tollgate::store::{AtomicWord, UNSTARTED, View, WordCell, WordStore};

use crate::support::*;

#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) algorithm: &'a AnyAlgorithm,
    pub(super) word: u64,
    pub(super) now: Tick,
    pub(super) n: u64,
}

impl Case<'_> {
    #[track_caller]
    fn check(&self, holds: bool, said: impl Debug) {
        assert!(holds, "{self:?}: {said:?}");
    }

    fn limit(&self) -> u64 {
        self.algorithm.quota().burst_size()
    }

    /// Returns a verb's answer, and the word that it writes.
    #[track_caller]
    fn verb<T>(&self, verb: impl FnOnce(&View<WordStore<'_, AnyAlgorithm>>) -> T) -> (T, u64) {
        let cell = WordCell::new(self.word);
        let answer = verb(&WordStore::new(self.algorithm, &cell).at(self.now));
        let next = cell.load();
        let there = self.algorithm.available(next, self.now);
        self.check(next != UNSTARTED && there <= self.limit(), (next, there));
        (answer, next)
    }

    /// Returns the answer of a verb that writes nothing.
    #[track_caller]
    fn look<T>(&self, verb: impl FnOnce(&View<WordStore<'_, AnyAlgorithm>>) -> T) -> T {
        let (answer, next) = self.verb(verb);
        self.check(next == self.word, next);
        answer
    }

    fn is_bucket(&self) -> bool {
        let algorithm = self.algorithm;
        matches!(
            algorithm,
            AnyAlgorithm::TokenBucket(_) | AnyAlgorithm::Gcra(_)
        )
    }

    fn available(&self) -> u64 {
        self.look(|at| at.available())
    }

    /// Checks a word after a grant: an admission never lowers it, and a grant of zero leaves it
    /// unchanged.
    #[track_caller]
    fn took(&self, n: u64, next: u64) {
        let rises = next > self.word;
        self.check(rises == (n > 0) && next >= self.word, (n, next));
    }

    /// Checks the remaining permits that a grant reports.
    #[track_caller]
    fn remains(&self, granted: &Granted, next: u64) {
        let left = self.available() - granted.n();
        self.check(granted.remaining() == left, granted);
        let there = self.algorithm.available(next, self.now);
        self.check(
            there == granted.remaining() && granted.at() >= self.now,
            granted,
        );
    }

    pub(super) fn acquire(&self) {
        let (available, wait) = (self.available(), self.look(|at| at.time_until(self.n)));
        let (answer, next) = self.verb(|at| at.try_acquire_n(self.n));
        match answer {
            Ok(granted) => {
                self.check(granted.n() == self.n && self.n <= available, &granted);
                self.check(wait == Some(Duration::ZERO), wait);
                self.took(self.n, next);
                self.remains(&granted, next);
                // An undo at the same tick returns all permits.
                let (same, back) = self.algorithm.undo(next, self.now, &granted);
                let was_full = self.look(|at| at.is_idle());
                let is_same = self.algorithm.available(same, self.now) == available;
                self.check(back == self.n && is_same, back);
                let is_same = same == self.word || was_full;
                self.check(is_same || !self.is_bucket(), same);
            }
            Err(denied) => {
                self.check(next == self.word, "a denial wrote");
                self.check(self.n == 0 || self.n > available, denied);
                self.check(
                    denied.requested() == self.n && denied.retry_after() == wait,
                    denied,
                );
                let is_never = denied == Denied::never(self.n, self.limit());
                self.check(is_never == (self.n > self.limit()), denied);
                self.denied(denied);
            }
        }
    }

    /// Checks that the request passes exactly when the denial says, and not a nanosecond before.
    fn denied(&self, denied: Denied) {
        assert!(!denied.to_string().is_empty());
        assert_eq!(denied.is_permanent(), denied.retry_after().is_none());
        let passes = |tick| self.algorithm.step(self.word, tick, self.n).is_ok();
        let due = denied
            .retry_after()
            .map(|wait| self.now.saturating_add(wait));
        self.check(
            self.algorithm.due(self.word, self.now, self.n) == due,
            denied,
        );
        match due {
            Some(due) => {
                let before = due.saturating_sub(Duration::from_nanos(1));
                self.check(due > self.now && passes(due) && !passes(before), denied);
            }
            None => {
                let fifty_years = tick(FIFTY_YEARS);
                self.check(!passes(Tick::MAX) && !passes(fifty_years), denied);
            }
        }
    }

    pub(super) fn take_up_to(&self) {
        let (granted, next) = self.verb(|at| at.take_up_to(self.n));
        self.check(granted.n() == self.n.min(self.available()), &granted);
        self.took(granted.n(), next);
        self.remains(&granted, next);
    }

    pub(super) fn charge(&self) {
        let (charged, next) = self.verb(|at| at.charge(self.n));
        self.check(charged.n() <= self.n && charged.at() >= self.now, charged);
        self.took(charged.n(), next);
        let free = self.algorithm.step(next, self.now, 0).is_ok();
        self.check(free == (charged.debt() == 0), charged);
        self.check(free == charged.clear_after().is_zero(), charged);
    }

    pub(super) fn give_back(&self, mark: u64) {
        let back = |verb: &dyn Fn(&View<WordStore<'_, AnyAlgorithm>>) -> u64| {
            let (back, next) = self.verb(verb);
            self.check(back > 0 || next == self.word, next);
            let falls = next < self.word;
            let is_right = falls == (back > 0) && next <= self.word;
            self.check(is_right || !self.is_bucket(), next);
            let (before, after) = (self.available(), self.algorithm.available(next, self.now));
            self.check(before <= after && after - before <= back, back);
            back
        };
        // Returns what was asked for, up to what a request for everything would return.
        let most = back(&|at| at.refund(u64::MAX));
        self.check(back(&|at| at.refund(self.n)) == self.n.min(most), most);
        let forged = |n| Granted::new(n, self.now).with_mark(mark);
        let most = back(&|at| at.undo(forged(u64::MAX)));
        self.check(
            back(&|at| at.undo(forged(self.n))) == self.n.min(most),
            most,
        );
    }

    pub(super) fn reset(&self) {
        let (all, _) = self.verb(|at| {
            at.reset();
            (at.available(), at.is_idle())
        });
        self.check(all == (self.limit(), true), all);
    }

    /// Checks that time alone only adds permits, up to the end of time: no count reappears.
    pub(super) fn left_alone(&self, later: Tick) {
        let (algorithm, word, now) = (self.algorithm, self.word, self.now.min(later));
        let later = later.max(self.now);
        let had = algorithm.available(word, now);
        let has = algorithm.available(word, later);
        self.check(had <= has, (had, has, later));
        let (level, then) = (algorithm.level(word, now), algorithm.level(word, later));
        self.check(level.ceil() >= then.ceil(), (level, then, later));
        let (idle, then) = (algorithm.is_idle(word, now), algorithm.is_idle(word, later));
        self.check(!idle || then, later);
        let full = algorithm.idle_at(word, self.now);
        let is_full = algorithm.available(word, full) == self.limit();
        self.check(full >= self.now && (is_full || full == Tick::MAX), full);
    }

    /// Checks that a caller that is behind gets no more, and leaves no more to others.
    pub(super) fn behind(&self, older: Tick) {
        let (algorithm, word, n) = (self.algorithm, self.word, self.n);
        let (now, older) = (self.now.max(older), self.now.min(older));
        let Ok((next, _)) = algorithm.step(word, older, n) else {
            return;
        };
        self.check(algorithm.step(word, now, n).is_ok(), older);
        // At `now` the late caller's own window may be over. All windows that counted still count.
        let left = algorithm.available(next, now);
        self.check(left <= algorithm.available(word, now), left);
    }

    /// Checks that an idle word is indistinguishable from the word 0, then and later.
    pub(super) fn idle(&self, later: Tick) {
        let (algorithm, word, n) = (self.algorithm, self.word, self.n);
        if !self.look(|at| at.is_idle()) {
            return;
        }
        for now in [self.now, later.max(self.now)] {
            let said = |(next, granted): (u64, Granted)| {
                let waits = (granted.reset_after(), granted.delay());
                let permits = (granted.n(), granted.remaining());
                (next.max(word), permits, granted.at(), waits)
            };
            let answers = |from| {
                let (next, charged) = algorithm.charge(from, now, n);
                let is_zero = algorithm.level(from, now).is_zero();
                (
                    algorithm.step(from, now, n).map(said),
                    said(algorithm.take_up_to(from, now, n)),
                    (next.max(word), charged),
                    algorithm.due(from, now, n),
                    (algorithm.available(from, now), is_zero),
                    algorithm.refund(from, now, n).1,
                )
            };
            assert_eq!(answers(word), answers(0), "{self:?} at {now:?}");
        }
    }

    /// Checks that another clock or limit adds no permits, and that a full bucket stays full.
    pub(super) fn moved(&self, to: Tick, other: &AnyAlgorithm) {
        let (algorithm, word, now) = (self.algorithm, self.word, self.now);
        let (had, is_idle) = (self.available(), self.look(|at| at.is_idle()));
        let moved = algorithm.rebase(word, now, to);
        let has = algorithm.available(moved, to);
        self.check(moved != UNSTARTED && has <= had, (had, has, to));
        self.check(!is_idle || to == now || moved == 0, moved);
        let is_line = |algorithm: &AnyAlgorithm| matches!(algorithm, AnyAlgorithm::LeakyBucket(queue) if queue.free_permits().is_some());
        // Waiters of a queue keep their places, and a longer queue has room for more.
        if !(is_line(algorithm) && is_line(other)) {
            let carried = algorithm.carry_over(word, now, other);
            let has = other.available(carried, now);
            self.check(carried != UNSTARTED && has <= had, (had, has, other));
        }
    }
}
