//! The client layer.

mod absurd;
mod alone;
mod attacks;
mod budget;
#[path = "../../../tollgate-tower/tests/support/clock.rs"]
#[allow(dead_code)] // Other tests use the rest.
mod clock;
mod contract;
mod fleet;
mod holds;
mod idle;
#[cfg(feature = "reqwest")]
mod over_reqwest;
mod own_quota;
mod recovering;
mod retries;
mod served;
mod sharing;
#[cfg(feature = "reqwest-middleware")]
mod through_middleware;
mod together;
