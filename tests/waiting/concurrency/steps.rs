//! Compares the limiter with the model after each step: every answer, every number, and the waiters
//! that are woken.

use std::collections::BTreeMap;

use tollgate::concurrency::ConcurrencyGuard;

use super::model::{Model, Name, State};
use super::{Tested, Waiter, assert_empty, bounded};
use crate::support::*;

const STEPS: u64 = debug_or_release(10_000, 250_000);

/// The limiter and the model, with all guards and waiters.
struct Pair {
    limiter: Tested,
    model: Model,
    guards: Vec<ConcurrencyGuard<Tested>>,
    /// The waiters without an answer, with their weights and their states in the model.
    waiters: BTreeMap<Name, (Waiter, u64, State)>,
    random: Random,
    names: Name,
    most: u64,
    /// The number of times that each kind of step had an effect.
    seen: [u64; 9],
}

impl Pair {
    fn new(seed: u64, most: u64, max_waiting: u64) -> Self {
        Self {
            limiter: bounded(most, max_waiting),
            model: Model::new(most, max_waiting),
            guards: Vec::new(),
            waiters: BTreeMap::new(),
            random: Random(seed),
            names: 0,
            most,
            seen: [0; 9],
        }
    }

    fn n(&mut self) -> u64 {
        match self.random.below(20) {
            0 => 0,
            1 => self.random.next(),
            2 => self.model.limit,
            3 => self.model.limit + 1,
            4 => self.model.limit.saturating_sub(self.model.inside),
            _ => 1 + self.random.below(self.most / 2),
        }
    }

    fn step(&mut self) {
        let n = self.n();
        match self.random.below(14) {
            0..=3 => self.try_enter(n),
            4 | 5 => self.begin(n),
            6 | 7 => self.poll(),
            8 => self.give_up(),
            9..=12 => self.leave(),
            _ => self.set_limit(n),
        }
        self.tell();
        self.compare();
    }

    fn try_enter(&mut self, n: u64) {
        let verb = self.random.below(8);
        let expected = self.model.try_enter(n, verb == 0);
        // All guards except the owned one are dropped at once, in the model too.
        let entered = match verb {
            0 => self.limiter.try_enter_ahead(n).map(drop),
            1 => self.limiter.try_enter_n(n).map(drop),
            2 => self
                .limiter
                .enter_n(n)
                .wait_timeout(Duration::ZERO)
                .map(drop),
            _ => self
                .limiter
                .try_enter_owned(n)
                .map(|guard| self.guards.push(guard)),
        };
        assert_eq!(entered, expected);
        if verb < 3 && entered.is_ok() {
            self.model.leave(n);
        }
        self.seen[usize::from(verb == 0)] += u64::from(entered.is_ok());
    }

    /// Creates a waiter. It takes its place when it is first polled, which may be later.
    fn begin(&mut self, n: u64) {
        let waiter = Waiter::new(&self.limiter, n);
        self.waiters.insert(self.names, (waiter, n, State::New));
        self.names += 1;
    }

    /// Returns any waiter, including those that do not know their answer yet.
    fn any(&mut self) -> Option<Name> {
        let place = self.random.below(self.waiters.len() as u64) as usize;
        self.waiters.keys().nth(place).copied()
    }

    fn poll(&mut self) {
        let Some(name) = self.any() else { return };
        let (waiter, n, state) = self.waiters.get_mut(&name).expect("a waiter");
        if *state == State::New {
            *state = self.model.begin(name, *n);
            self.seen[2] += u64::from(*state == State::Waits);
            let is_full = matches!(state, State::Refused(Denied::LineFull { .. }));
            self.seen[8] += u64::from(is_full);
        } else if *state == State::Waits {
            // Another task now polls the waiter.
            waiter.wake_counter = Arc::default();
            self.seen[3] += 1;
        }
        match (waiter.poll(), *state) {
            (Poll::Pending, State::Waits) => return,
            (Poll::Ready(Ok(guard)), State::ConcurrencyGuard) => {
                assert_eq!(guard.n(), *n);
                self.guards.push(guard);
            }
            (Poll::Ready(Err(denied)), State::Refused(expected)) => assert_eq!(denied, expected),
            (polled, state) => panic!("{state:?}, and says {polled:?}"),
        }
        if self.random.one_in(2) {
            self.waiters.remove(&name);
        } else {
            // It is polled again.
            *state = State::New;
            waiter.wake_counter = Arc::default();
        }
    }

