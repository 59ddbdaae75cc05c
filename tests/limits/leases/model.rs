//! Leases by their documented rule: a limiter with a smaller burst, and what each lease holds.

use tollgate::algorithm::{Debt, Lend, Split};

use crate::support::*;
use tollgate_audit::{Audit, Bounded, Log};

/// The state of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) size: u64,
    pub(super) held: u64,
    /// What it had after its last draw, and when.
    pub(super) drawn: (u64, Tick),
}

impl Held {
    /// Returns how much it draws: enough for 16 384 nanoseconds, by how long the last draw lasted.
    /// That is at most twice as much, at least 64 permits, and at most its size.
    fn draw(&self, now: Tick) -> u64 {
        let (last, at) = self.drawn;
        let lasted = now.saturating_since(at).as_nanos() / 16_384;
        let draw = match lasted {
            0 => u128::from(last) * 2,
            more => u128::from(last) / more,
        };
        u64::try_from(draw.max(64).min(self.size.into())).expect("a size")
    }
}

pub(super) struct Model {
    /// The limiter that leaves room for the total.
    pub(super) limiter: Limiter<AnyAlgorithm, NoClock>,
    pub(super) total: u64,
    pub(super) leases: Vec<Held>,
    /// An algorithm with the full burst, and a word that counts used permits.
    whole: (AnyAlgorithm, u64),
    /// Whether that word must have room for the used permits. It need not if a period begins with a
    /// permit: the limiter's period begins when a lease draws, but the word's period begins when
    /// the first permit is used.
    is_one_word: bool,
    /// The permits used, with their ticks.
    used: Vec<(Tick, u64)>,
}

impl Model {
    pub(super) fn new(algorithm: AnyAlgorithm, total: u64, start: Tick) -> Self {
        let less = algorithm.lending(total).expect("this total can be lent");
        let limiter = Limiter::unstarted(less, NoClock);
        limiter.at(start).start();
        Self {
            limiter,
            total,
            leases: Vec::new(),
            whole: (algorithm, algorithm.initial_word(start)),
            is_one_word: !algorithm.begins_with_a_permit(),
            used: Vec::new(),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limiter.algorithm().available(0, Tick::ZERO)
    }

    pub(super) fn lent(&self) -> u64 {
        self.leases.iter().map(|lease| lease.size).sum()
    }

    /// Takes a lease from what is left of the total.
    pub(super) fn lease(&mut self, asked: u64) -> u64 {
        let size = asked.min(self.total - self.lent());
        self.leases.push(Held {
            size,
            held: 0,
            drawn: (0, Tick::ZERO),
        });
        size
    }

    /// Takes permits that the lease holds. If these are too few, the lease draws first, and the
    /// limiter must have what is still missing.
    pub(super) fn acquire(&mut self, of: usize, n: u64, now: Tick) -> Result<(), Denied> {
        let (view, limit) = (self.limiter.at(now), self.limit());
        let lease = &mut self.leases[of];
        let is_drawn = lease.held < n;
        if is_drawn {
            let draw = lease.draw(now).max(n).min(lease.size);
            lease.held += view.take_up_to(draw.saturating_sub(lease.held)).n();
        }
        if n <= lease.held && lease.held > 0 {
            if is_drawn {
                lease.drawn = (lease.held, now);
            }
            lease.held -= n;
            return Ok(());
        }
        let missing = n - lease.held;
        if missing > limit {
            return Err(Denied::never(n, limit + lease.held));
        }
        if n == 0 || view.time_until(missing) == Some(Duration::ZERO) {
            let _ = view.try_acquire_n(missing)?;
            lease.held = 0;
            if n > 0 {
                lease.drawn = (n, now);
            }
            return Ok(());
        }
        Err(match view.time_until(missing) {
            Some(wait) => Denied::later(n, wait),
            None => Denied::stuck(n),
        })
    }

    pub(super) fn give_back(&mut self, of: usize, now: Tick) -> u64 {
        self.leases[of].drawn = (0, Tick::ZERO);
        let held = std::mem::take(&mut self.leases[of].held);
        self.limiter.at(now).refund(held)
    }

    /// Records used permits. Returns whether a limiter with the full burst has room for them.
    pub(super) fn uses(&mut self, n: u64, now: Tick) -> bool {
        self.used.push((now, n));
        let (algorithm, word) = &mut self.whole;
        let (next, charged) = algorithm.charge(*word, now, n);
        *word = next;
        !self.is_one_word || charged.n() == n && charged.debt() == 0
    }

    /// Returns whether all used permits are within the bound of the full burst.
    pub(super) fn keeps_the_bound(&self) -> bool {
        let mut log = Log::new();
        for (now, n) in &self.used {
            log.grant(*now, *n);
        }
        let history: Audit = [log].into_iter().collect();
        history.check(&self.whole.0.bound()).is_ok()
    }
}
