//! However requests end, every permit and every place is accounted for, exactly.
//!
//! Requests are polled and dropped in random order, on a clock that the tests move. Services
//! answer, fail and panic, and so do their bodies. Beside each layer, a test keeps the same limits
//! by hand: after each step, both must have the same permits left.

mod answers;
mod flights;
mod inside;
mod panics;
mod policies;
mod rates;
mod scripted;
mod store;
mod stores;

/// The number of clients in each test, over all seeds.
const CLIENTS: usize = 10_000;

/// The number of clients for each seed.
const CLIENTS_OF_A_SEED: usize = 200;

/// Runs a test for each seed.
fn each_seed(mut test: impl FnMut(u64)) {
    for seed in 0..u64::try_from(CLIENTS / CLIENTS_OF_A_SEED).unwrap() {
        test(seed);
    }
}
