//! What a concurrency limit is, in the fewest words: a number inside, and a line.

use std::collections::VecDeque;

use tollgate::Denied;

/// Who waits, by a name of the test's.
pub(crate) type Name = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Waits,
    Inside,
    Refused,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) limit: u64,
    pub(crate) inside: u64,
    pub(crate) peak: u64,
    pub(crate) line: VecDeque<(Name, u64)>,
    /// Who was let in or refused by the last operation.
    pub(crate) told: Vec<(Name, State)>,
}

impl Model {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
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

    pub(crate) fn try_enter(&mut self, n: u64, ahead: bool) -> Result<(), Denied> {
        if n > self.limit {
            return Err(Denied::never(n, self.limit));
        }
        if !self.fits(n) || !(ahead || self.line.is_empty()) {
            return Err(Denied::busy(n));
        }
        self.enter(n);
        Ok(())
    }

    pub(crate) fn begin(&mut self, name: Name, n: u64) -> State {
        match self.try_enter(n, false) {
            Ok(()) => State::Inside,
            Err(denied) if denied.is_permanent() => State::Refused,
            Err(_) => {
                self.line.push_back((name, n));
                State::Waits
            }
        }
    }

    pub(crate) fn give_up(&mut self, name: Name) {
        self.line.retain(|(other, _)| *other != name);
        self.let_in();
    }

    pub(crate) fn leave(&mut self, n: u64) {
        self.inside -= n;
        self.let_in();
    }

    pub(crate) fn set_limit(&mut self, limit: u64) -> u64 {
        let was = std::mem::replace(&mut self.limit, limit);
        let (stay, go) = self.line.iter().partition(|(_, n)| *n <= limit);
        self.line = stay;
        let go: VecDeque<(Name, u64)> = go;
        self.told
            .extend(go.iter().map(|(name, _)| (*name, State::Refused)));
        self.let_in();
        was
    }

    fn let_in(&mut self) {
        while let Some(&(name, n)) = self.line.front() {
            if !self.fits(n) {
                return;
            }
            self.line.pop_front();
            self.enter(n);
            self.told.push((name, State::Inside));
        }
    }
}
