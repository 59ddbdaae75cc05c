//! Our limiter as the adapters use it: the ordinary verbs on a manual clock.

use std::time::Duration;

use tollgate::algorithm::{Algorithm, Debt, Forecast};
use tollgate::outcome::GrantInfo;
use tollgate::{Denied, Granted, Limiter, ManualClock, Tick};

use crate::format::Malformed;

/// A limiter whose clock is set to the recorded time before each call.
#[derive(Debug)]
pub struct ReplayedLimiter<A> {
    limiter: Limiter<A, ManualClock>,
    capacity: u64,
}

/// The answer to a call, and the limiter's state right after it.
#[derive(Debug)]
pub struct Answer {
    /// The decision.
    pub decision: Result<Granted, Denied>,
    /// The permits that remain.
    pub remaining: u64,
    /// The nanoseconds until the limiter is full.
    pub reset_ns: u64,
}

impl Answer {
    /// Returns whether the call was granted.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.decision.is_ok()
    }

    /// Returns the wait of a call that will be granted later. `None` if it was granted or never
    /// will be.
    #[must_use]
    pub fn retry_ns(&self) -> Option<u64> {
        let denied = self.decision.as_ref().err()?;
        denied.retry_after().map(in_nanos)
    }
}

impl<A: Algorithm + Forecast> ReplayedLimiter<A> {
    /// Creates a fresh limiter with this algorithm. [`Malformed`] if the algorithm could not be
    /// created.
    pub fn new<E: std::fmt::Display>(made: Result<A, E>) -> Result<Self, Malformed> {
        let algorithm = made.map_err(|error| Malformed(format!("can't be built: {error}")))?;
        let limiter = Limiter::with_clock(algorithm, ManualClock::new());
        Ok(Self {
            capacity: limiter.available(),
            limiter,
        })
    }

    /// Returns the limiter, for verbs that not every algorithm has. Set its clock first.
    pub fn limiter(&self) -> &Limiter<A, ManualClock> {
        &self.limiter
    }

    /// Returns the most permits that are available at once.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Asks for `n` permits at `t_ns`.
    pub fn ask(&self, n: u64, t_ns: u64) -> Answer {
        let limiter = &self.limiter;
        self.set_time(t_ns);
        let foretold = limiter.time_until(n);
        let decision = limiter.try_acquire_n(n);
        check_forecast(n, foretold, &decision);
        let remaining = limiter.available();
        if let Ok(granted) = &decision {
            assert_eq!((granted.n(), granted.at()), (n, limiter.now()));
            let actual = granted.remaining();
            assert_eq!(actual, remaining, "remaining() and available()");
            self.check_reset(granted.info());
        }
        Answer {
            decision,
            remaining,
            reset_ns: self.reset_ns(),
        }
    }

    /// Checks that the limiter is idle at the tick that the grant gives, and not before.
    fn check_reset(&self, granted: GrantInfo) {
        let reset_at = granted.at().saturating_add(granted.reset_after());
        if reset_at == Tick::MAX {
            return;
        }
        let is_idle = |tick| self.limiter.at(tick).is_idle();
        assert!(is_idle(reset_at), "not idle after reset_after()");
        let before = reset_at.saturating_sub(Duration::from_nanos(1));
        let is_new = granted.reset_after().is_zero() || !is_idle(before);
        assert!(is_new, "idle before reset_after()");
    }

    /// Moves the clock without asking for anything.
    pub fn set_time(&self, t_ns: u64) {
        self.limiter.clock().set(Tick::from_nanos(t_ns));
    }

    /// Returns the nanoseconds until the limiter is full, from the time of the last call.
    pub fn reset_ns(&self) -> u64 {
        let full = self.limiter.time_until(self.capacity);
        full.map_or(u64::MAX, in_nanos)
    }

    /// Returns the permits at the time of the last call, with fractions, at `rate` permits a
    /// second. Negative in debt.
    pub fn level(&self, rate: f64) -> f64 {
        let whole = self.limiter.available();
        match self.limiter.time_until(whole + 1) {
            Some(next) => (whole + 1) as f64 - next.as_secs_f64() * rate,
            None => whole as f64,
        }
    }
}

impl<A: Algorithm + Forecast + Debt> ReplayedLimiter<A> {
    /// Sets the level to `level` permits at `t_ns`, to the nanosecond. Takes the missing permits
    /// whole, at an earlier tick, so that the clock refills the fraction until `t_ns`.
    /// [`Malformed`] if the limiter can't hold that level, or not yet at that time.
    pub fn hold(&self, level: f64, rate: f64, t_ns: u64) -> Result<(), Malformed> {
        let capacity = self.capacity as f64;
        if !(0.0..=capacity).contains(&level) {
            return Err(Malformed(format!(
                "a level of {level} does not fit a capacity of {capacity}"
            )));
        }
        let missing = capacity - level;
        let whole = missing.ceil();
        let since = ((whole - missing) / rate * 1e9).round() as u64;
        let early = || {
            Malformed(format!(
                "a level of {level} would need a time before the limiter's start"
            ))
        };
        let then = Tick::from_nanos(t_ns.checked_sub(since).ok_or_else(early)?);
        self.limiter.reset();
        let _ = self.limiter.at(then).charge(whole as u64);
        Ok(())
    }
}

impl<A: Algorithm + tollgate::algorithm::GiveBack> ReplayedLimiter<A> {
    /// Undoes a grant.
    pub fn undo(&self, granted: Granted) {
        self.limiter.undo(granted);
    }
}

/// Checks that `time_until` before a call for `n` agrees with the decision.
pub fn check_forecast(n: u64, foretold: Option<Duration>, decision: &Result<Granted, Denied>) {
    let wait = match decision {
        Ok(_) => Some(Duration::ZERO),
        Err(denied) => denied.retry_after(),
    };
    assert_eq!(foretold, wait, "time_until({n}) and try_acquire_n({n})");
}

/// Returns a duration in nanoseconds, saturated to the range.
#[must_use]
pub fn in_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
