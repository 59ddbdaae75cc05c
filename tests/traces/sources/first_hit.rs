//! What the windows that are opened by their first hit have in common: a [`FixedWindow`] that
//! counts what it refuses, as they do.
//!
//! Theirs count refused hits too: that is a charge of ours. What a charge says that it could not
//! record is kept here, so that their count can be told from ours exactly.

use std::time::Duration;

use tollgate::{FixedWindow, Quota, Tick};
use tollgate_replay::{Malformed, ReplayedLimiter, in_nanos};

pub(super) struct FirstHit {
    limiter: ReplayedLimiter<FixedWindow>,
    pub(super) limit: u64,
    pub(super) window: Duration,
    quantum: Duration,
    /// What was charged in this window and could not be recorded.
    uncounted: u64,
}

/// What the limiter says at some tick.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) count: u64,
    /// What was charged above what the word counts to.
    pub(super) uncounted: u64,
    pub(super) remaining: u64,
    /// How long the window is open yet; 0 if there is none.
    pub(super) left_ns: u64,
    /// Whether so little is left that for them it is over.
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

    /// What there is at this time, before anything is asked.
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

    /// Counts `n`, whether they are granted or not.
    pub(super) fn hit(&mut self, n: u64, t_ns: u64) -> bool {
        let ok = self.limiter.ask(n, t_ns).ok();
        if !ok {
            self.charge(n);
        }
        ok
    }

    /// Whether a hit would be granted now.
    pub(super) fn test(&self, n: u64) -> bool {
        self.limiter.limiter().time_until(n) == Some(Duration::ZERO)
    }

    /// Counts `n` at the time of the last call.
    pub(super) fn charge(&mut self, n: u64) {
        let charged = self.limiter.limiter().charge(n);
        self.uncounted += n - charged.n();
    }

    /// Gives `n` back at the time of the last call: what could not be counted first.
    pub(super) fn refund(&mut self, n: u64) {
        let uncounted = n.min(self.uncounted);
        self.uncounted -= uncounted;
        self.limiter.limiter().refund(n - uncounted);
    }

    pub(super) fn reset(&mut self) {
        self.limiter.limiter().reset();
        self.uncounted = 0;
    }

    /// Makes it a window that somebody opened at `t_ns`, with `count` hits in it.
    pub(super) fn hold(&mut self, count: u64, t_ns: u64) {
        self.reset();
        let charged = self
            .limiter
            .limiter()
            .at(Tick::from_nanos(t_ns))
            .charge(count);
        self.uncounted = count - charged.n();
    }
}
