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
//! ACL SETUSER limits on >password ~api:{* +evalsha +eval
//!     +del +get +lindex +llen +lrem +ltrim +pexpire +psetex +rpop +rpush +set +time +zadd +zcount
//!     +zrem +zremrangebyscore +zrevrange +zscore
//! ```
//!
//! In a cluster it also needs `+cluster|slots +asking`.

mod all;
#[cfg(feature = "blocking")]
mod blocking;
mod call;
pub mod client;
mod decision;
mod fallback;
mod key;
mod kind;
mod limit;
mod limit_error;
mod limit_text;
mod limiter;
mod local;
mod outage;
mod packed;
mod rate;
mod script;
mod server;
mod stats;
mod verbs;

pub use all::{AllError, RedisAll};
#[cfg(feature = "blocking")]
pub use blocking::Blocking;
pub use decision::{Denial, Grant};
pub use key::{Keys, KeysError};
pub use limit::Limit;
pub use limit_error::LimitError;
pub use limit_text::ParseLimitError;
pub use limiter::{RedisKey, RedisLimiter};
pub use local::{WithLocal, WithLocalDenial, WithLocalGrant};
pub use outage::{Fallback, FallbackError, OutageEvent, Unavailable};
pub use server::Server;
pub use stats::{Decider, Stats};

#[cfg(test)]
#[path = "../tests/decisions/mod.rs"]
mod decisions;
