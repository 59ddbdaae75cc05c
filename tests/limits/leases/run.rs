//! Runs leases and their model side by side.

use std::cmp::Ordering;

use tollgate::leases::Lease;

use super::model::{Held, Model};
use crate::support::algorithms::any_edge;
use crate::support::*;

pub(super) struct Run<'l> {
    pub(super) limiter: &'l Leases<AnyAlgorithm, ManualClock>,
    pub(super) model: Model,
    pub(super) leases: Vec<Lease<&'l Leases<AnyAlgorithm, ManualClock>>>,
    pub(super) period: u64,
    pub(super) random: Random,
    pub(super) now: Tick,
    /// Whether used permits are compared with the bound of the whole.
    pub(super) is_bounded: bool,
    pub(super) seen: Seen,
    pub(super) label: String,
}

impl Run<'_> {
    pub(super) fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            self.now = self.moment();
            self.limiter.limiter().clock().set(self.now);
            for _ in 0..1 + self.random.below(4) {
                self.any_verb();
                self.look();
            }
        }
        self.leases.clear();
        self.right("lent in the end", self.limiter.lent(), 0);
        if self.is_bounded {
            let keeps = self.model.keeps_the_bound();
            self.right("whether the bound holds", keeps, true);
        }
    }

    /// Returns the same tick, the next tick with a permit or one beside it, or a later one. An
    /// earlier one where that makes no difference.
    fn moment(&mut self) -> Tick {
        let (still, random, period) = (self.now.as_nanos(), &mut self.random, self.period);
        let later = |by: u64| still.saturating_add(by);
        let target = match random.below(12) {
            0..=3 => still,
            4 => later(1),
            5..=7 => {
                let n = 1 + random.upto(self.model.limit() - 1);
                let wait = self.limiter.limiter().time_until(n).unwrap_or_default();
                let due = self.now.saturating_add(wait).as_nanos();
                due.saturating_add(random.below(2))
            }
            8 => later(random.upto(period.saturating_mul(2))),
            9 if !self.is_bounded => still.saturating_sub(random.upto(period)),
            10 if !self.is_bounded && random.one_in(100) => {
                return tick(any_edge(random));
            }
            _ => later(random.upto(period / 4)),
        };
        tick(match target > FIFTY_YEARS && !self.is_bounded {
            true => random.upto(FIFTY_YEARS),
            false => target,
        })
    }

    #[track_caller]
    fn right<T: PartialEq + Debug>(&self, what: &str, got: T, right: T) {
        assert!(
            got == right,
            "{}: {what} is {got:?}, but {right:?} is right, at {:?} after {} operations: {:?}",
            self.label,
            self.now,
            self.seen.count("operation"),
            self.model.leases,
        );
    }

    /// Compares each lease's own report, and the rest of the total.
    fn look(&self) {
        self.right("lent", self.limiter.lent(), self.model.lent());
        let there = self.limiter.limiter().available();
        let right = self.model.limiter.at(self.now).available();
        self.right("available", there, right);
        let each = self.leases.iter().map(|lease| (lease.size(), lease.held()));
        let right = self.model.leases.iter();
        let right = right.map(|lease| (lease.size, lease.held));
        self.right("each lease", each.collect::<Vec<_>>(), right.collect());
    }

    fn any_verb(&mut self) {
        let of = match self.leases.len() as u64 {
            0 => return self.lease(),
            leases => self.random.below(leases) as usize,
        };
        match self.random.below(24) {
            0..=14 => self.acquire(of),
            15 | 16 => self.directly(),
            17 | 18 => self.lease(),
            19 | 20 => self.give_back(of),
            _ => self.end(of),
        }
    }

    fn lease(&mut self) {
        let asked = match self.random.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => self.model.total,
            _ => 1 + self.random.upto(self.model.total - 1),
        };
        let size = self.model.lease(asked);
        self.leases.push(self.limiter.lease(asked));
        self.seen.done("lease");
        self.seen.note(match size {
            0 if asked > 0 => "nothing left to lend",
            size if size < asked => "a smaller lease",
            _ => "a lease as asked",
        });
    }

    fn any_count(&mut self, of: usize) -> u64 {
        let (lease, there) = (self.model.leases[of], self.limiter.limiter().available());
        let most = self.model.limit().saturating_add(lease.size);
        match self.random.below(16) {
            0 => 0,
            1 => lease.held,
            2 => lease.held + 1,
            3 => lease.held + there,
            4 => lease.held + there + 1,
            5 => most,
            6 => most + 1,
            7 if self.random.one_in(4) => any_edge(&mut self.random),
            8 | 9 => 1 + self.random.upto(most - 1),
            _ => 1,
        }
    }

    fn acquire(&mut self, of: usize) {
        let n = self.any_count(of);
        let Held { held, drawn, .. } = self.model.leases[of];
        let right = self.model.acquire(of, n, self.now);
        let got = match (n, self.random.below(2)) {
            (1, 0) => self.leases[of].try_acquire(),
            _ => self.leases[of].try_acquire_n(n),
        };
        self.seen.done("acquire");
        let Err(denied) = got else {
            self.right("the answer", got, right);
            self.seen.note(match n {
                0 => "granted 0",
                n if n <= held => "held",
                _ if self.model.leases[of].held > 0 => "drawn",
                _ => "taken from the limiter",
            });
            let draws = (drawn.0, self.model.leases[of].drawn.0);
            match draws.1.cmp(&draws.0) {
                Ordering::Greater if draws.0 >= 64 => self.seen.note("a larger draw"),
                Ordering::Less if draws.1 >= 64 => self.seen.note("a smaller draw"),
                _ => {}
            }
            return self.used(n);
        };
        self.right("the answer", got, right);
        self.seen.note(match denied {
            Denied::Never { .. } => "never",
            Denied::Later { .. } if n > self.model.limit() => "later, with held permits",
            Denied::Later { .. } if n == 0 => "in debt",
            Denied::Later { .. } => "later",
            _ => "stuck",
        });
        if let Some(retry_after) = denied.retry_after() {
            self.at_its_time(of, n, retry_after);
        }
    }

    /// Checks that the request is denied a nanosecond before, and granted then.
    fn at_its_time(&mut self, of: usize, n: u64, retry_after: Duration) {
        let due = self.now.saturating_add(retry_after);
        let nanosecond = Duration::from_nanos(1);
        for (tick, is_there) in [(due.saturating_sub(nanosecond), false), (due, true)] {
            self.limiter.limiter().clock().set(tick);
            self.now = tick;
            let right = self.model.acquire(of, n, tick);
            let got = self.leases[of].try_acquire_n(n);
            self.right("the answer then", got, right);
            self.right("whether it is granted then", got.is_ok(), is_there);
            self.seen.done("acquire at its time");
        }
        self.used(n);
    }

    fn used(&mut self, n: u64) {
        if self.is_bounded && n > 0 {
            let fits = self.model.uses(n, self.now);
            self.right("whether the whole allows it", fits, true);
            self.seen.note("used");
        }
    }

    /// Takes permits without a lease.
    fn directly(&mut self) {
        let n = 1 + self.random.upto(self.model.limit());
        let right = self.model.limiter.at(self.now).try_acquire_n(n);
        let got = self.limiter.try_acquire_n(n);
        self.seen.done("without a lease");
        let is_granted = got.is_ok();
        self.right("the answer", got, right);
        if is_granted {
            self.used(n);
        }
        if !self.is_bounded && self.random.one_in(4) {
            let n = self.random.upto(self.model.limit());
            let right = self.model.limiter.at(self.now).charge(n);
            let got = self.limiter.limiter().charge(n);
            self.right("the charge", got, right);
        }
    }

    fn give_back(&mut self, of: usize) {
        let right = self.model.give_back(of, self.now);
        let back = self.leases[of].give_back();
        self.seen.done("give_back");
        self.right("given back", back, right);
        self.seen.note(match back {
            0 => "nothing came back",
            _ => "came back",
        });
    }

    fn end(&mut self, of: usize) {
        self.model.give_back(of, self.now);
        self.model.leases.swap_remove(of);
        drop(self.leases.swap_remove(of));
        self.seen.done("drop");
    }
}
