//! One step at a time, beside the model: every answer, every number that can be read, and who is woken when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use tollgate::{Concurrency, Inside, MAX_CONCURRENCY};

use super::model::{Model, Name, State};
use super::random::Random;
use super::{Waiter, gate};

const STEPS: u64 = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};

/// The gate and the model, and all who are there.
struct Pair {
    gate: Arc<Concurrency>,
    model: Model,
    guards: Vec<Inside<Arc<Concurrency>>>,
    /// Who was not polled to an end, with what the model says that it will be told.
    waiters: BTreeMap<Name, (Waiter, u64, State)>,
    random: Random,
    names: Name,
    most: u64,
    /// How often each of the steps found something to do.
    seen: [u64; 8],
}

impl Pair {
    fn new(seed: u64, most: u64) -> Self {
        Self {
            gate: gate(most),
            model: Model::new(most),
            guards: Vec::new(),
            waiters: BTreeMap::new(),
            random: Random(seed),
            names: 0,
            most,
            seen: [0; 8],
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
        let step = self.random.below(13);
        let n = self.n();
        match step {
            0..=3 => self.try_enter(n, step == 3),
            4 | 5 => self.begin(n),
            6 => self.poll(),
            7 => self.give_up(),
            8..=11 => self.leave(),
            _ => self.set_limit(n),
        }
        self.tell();
        self.compare();
    }

    fn try_enter(&mut self, n: u64, ahead: bool) {
        let expected = self.model.try_enter(n, ahead);
        let entered = match ahead {
            // There is no owned guard of that: it goes at once, and the model with it.
            true => self.gate.try_enter_ahead(n).map(drop),
            false => self
                .gate
                .try_enter_owned(n)
                .map(|guard| self.guards.push(guard)),
        };
        assert_eq!(entered, expected);
        if ahead && entered.is_ok() {
            self.model.leave(n);
        }
        self.seen[usize::from(ahead)] += u64::from(entered.is_ok());
    }

    fn begin(&mut self, n: u64) {
        let name = self.names;
        self.names += 1;
        let state = self.model.begin(name, n);
        let waiter = Waiter::new(&self.gate, n);
        self.waiters.insert(name, (waiter, n, state));
        self.poll_one(name);
        self.seen[2] += u64::from(state == State::Waits);
    }

    /// Any of those who wait, or do not know yet that they don't.
    fn any(&mut self) -> Option<Name> {
        let place = self.random.below(self.waiters.len() as u64) as usize;
        self.waiters.keys().nth(place).copied()
    }

    fn poll(&mut self) {
        if let Some(name) = self.any() {
            self.seen[3] += 1;
            self.poll_one(name);
        }
    }

    fn poll_one(&mut self, name: Name) {
        let (waiter, n, state) = self.waiters.get_mut(&name).expect("a waiter");
        match (waiter.poll(), *state) {
            (Poll::Pending, State::Waits) => return,
            (Poll::Ready(Ok(guard)), State::Inside) => {
                assert_eq!(guard.n(), *n);
                self.guards.push(guard);
            }
            (Poll::Ready(Err(denied)), State::Refused) => {
                assert!(denied.is_permanent() && denied.requested() == *n);
            }
            (polled, state) => panic!("{state:?}, and says {polled:?}"),
        }
        self.waiters.remove(&name);
    }

    /// Also of one who was let in and does not know it.
    fn give_up(&mut self) {
        let Some(name) = self.any() else { return };
        let (waiter, n, state) = self.waiters.remove(&name).expect("a waiter");
        drop(waiter);
        match state {
            State::Waits => self.model.give_up(name),
            State::Inside => self.model.leave(n),
            State::Refused => {}
        }
        self.seen[4] += u64::from(state == State::Waits);
        self.seen[5] += u64::from(state == State::Inside);
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
        assert_eq!(self.gate.set_limit(limit), Ok(self.model.set_limit(limit)));
        self.seen[6] += 1;
    }

    /// Whom the model let in or refused was woken, once, and nobody else.
    fn tell(&mut self) {
        for (name, state) in self.model.told.drain(..) {
            let (_, _, known) = self.waiters.get_mut(&name).expect("a waiter");
            assert_eq!(*known, State::Waits);
            *known = state;
            self.seen[7] += u64::from(state == State::Refused);
        }
        for (waiter, _, state) in self.waiters.values() {
            assert_eq!(waiter.woken(), u64::from(*state != State::Waits), "woken");
        }
    }

    fn compare(&mut self) {
        let (gate, model) = (&self.gate, &self.model);
        assert_eq!(gate.inside(), model.inside);
        assert_eq!(gate.limit(), model.limit);
        assert_eq!(gate.waiting(), model.line.len());
        assert_eq!(gate.peak(), model.peak);
        if self.random.one_in(50) {
            assert_eq!(gate.reset_peak(), model.peak);
            self.model.peak = self.model.inside;
        }
    }
}

#[test]
fn every_step_is_the_models() {
    for (seed, most) in [(1, 2), (2, 7), (3, 40), (4, MAX_CONCURRENCY)] {
        let mut pair = Pair::new(seed, most);
        for _ in 0..STEPS / 4 {
            pair.step();
            // With less room than they want the line would only grow.
            if pair.waiters.len() > 30 {
                pair.give_up();
                pair.tell();
            }
        }
        assert!(pair.seen.iter().all(|seen| *seen > 5), "{:?}", pair.seen);
        pair.waiters.clear();
        pair.guards.clear();
        assert_eq!((pair.gate.inside(), pair.gate.waiting()), (0, 0));
    }
}
