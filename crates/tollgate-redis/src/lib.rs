//! Limits that hold over many machines: tollgate's limits on Redis or Valkey.
//!
//! Each decision is one script, which runs whole inside the server, on the server's clock. While
//! the server does not answer, each limit's [`Fallback`] decides. [`RedisLimiter`] shows how to
//! begin.
//!
//! Features:
//!
//! - `redis-rs` (default): connections by the crate `redis`.
//! - `tls`: URLs that begin with `rediss://`.
//! - `blocking`: `Blocking`, for threads without an async runtime.
//!
//! For a user of the server's access control list, put the name and the password in the URL. The
//! user needs the keys of its namespace, `EVALSHA` and `EVAL`, and the commands that scripts call:
//!
//! ```text
//! ACL SETUSER limits on >password ~api:{* +evalsha +eval +time +get +set +del
//! ```

mod all;
#[cfg(feature = "blocking")]
mod blocking;
mod bucket;
pub mod client;
mod decision;
mod fallback;
mod key;
mod limiter;
mod outage;
mod rate;
mod script;
mod server;
mod verbs;

pub use all::{AllError, RedisAll};
#[cfg(feature = "blocking")]
pub use blocking::Blocking;
pub use decision::{Denial, Grant};
pub use key::{Keys, KeysError};
pub use limiter::{RedisKey, RedisLimiter};
pub use outage::{Decider, Fallback, FallbackError, OutageEvent, Stats, Unavailable};
pub use rate::{Rate, RateError};
pub use server::Server;

#[cfg(test)]
#[path = "../tests/decisions/mod.rs"]
mod decisions;
