//! The keyed table: each key is held to its limit as by a limiter of its own, whatever other keys and threads do, and
//! whether it is in the table or has left it; what is allowed besides is caused by the policy alone, and counted.

mod bad_input;
mod bans;
mod carried_once;
mod churn;
mod claims;
mod exact;
mod keys;
mod known_failures;
mod late;
mod memory;
mod own;
mod plans;
mod pool;
mod reservations;
mod threads;
mod turnover;
mod zipf;

use std::hash::{BuildHasherDefault, Hasher};

use tollgate::AnyAlgorithm;

/// Every kind of algorithm, small ones and large ones, each with its longest period in nanoseconds.
fn all() -> Vec<(AnyAlgorithm, u64)> {
    const SECOND: u64 = 1_000_000_000;
    let texts = [
        ("token-bucket 10/s", SECOND),
        ("token-bucket 13/s burst 40", 4 * SECOND),
        ("gcra 10/s burst 3", SECOND),
        ("gcra 1/10ms tolerance 25ms", SECOND / 20),
        ("leaky-meter 10/s burst 20", SECOND),
        ("leaky-queue 7/min burst 5 free 2", 60 * SECOND),
        ("fixed-window 10/s", SECOND),
        ("fixed-window 100/min offset 7s", 60 * SECOND),
        ("fixed-window 5/s first-hit", SECOND),
        ("sliding-window 10/s", SECOND),
        ("sliding-window 50/min origin 9s rounding down", 60 * SECOND),
        ("intervals 10/s burst 20", 2 * SECOND),
        ("intervals 10/s burst 25 greedy", 2 * SECOND),
    ];
    texts
        .map(|(text, period)| (text.parse().expect(text), period))
        .into()
}

/// The same, of which new keys begin with less than they can hold.
fn with_less_at_first() -> Vec<(AnyAlgorithm, u64)> {
    const SECOND: u64 = 1_000_000_000;
    let texts = [
        ("token-bucket 10/s burst 20 initial 3", 2 * SECOND),
        ("gcra 10/s burst 5 initial 0", SECOND),
        ("leaky-meter 10/s burst 20 initial 1", 2 * SECOND),
        ("intervals 10/s burst 20 initial 4", 2 * SECOND),
    ];
    texts
        .map(|(text, period)| (text.parse().expect(text), period))
        .into()
}

/// splitmix64: a repeatable stream.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From 0 to `end - 1`; 0 if there is none.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of so many keys, of which the first is asked for about as often as the second and third, and so on.
    fn skewed(&mut self, keys: u64) -> u64 {
        let bits = self.below(u64::from(u64::BITS - keys.leading_zeros()) + 1);
        self.below(1 << bits).min(keys - 1)
    }
}

const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hash of a number is that number, so that a test can put its keys where it wants.
#[derive(Debug, Default, Clone)]
struct AsItIs(u64);

type Chosen = BuildHasherDefault<AsItIs>;

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// So many keys that, as they are, share their two pairs of lines in the smallest table: sixteen slots.
fn in_sixteen_slots(keys: usize) -> Vec<u64> {
    let pairs = |hash: &u64| {
        let tag = hash << 12;
        let apart = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 52 & 0xFF, (hash << 4).wrapping_add(apart) >> 56)
    };
    let hashes = (1..).map(mix).filter(|hash| pairs(hash) == (77, 178));
    hashes.take(keys).collect()
}
