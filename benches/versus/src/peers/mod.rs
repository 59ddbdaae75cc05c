//! Alternatives to tollgate: other crates' limiters, and common hand-written ones. The benches of
//! this package use them, and so does `tollgate bench` with its feature `peers`.
//!
//! | limiter | clock |
//! |---|---|
//! | [`Governor`], [`governor_by_key`] | quanta's, or its upkeep clock |
//! | [`Ratelimit`] | the standard library's |
//! | [`LeakyBucket`] | tokio's |
//! | [`CounterWindow`], [`Mutexes`], [`Locked`] | tollgate's system clock |

mod direct;
mod keyed;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{Ask, AskKey};

pub use direct::{CounterWindow, Governor, LeakyBucket, Ratelimit};
pub use keyed::{GovernorByKey, Locked, Mutexes, governor_by_key};

/// The limit of a peer, which starts full.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The permits that it holds.
    pub burst: u64,
    /// The time to refill one permit.
    pub period: Duration,
}

impl Limit {
    /// A limit that never runs dry in a measurement.
    pub const PLENTY: Self = Self {
        burst: 1 << 40,
        period: Duration::from_nanos(1),
    };

    /// A limit with one permit an hour.
    pub const NOTHING: Self = Self {
        burst: 1,
        period: Duration::from_secs(3600),
    };

    /// Ten permits and then nothing for a day, so that time does not affect a test.
    pub const TEN: Self = Self {
        burst: 10,
        period: Duration::from_secs(86_400),
    };
}

/// Makes twenty requests to a limiter of [`Limit::TEN`]. The first ten must be allowed, and no
/// other.
///
/// # Errors
///
/// Returns an error that names the first wrong decision.
pub fn verify(limiter: &impl Ask) -> Result<(), String> {
    (1..=2 * Limit::TEN.burst).try_for_each(|turn| judge(turn, limiter.is_allowed()))
}

/// Makes the same requests for each of three keys, in turn.
///
/// # Errors
///
/// Returns an error that names the first wrong decision.
pub fn verify_keys(limiter: &impl AskKey) -> Result<(), String> {
    (1..=2 * Limit::TEN.burst).try_for_each(|turn| {
        let mut keys = 0..3;
        keys.try_for_each(|key| judge(turn, limiter.is_key_allowed(&key)))
    })
}

fn judge(turn: u64, is_allowed: bool) -> Result<(), String> {
    let burst = Limit::TEN.burst;
    if is_allowed == (turn <= burst) {
        return Ok(());
    }
    let said = if is_allowed { "allowed" } else { "denied" };
    Err(format!(
        "decision {turn} was {said} with a burst of {burst}"
    ))
}
