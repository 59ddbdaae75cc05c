//! Limits of every kind, and extreme numbers, for tests of limiters with several words.

use super::prelude::*;
use crate::support::edges::EDGES;
use crate::support::random::Random;

/// Returns an extreme number.
pub(crate) fn any_edge(random: &mut Random) -> u64 {
    EDGES[random.below(EDGES.len() as u64) as usize]
}

/// Returns limits of every kind: of one permit, of few, and of as many as fit, with even and uneven
/// numbers.
pub(crate) fn algorithms() -> [AnyAlgorithm; 29] {
    [
        "token-bucket 1/s",
        "token-bucket 3/s",
        "token-bucket 1000/s burst 40 initial 7",
        "token-bucket 1/365d burst 17",
        "token-bucket 10/1ns burst 1099511627776",
        "token-bucket 9999999999/s burst 100",
        "token-bucket 97/s burst 64 initial 0",
        "token-bucket 1/s burst 8434345636",
        "gcra 7/s burst 12",
        "gcra 1/1d burst 97620",
        "gcra 1/10ms tolerance 25ms",
        "gcra 1/7ms tolerance 1s",
        "gcra 1/1s tolerance 8434345635s",
        "leaky-meter 10/s burst 20",
        "leaky-queue 10/s burst 20",
        "leaky-queue 10/s burst 20 free 5",
        "fixed-window 1/d",
        "fixed-window 1000/d origin 1700000000s offset 2h",
        "fixed-window 5/s first-hit",
        "fixed-window 8589934591/s",
        "sliding-window 3/min",
        "sliding-window 65535/s",
        "sliding-window 1000/min rounding down",
        "intervals 1/s",
        "intervals 10/s burst 25 initial 3",
        "intervals 3/s burst 100",
        "intervals 10/s burst 25 greedy",
        "intervals 1000/s burst 3 greedy",
        "intervals 3/min burst 1000 initial 999 greedy",
    ]
    .map(algorithm)
}

/// Returns a limiter that starts with its first verb, at the tick of that verb.
pub(crate) fn limiter(algorithm: AnyAlgorithm) -> Limiter<AnyAlgorithm, NoClock> {
    Limiter::unstarted(algorithm, NoClock)
}

/// Returns shards that started at tick 0.
pub(crate) fn sharded(algorithm: AnyAlgorithm, shards: usize) -> Sharded<AnyAlgorithm, NoClock> {
    Sharded::starting_at(algorithm, shards, NoClock, Tick::ZERO).expect("a permit for each part")
}

/// Returns whether an algorithm makes the decisions of a token bucket.
pub(crate) fn is_bucket(algorithm: &AnyAlgorithm) -> bool {
    matches!(
        algorithm,
        AnyAlgorithm::TokenBucket(_) | AnyAlgorithm::Gcra(_) | AnyAlgorithm::LeakyBucket(_)
    )
}
