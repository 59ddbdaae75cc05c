//! Leases by their documented rule: a limiter with so much less, and what each lease holds.

use std::time::Duration;

use tollgate::{Algorithm, AnyAlgorithm, Debt, Denied, Lend, Limiter, NoClock, Tick};

/// What a lease is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) size: u64,
    pub(super) held: u64,
}

pub(super) struct Model {
    /// The limiter that leaves room for the total.
    pub(super) limiter: Limiter<AnyAlgorithm, NoClock>,
    pub(super) total: u64,
    pub(super) leases: Vec<Held>,
    /// The same with all of it, which counts what is used.
    whole: (AnyAlgorithm, u64),
}

impl Model {
    pub(super) fn new(algorithm: AnyAlgorithm, total: u64, start: Tick) -> Self {
        let less = algorithm.lending(total).expect("so much can be lent");
        let limiter = Limiter::unstarted(less, NoClock);
        limiter.at(start).start();
        Self {
            limiter,
            total,
            leases: Vec::new(),
            whole: (algorithm, algorithm.initial_word(start)),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limiter.algorithm().available(0, Tick::ZERO)
    }

    pub(super) fn lent(&self) -> u64 {
        self.leases.iter().map(|lease| lease.size).sum()
    }

    /// Gets what is left of the total.
    pub(super) fn lease(&mut self, asked: u64) -> u64 {
        let size = asked.min(self.total - self.lent());
        self.leases.push(Held { size, held: 0 });
        size
    }

    /// What it holds; else it is filled first, and the limiter must have what is missing then. Of a
    /// window that is ahead of the clock nothing is had before it begins.
    pub(super) fn acquire(&mut self, of: usize, n: u64, now: Tick) -> Result<(), Denied> {
        let (view, limit) = (self.limiter.at(now), self.limit());
        let lease = &mut self.leases[of];
        let begins = view.take_up_to(0).at();
        if begins == now && lease.held < n {
            lease.held += view.take_up_to(lease.size - lease.held).n();
        }
        if n <= lease.held && lease.held > 0 {
            lease.held -= n;
            return Ok(());
        }
        let missing = n - lease.held;
        if missing > limit {
            return Err(Denied::never(n, limit + lease.held));
        }
        if n == 0 || begins == now && view.time_until(missing) == Some(Duration::ZERO) {
            let _ = view.try_acquire_n(missing)?;
            lease.held = 0;
            return Ok(());
        }
        Err(match view.time_until(missing) {
            Some(wait) => Denied::later(n, wait.max(begins.saturating_since(now))),
            None => Denied::stuck(n),
        })
    }

    pub(super) fn give_back(&mut self, of: usize, now: Tick) -> u64 {
        let held = std::mem::take(&mut self.leases[of].held);
        self.limiter.at(now).refund(held)
    }

    /// Notes what was used. Whether that is within the bound of the whole.
    pub(super) fn uses(&mut self, n: u64, now: Tick) -> bool {
        let (algorithm, word) = &mut self.whole;
        let (next, charged) = algorithm.charge(*word, now, n);
        *word = next;
        charged.n() == n && charged.debt() == 0
    }
}
