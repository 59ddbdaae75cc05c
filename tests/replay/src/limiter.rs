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

/// What a call was answered, and what the limiter says right after it.
#[derive(Debug)]
pub struct Answer {
    /// The decision.
    pub decision: Result<Granted, Denied>,
    /// The permits that are left.
    pub remaining: u64,
    /// How long until the limiter is full, in nanoseconds.
    pub reset_ns: u64,
}

impl Answer {
    /// Whether it was granted.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.decision.is_ok()
    }

    /// The wait of a call that will be granted later; nothing if it was or never will be.
    #[must_use]
    pub fn retry_ns(&self) -> Option<u64> {
        let denied = self.decision.as_ref().err()?;
        denied.retry_after().map(in_nanos)
    }
}

impl<A: Algorithm + Forecast> ReplayedLimiter<A> {
    /// Fresh, of an algorithm that was made; [`Malformed`] if it could not be made.
    pub fn new<E: std::fmt::Display>(made: Result<A, E>) -> Result<Self, Malformed> {
        let algorithm = made.map_err(|error| Malformed(format!("can't be built: {error}")))?;
        let limiter = Limiter::with_clock(algorithm, ManualClock::new());
        Ok(Self {
            capacity: limiter.available(),
            limiter,
        })
    }

    /// The limiter itself, for the verbs that not every algorithm has. Set its clock first.
    pub fn limiter(&self) -> &Limiter<A, ManualClock> {
        &self.limiter
    }

    /// The most that can be had at once.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Asks for `n` permits at `t_ns`.
    ///
    /// # Panics
    ///
    /// If the verbs contradict each other: `time_until` before the call with its decision, and what
    /// the grant says with what can be had after it.
    pub fn ask(&self, n: u64, t_ns: u64) -> Answer {
        let limiter = &self.limiter;
        self.set_time(t_ns);
        let foretold = limiter.time_until(n);
        let decision = limiter.try_acquire_n(n);
        check_forecast(n, foretold, &decision);
        let remaining = limiter.available();
        if let Ok(granted) = &decision {
            assert_eq!((granted.n(), granted.at()), (n, limiter.now()));
            assert_eq!(
                granted.remaining(),
                remaining,
                "remaining() and available()"
            );
            self.check_reset(granted.info());
        }
        Answer {
            decision,
            remaining,
            reset_ns: self.reset_ns(),
        }
    }

    /// When it is to be as good as new, it is, and not before.
    fn check_reset(&self, granted: GrantInfo) {
        let reset_at = granted.at().saturating_add(granted.reset_after());
        if reset_at == Tick::MAX {
            return;
        }
        let is_idle = |tick| self.limiter.at(tick).is_idle();
        assert!(is_idle(reset_at), "not as good as new after reset_after()");
        let before = reset_at.saturating_sub(Duration::from_nanos(1));
        let is_new = granted.reset_after().is_zero() || !is_idle(before);
        assert!(is_new, "as good as new before reset_after()");
    }

    /// Moves the clock without asking for anything.
    pub fn set_time(&self, t_ns: u64) {
        self.limiter.clock().set(Tick::from_nanos(t_ns));
    }

    /// How long until it is full at the time of the last call, in nanoseconds.
    pub fn reset_ns(&self) -> u64 {
        let full = self.limiter.time_until(self.capacity);
        full.map_or(u64::MAX, in_nanos)
    }

    /// The permits there are at the time of the last call, parts of one too, at `rate` permits a
    /// second. Below zero in debt.
    pub fn level(&self, rate: f64) -> f64 {
        let whole = self.limiter.available();
        match self.limiter.time_until(whole + 1) {
            Some(next) => (whole + 1) as f64 - next.as_secs_f64() * rate,
            None => whole as f64,
        }
    }
}

impl<A: Algorithm + Forecast + Debt> ReplayedLimiter<A> {
    /// Makes it hold `level` permits, parts of one too, at `t_ns`, to the nanosecond: what is
    /// missing is taken in whole permits, so much earlier that the clock has made the part since.
    /// [`Malformed`] if it can't hold so much, or could not yet at that time.
    pub fn hold(&self, level: f64, rate: f64, t_ns: u64) -> Result<(), Malformed> {
        let capacity = self.capacity as f64;
        if !(0.0..=capacity).contains(&level) {
            return Err(Malformed(format!("a level of {level} in {capacity}")));
        }
        let missing = capacity - level;
        let whole = missing.ceil();
        let since = ((whole - missing) / rate * 1e9).round() as u64;
        let early = || Malformed(format!("a level of {level} before the limiter was made"));
        let then = Tick::from_nanos(t_ns.checked_sub(since).ok_or_else(early)?);
        self.limiter.reset();
        let _ = self.limiter.at(then).charge(whole as u64);
        Ok(())
    }
}

impl<A: Algorithm + tollgate::algorithm::GiveBack> ReplayedLimiter<A> {
    /// Gives a grant back.
    pub fn undo(&self, granted: Granted) {
        self.limiter.undo(granted);
    }
}

/// Sees that `time_until` before a call for `n` said what the call then did.
///
/// # Panics
///
/// If it did not.
pub fn check_forecast(n: u64, foretold: Option<Duration>, decision: &Result<Granted, Denied>) {
    let wait = match decision {
        Ok(_) => Some(Duration::ZERO),
        Err(denied) => denied.retry_after(),
    };
    assert_eq!(foretold, wait, "time_until({n}) and try_acquire_n({n})");
}

/// A duration in nanoseconds, cut off at what fits.
#[must_use]
pub fn in_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
