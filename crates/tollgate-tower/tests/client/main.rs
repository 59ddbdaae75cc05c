//! The client layer.

mod absurd;
mod alone;
#[path = "../support/clock.rs"]
#[allow(dead_code)] // Other tests use the rest.
mod clock;
mod contract;
mod fleet;
mod holds;
#[cfg(feature = "reqwest")]
mod over_reqwest;
mod own_quota;
mod retries;
mod served;
mod sharing;
mod together;
