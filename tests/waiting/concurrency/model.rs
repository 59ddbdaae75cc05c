//! The simplest model of a concurrency limit: the weight inside, and a queue.

use std::collections::VecDeque;

use crate::support::*;

/// A waiter's name in the test.
pub(super) type Name = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The waiter was never polled, and has no place in the queue.
    New,
    Waits,
    ConcurrencyGuard,
    Refused(Denied),
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) limit: u64,
    /// The most permits that can wait.
    max_waiting: u64,
    pub(super) inside: u64,
    pub(super) peak: u64,
    pub(super) line: VecDeque<(Name, u64)>,
    /// The waiters that the last operation admitted or refused.
    pub(super) told: Vec<(Name, State)>,
}

impl Model {
    pub(super) fn new(limit: u64, max_waiting: u64) -> Self {
        Self {
            limit,
            max_waiting,
            inside: 0,
            peak: 0,
            line: VecDeque::new(),
            told: Vec::new(),
        }
    }

    fn fits(&self, n: u64) -> bool {
        n == 0 || self.inside + n <= self.limit
    }

    fn enter(&mut self, n: u64) {
        self.inside += n;
        self.peak = self.peak.max(self.inside);
    }

    pub(super) fn try_enter(&mut self, n: u64, ahead: bool) -> Result<(), Denied> {
        if n > self.limit {
            return Err(Denied::never(n, self.limit));
        }
        if !self.fits(n) || !(ahead || self.line.is_empty()) {
            return Err(Denied::busy(n));
        }
        self.enter(n);
        Ok(())
    }

    pub(super) fn begin(&mut self, name: Name, n: u64) -> State {
        match self.try_enter(n, false) {
            Ok(()) => State::ConcurrencyGuard,
            Err(denied) if denied.is_permanent() => State::Refused(denied),
            Err(_) if self.waiting_permits() + n > self.max_waiting => State::Refused(
                Denied::line_full(n, self.waiting_permits(), self.max_waiting),
            ),
            Err(_) => {
                self.line.push_back((name, n));
                State::Waits
            }
        }
    }

    pub(super) fn waiting_permits(&self) -> u64 {
        self.line.iter().map(|(_, n)| n).sum()
    }

    pub(super) fn give_up(&mut self, name: Name) {
        self.line.retain(|(other, _)| *other != name);
        self.let_in();
    }

    pub(super) fn leave(&mut self, n: u64) {
        self.inside -= n;
        self.let_in();
    }

    pub(super) fn set_limit(&mut self, limit: u64) -> u64 {
        let was = std::mem::replace(&mut self.limit, limit);
        let told = &mut self.told;
        self.line.retain(|(name, n)| {
            if *n > limit {
                told.push((*name, State::Refused(Denied::never(*n, limit))));
            }
            *n <= limit
        });
        self.let_in();
        was
    }

    fn let_in(&mut self) {
        while let Some(&(name, n)) = self.line.front().filter(|(_, n)| self.fits(*n)) {
            self.line.pop_front();
            self.enter(n);
            self.told.push((name, State::ConcurrencyGuard));
        }
    }
}
