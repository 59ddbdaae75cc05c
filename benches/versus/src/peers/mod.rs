//! The limiters that people would pick instead: other crates', and what people write themselves.
//! They are for the benches of this package, and for `tollgate bench` with its feature `peers`.
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

/// What a peer is to limit to. It starts full.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// How many permits it holds.
    pub burst: u64,
    /// How long it takes to make one.
    pub period: Duration,
}

impl Limit {
    /// It never runs dry while it is measured.
    pub const PLENTY: Self = Self {
        burst: 1 << 40,
        period: Duration::from_nanos(1),
    };

    /// Once its only permit is taken, it has nothing for an hour.
    pub const NOTHING: Self = Self {
        burst: 1,
        period: Duration::from_secs(3600),
    };

    /// Ten permits and then nothing for a day: time does not matter to a test.
    pub const TEN: Self = Self {
        burst: 10,
        period: Duration::from_secs(86_400),
    };
}

/// Asks a limiter of [`Limit::TEN`] twenty times: the first ten are to be allowed, and no other.
///
/// # Errors
///
/// Says which decision was wrong.
pub fn verify(limiter: &impl Ask) -> Result<(), String> {
    (1..=2 * Limit::TEN.burst).try_for_each(|turn| judge(turn, limiter.is_allowed()))
}

/// The same for each of three keys, in turns.
///
/// # Errors
///
/// Says which decision was wrong.
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
    Err(format!("decision {turn} was {said}, of a burst of {burst}"))
}
