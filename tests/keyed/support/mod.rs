//! Shared helpers of these tests: algorithms, tables with fixed seeds, threads, and a random
//! stream.

#[path = "../../support/forged.rs"]
pub(crate) mod forged;
#[path = "../../support/kinds.rs"]
mod kinds;
#[path = "../../support/prelude.rs"]
mod prelude;
#[path = "../../support/random.rs"]
mod random;
#[path = "../../support/tables.rs"]
mod tables;
#[path = "../../support/threads.rs"]
mod threads;
#[path = "../../support/verbs.rs"]
pub(crate) mod verbs;
#[path = "../../support/deadline.rs"]
mod waits;

pub(crate) mod histories;
#[path = "../../support/hooks.rs"]
pub(crate) mod hooks;
pub(crate) mod model;

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

pub(crate) use tollgate::keyed::Overflow;
pub(crate) use tollgate::{Keep, Keyed};

pub(crate) use prelude::*;
pub(crate) use random::{Random, mix};
pub(crate) use tables::*;
pub(crate) use threads::on_threads;
pub(crate) use waits::deadline;

pub(crate) const KEEPS: [Keep; 4] = [Keep::AsIs, Keep::Scaled, Keep::Used, Keep::Fresh];

/// Returns every kind of algorithm, small and large.
pub(crate) fn all() -> Vec<AnyAlgorithm> {
    kinds::KINDS.map(algorithm).into()
}

/// Returns the same, and some whose new keys start with less than their burst.
pub(crate) fn every() -> Vec<AnyAlgorithm> {
    let with_less = [
        "token-bucket 10/s burst 20 initial 3",
        "gcra 10/s burst 5 initial 0",
        "leaky-meter 10/s burst 20 initial 1",
        "intervals 10/s burst 20 initial 4",
    ];
    all().into_iter().chain(with_less.map(algorithm)).collect()
}

/// Returns about how long an empty limiter takes to fill, in nanoseconds.
pub(crate) fn period(algorithm: &AnyAlgorithm) -> u64 {
    let quota = algorithm.quota();
    let bursts = quota.burst_size().div_ceil(quota.permits());
    quota.period().as_nanos() as u64 * bursts
}

/// A hasher whose hash of a number is that number, so that a test can choose the slots of its keys.
/// (A snapshot hashes other types too.)
#[derive(Debug, Default, Clone)]
pub(crate) struct IdentityHasher(u64);

pub(crate) type IdentityState = BuildHasherDefault<IdentityHasher>;

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let bytes = bytes.iter().map(|byte| u64::from(*byte));
        self.0 = bytes.fold(self.0, |hash, byte| mix(hash ^ byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Creates a table for keys that are their own hashes.
pub(crate) fn crowded<A: Algorithm>(algorithm: A) -> Keyed<A, ManualClock, IdentityState> {
    table(algorithm).with_hasher(IdentityState::default())
}

/// Returns the two pairs of lines of a hash, in the smallest table.
pub(crate) fn pairs(hash: u64) -> (u64, u64) {
    let apart = (hash << 12).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> 52 & 0xFF, (hash << 4).wrapping_add(apart) >> 56)
}

/// Returns keys of a [`crowded`] table that share both pairs of lines: sixteen slots.
pub(crate) fn in_sixteen_slots(keys: usize) -> &'static [u64] {
    static KEYS: OnceLock<Vec<u64>> = OnceLock::new();
    let hashes = (1..).map(|n| 77 << 52 | mix(n) >> 12);
    let hashes = hashes.filter(|hash| pairs(*hash) == (77, 178));
    &KEYS.get_or_init(|| hashes.take(160).collect())[..keys]
}
