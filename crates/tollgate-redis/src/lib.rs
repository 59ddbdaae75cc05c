//! Limits that hold over many machines: tollgate's limits on Redis or Valkey.
//!
//! Each decision is one script, which runs whole inside the server, on the server's clock. While
//! the server does not answer, each limit's [`Fallback`] decides. [`RedisLimiter`] shows how to
//! begin.
//!
//! For TLS, enable a feature of the crate `redis`, such as `tokio-rustls-comp`, and use a URL that
//! begins with `rediss://`. For a user of the server's ACL, put the name and the password in the
//! URL.

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
