//! Buckets whose level was recorded as a double, in permits.

use std::time::Duration;

use tollgate::{Quota, TokenBucket};

use crate::comparison::TIE;
use crate::format::{Fields, Malformed};
use crate::limiter::{Answer, ReplayedLimiter};

/// Returns the quota of a configuration with a `rate` and a `capacity`. A rate given as a double
/// becomes the simplest fraction that rounds to it, or [`Malformed`] if there is no simple one.
pub fn quota(config: &Fields) -> Result<Quota, Malformed> {
    let (rate, capacity) = (config.f64("rate")?, config.u64("capacity")?);
    for seconds in 1..=1000_u32 {
        let permits = (rate * f64::from(seconds)).round();
        if permits >= 1.0 && permits / f64::from(seconds) == rate {
            let period = Duration::from_secs(seconds.into());
            return Ok(Quota::per(permits as u64, period).burst(capacity));
        }
    }
    Err(Malformed(format!(
        "a rate of {rate} is not a simple fraction"
    )))
}

/// A bucket with its rate in permits a second.
#[derive(Debug)]
pub struct LevelLimiter {
    limiter: ReplayedLimiter<TokenBucket>,
    rate: f64,
}

/// An answer, and the level at which it was decided.
#[derive(Debug)]
pub struct Decided {
    /// The answer.
    pub answer: Answer,
    /// The level before the call.
    pub before: f64,
}

impl LevelLimiter {
    /// Creates a fresh bucket from a configuration: see [`quota`].
    pub fn new(config: &Fields) -> Result<Self, Malformed> {
        let quota = quota(config)?;
        let rate = quota.permits() as f64 / quota.period().as_secs_f64();
        let limiter = ReplayedLimiter::new(TokenBucket::new(quota))?;
        Ok(Self { limiter, rate })
    }

    /// Returns the most permits that are available at once.
    pub fn capacity(&self) -> u64 {
        self.limiter.capacity()
    }

    /// Returns the rate in permits a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Asks for `n` permits at `t_ns`.
    #[must_use]
    pub fn ask(&self, n: u64, t_ns: u64) -> Decided {
        let answer = self.limiter.ask(n, t_ns);
        let before = before(self.limiter.level(self.rate), answer.ok(), n);
        Decided { answer, before }
    }

    /// Adopts a recorded level: see [`ReplayedLimiter::hold`].
    pub fn hold(&self, level: f64, t_ns: u64) -> Result<(), Malformed> {
        self.limiter.hold(level, self.rate, t_ns)
    }
}

/// Returns the level before a call that left `after`. Two limiters in the same state agree on it
/// even if they decided differently.
#[must_use]
pub fn before(after: f64, ok: bool, n: u64) -> f64 {
    if ok { after + n as f64 } else { after }
}

/// Returns whether a level is so close to `n` that doubles may decide either way.
#[must_use]
pub fn is_tie(level: f64, n: u64) -> bool {
    (level - n as f64).abs() <= TIE
}
