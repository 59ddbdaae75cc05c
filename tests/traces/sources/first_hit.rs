//! The shared part of windows that the first hit opens: a [`FixedWindow`] that counts refused hits,
//! as the recorded limiters do.
//!
//! A refused hit is a charge in ours. A charge may be larger than what the word can record. The
//! rest is kept here, so that their count can be computed from ours exactly.

use tollgate_replay::prelude::*;

pub(super) struct FirstHit {
    limiter: ReplayedLimiter<FixedWindow>,
    pub(super) limit: u64,
    pub(super) window: Duration,
    quantum: Duration,
    /// Charges in this window that the word could not record.
    uncounted: u64,
}

/// The limiter's state at one tick.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) count: u64,
    /// Charges above the word's maximum.
    pub(super) uncounted: u64,
    pub(super) remaining: u64,
    /// The rest of the open window in nanoseconds, or 0 if none is open.
    pub(super) left_ns: u64,
    /// Whether so little of the window is left that theirs has ended.
    pub(super) is_ending: bool,
}

impl FirstHit {
    pub(super) fn new(limit: u64, window: Duration) -> Result<Self, Malformed> {
        let made = FixedWindow::new(Quota::per(limit, window));
        let limiter = ReplayedLimiter::new(made.and_then(FixedWindow::opened_by_first_hit))?;
        let quantum = limiter.limiter().algorithm().quantum();
        Ok(Self {
            limiter,
            limit,
            window,
            quantum: quantum.ok_or_else(|| Malformed("no quantum".to_owned()))?,
            uncounted: 0,
        })
    }

    /// Reads the state at this time, before any request.
    pub(super) fn look(&mut self, t_ns: u64) -> Seen {
        self.limiter.set_time(t_ns);
        if self.seen().left_ns == 0 {
            self.uncounted = 0;
        }
        self.seen()
    }

    pub(super) fn seen(&self) -> Seen {
        let limiter = self.limiter.limiter();
        let level = limiter.level();
        assert_eq!(level.floor(), level.ceil(), "whole hits");
        let left_ns = self.limiter.reset_ns();
        Seen {
            count: level.floor(),
            uncounted: self.uncounted,
            remaining: limiter.available(),
            left_ns,
            is_ending: (1..=2 * in_nanos(self.quantum)).contains(&left_ns),
        }
    }

    /// Counts `n`, granted or not.
    pub(super) fn hit(&mut self, n: u64, t_ns: u64) -> bool {
        let ok = self.limiter.ask(n, t_ns).ok();
        if !ok {
            self.charge(n);
        }
        ok
    }

    /// Returns whether a hit would be granted now.
    pub(super) fn test(&self, n: u64) -> bool {
        self.limiter.limiter().time_until(n) == Some(Duration::ZERO)
    }

    /// Counts `n` at the time of the last call.
    pub(super) fn charge(&mut self, n: u64) {
        let charged = self.limiter.limiter().charge(n);
        self.uncounted += n - charged.n();
    }

    /// Refunds `n` at the time of the last call, first from the charges that could not be recorded.
    pub(super) fn refund(&mut self, n: u64) {
        let uncounted = n.min(self.uncounted);
        self.uncounted -= uncounted;
        self.limiter.limiter().refund(n - uncounted);
    }

    pub(super) fn reset(&mut self) {
        self.limiter.limiter().reset();
        self.uncounted = 0;
    }

    /// Sets the state to a window opened at `t_ns` with `count` hits in it.
    pub(super) fn hold(&mut self, count: u64, t_ns: u64) {
        self.reset();
        let then = self.limiter.limiter().at(Tick::from_nanos(t_ns));
        let charged = then.charge(count);
        self.uncounted = count - charged.n();
    }
}
