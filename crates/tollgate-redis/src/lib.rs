//! Limits that hold over many machines: tollgate's limits on Redis or Valkey.
//!
//! Each decision is one script, which runs whole inside the server, on the server's clock.

mod bucket;
mod client;
mod key;
mod limiter;
mod rate;
mod script;

pub use key::{Keys, KeysError};
pub use client::Reply;
pub use rate::{Rate, RateError};
pub use script::Script;

#[cfg(test)]
#[path = "../tests/decisions/mod.rs"]
mod decisions;
