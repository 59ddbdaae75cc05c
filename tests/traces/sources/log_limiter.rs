//! Our [`SlidingLog`] as the adapters use it.
//!
//! A log takes nothing back. To remove a grant that another rate refused, or that the recorded
//! limiter decided differently, the adapters rebuild the log from the remaining grants.

use std::cell::RefCell;

use tollgate_replay::prelude::*;
use tollgate_replay::{Answer, check_forecast};

/// The ticks and sizes of grants.
pub(super) type Entries = Vec<(u64, u64)>;

pub(super) struct LogLimiter {
    log: RefCell<SlidingLog<ManualClock>>,
    entries: RefCell<Entries>,
}

impl LogLimiter {
    pub(super) fn new(limit: u64, window: Duration) -> Result<Self, Malformed> {
        Ok(Self {
            log: RefCell::new(made(Quota::per(limit, window))?),
            entries: RefCell::default(),
        })
    }

    pub(super) fn limit(&self) -> u64 {
        self.log.borrow().quota().permits()
    }

    pub(super) fn window_ns(&self) -> u64 {
        in_nanos(self.log.borrow().quota().period())
    }

    /// Asks for `n` permits at `t_ns`, and checks that the verbs agree with each other.
    pub(super) fn ask(&self, n: u64, t_ns: u64) -> Answer {
        self.set_time(t_ns);
        let log = self.log.borrow();
        let (before, foretold) = (log.available(), log.time_until(n));
        let decision = log.try_acquire_n(n);
        check_forecast(n, foretold, &decision);
        let remaining = log.available();
        let full = log.time_until(self.limit());
        if let Ok(granted) = &decision {
            assert_eq!((granted.n(), granted.at()), (n, log.now()));
            assert_eq!(remaining, before - n, "available() after a grant");
            if n > 0 {
                assert_eq!(full, Some(granted.reset_after()));
                self.entries.borrow_mut().push((t_ns, n));
            }
        } else {
            assert_eq!(remaining, before, "available() after a denial");
        }
        Answer {
            decision,
            remaining,
            reset_ns: full.map_or(u64::MAX, in_nanos),
        }
    }

    pub(super) fn set_time(&self, t_ns: u64) {
        self.log.borrow().clock().set(Tick::from_nanos(t_ns));
    }

    /// Returns whether `n` permits are available at the time of the last call.
    pub(super) fn has(&self, n: u64) -> bool {
        self.log.borrow().time_until(n) == Some(Duration::ZERO)
    }

    /// Returns the permits that are available at the time of the last call.
    pub(super) fn available(&self) -> u64 {
        self.log.borrow().available()
    }

    /// Returns the permits in the window at the time of the last call.
    pub(super) fn counted(&self) -> u64 {
        self.limit() - self.available()
    }

    /// Returns the time until the next permit expires. `None` if none is counted.
    pub(super) fn expires_in(&self) -> Option<u64> {
        let log = self.log.borrow();
        log.time_until(log.available() + 1).map(in_nanos)
    }

    /// Removes the last grant.
    pub(super) fn take_out(&self, granted: Granted) -> Result<(), Malformed> {
        let mut entries = self.entries.take();
        if granted.n() > 0 {
            assert_eq!(entries.pop(), Some((granted.at().as_nanos(), granted.n())));
        }
        self.hold(entries)
    }

    /// Rebuilds the log with these grants in order. [`Malformed`] if that would exceed the limit.
    pub(super) fn hold(&self, entries: Entries) -> Result<(), Malformed> {
        let (now, quota) = (self.log.borrow().now(), self.log.borrow().quota());
        let log = made(quota)?;
        for (t, n) in &entries {
            let _ = log
                .at(Tick::from_nanos(*t))
                .try_acquire_n(*n)
                .map_err(|denied| Malformed(format!("{n} at {t}: {denied}")))?;
        }
        log.clock().set(now);
        self.log.replace(log);
        self.entries.replace(entries);
        Ok(())
    }

    /// Rebuilds the log with these grants unless it already holds them.
    pub(super) fn follow(&self, theirs: &Entries) -> Result<bool, Malformed> {
        let differs = *self.entries.borrow() != *theirs;
        if differs {
            self.hold(theirs.clone())?;
        }
        Ok(differs)
    }
}

fn made(quota: Quota) -> Result<SlidingLog<ManualClock>, Malformed> {
    SlidingLog::with_clock(quota, ManualClock::new())
        .map_err(|error| Malformed(format!("can't be built: {error}")))
}