    /// Drops a waiter, possibly one that was admitted and does not know it.
    fn give_up(&mut self) {
        let Some(name) = self.any() else { return };
        let (waiter, n, state) = self.waiters.remove(&name).expect("a waiter");
        drop(waiter);
        match state {
            State::Waits => self.model.give_up(name),
            State::ConcurrencyGuard => self.model.leave(n),
            State::New | State::Refused(_) => {}
        }
        self.seen[4] += u64::from(state == State::Waits);
        self.seen[5] += u64::from(state == State::ConcurrencyGuard);
    }

    fn leave(&mut self) {
        if self.guards.is_empty() {
            return;
        }
        let place = self.random.below(self.guards.len() as u64) as usize;
        let guard = self.guards.swap_remove(place);
        self.model.leave(guard.n());
        drop(guard);
    }

    fn set_limit(&mut self, n: u64) {
        let limit = 1 + n % self.most;
        let actual = self.limiter.set_limit(limit);
        assert_eq!(actual, Ok(self.model.set_limit(limit)));
        self.seen[6] += 1;
    }

    /// Checks that the waiters that the model admitted or refused were woken, once, and no others.
    fn tell(&mut self) {
        for (name, state) in self.model.told.drain(..) {
            let (_, _, known) = self.waiters.get_mut(&name).expect("a waiter");
            assert_eq!(*known, State::Waits);
            *known = state;
            self.seen[7] += u64::from(state != State::ConcurrencyGuard);
        }
        for (waiter, _, state) in self.waiters.values() {
            let is_told = matches!(state, State::ConcurrencyGuard | State::Refused(_));
            assert_eq!(waiter.wake_counter.wakes(), u64::from(is_told), "{state:?}");
        }
    }

    fn compare(&mut self) {
        let (limiter, model) = (&self.limiter, &self.model);
        let expected = (model.inside, model.limit);
        assert_eq!((limiter.inside(), limiter.limit()), expected);
        let actual = (limiter.waiting(), limiter.peak());
        assert_eq!(actual, (model.line.len(), model.peak));
        assert_eq!(limiter.waiting_permits(), model.waiting_permits());
        if self.random.one_in(50) {
            assert_eq!(limiter.reset_peak(), model.peak);
            self.model.peak = self.model.inside;
        }
    }
}

#[test]
fn every_step_matches_the_model() {
    const MOST: u64 = Concurrency::MAX_LIMIT;
    for (seed, most, max_waiting) in [
        (1, 2, u64::MAX),
        (2, 7, u64::MAX),
        (3, 40, u64::MAX),
        (4, MOST, u64::MAX),
        (5, 7, 7),
        (6, 40, 50),
        (7, MOST, MOST),
    ] {
        let mut pair = Pair::new(seed, most, max_waiting);
        for _ in 0..STEPS {
            pair.step();
            // With less capacity than they ask for, the queue would only grow.
            while pair.waiters.len() > 30 {
                pair.give_up();
                pair.tell();
            }
        }
        let is_bounded = max_waiting < u64::MAX;
        let (refused, others) = pair.seen.split_last().expect("nine kinds");
        assert!(others.iter().all(|seen| *seen > 5), "{:?}", pair.seen);
        assert_eq!(*refused > 5, is_bounded, "{:?}", pair.seen);
        pair.waiters.clear();
        pair.guards.clear();
        assert_empty(&pair.limiter);
    }
}
