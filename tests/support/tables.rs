//! Tables with fixed seeds, and algorithms for them.

#![allow(dead_code, reason = "each binary uses some of these")]

use tollgate::error::LimiterError;
use tollgate::keyed::SeededHasher;

use super::*;

/// The initial tick of the clocks of these tables.
pub(crate) const NOW: u64 = 86_400 * SECOND + 7;

/// Returns a number of repetitions, ten times as many in a release build.
pub(crate) const fn often(n: u64) -> u64 {
    debug_or_release(n, 10 * n)
}

/// Returns this queue as its own type, which supports reservations.
pub(crate) fn queue(text: &str) -> LeakyBucket {
    match algorithm(text) {
        AnyAlgorithm::LeakyBucket(queue) => queue,
        other => panic!("{other} is no queue"),
    }
}

pub(crate) fn bucket(quota: &str) -> TokenBucket {
    TokenBucket::new(quota.parse::<Quota>().expect(quota)).expect(quota)
}

/// Random digits. With a small seed, pairs of small numbers collide.
pub(crate) const SEED: [u64; 2] = [0x6A09_E667_F3BC_C908, 0xBB67_AE85_84CA_A73B];

/// Creates a table of the smallest size, 2048 slots, whose keys have the same slots in each run.
pub(crate) fn table<A: Algorithm>(algorithm: A) -> Keyed<A, ManualClock> {
    of_capacity(1, algorithm)
}

pub(crate) fn of_capacity<A: Algorithm>(capacity: usize, algorithm: A) -> Keyed<A, ManualClock> {
    let clock = ManualClock::at(tick(NOW));
    seeded(Keyed::with_clock(algorithm, capacity, clock))
}

/// Creates one with several plans.
pub(crate) fn with_plans<A: ChangeQuota + Clone>(plans: &[A]) -> Keyed<A, ManualClock> {
    let clock = ManualClock::at(tick(NOW));
    seeded(Keyed::with_plans(plans.to_vec(), 1, clock))
}

fn seeded<A>(table: Result<Keyed<A, ManualClock>, LimiterError>) -> Keyed<A, ManualClock> {
    table.expect("a table").with_hasher(SeededHasher::new(SEED))
}
