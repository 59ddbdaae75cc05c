//! Limits that hold over many machines: tollgate's limits on Redis or Valkey.
//!
//! If ten machines each allow a user 100 requests a minute, the user gets 1000. With this crate the
//! machines share one limit. Each decision is one script, which runs whole inside the server, on
//! the server's clock, in one round trip.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use tollgate::Quota;
//! use tollgate_redis::client::connect_lazily;
//! use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = connect_lazily("redis://127.0.0.1/")?;
//!     let server = Arc::new(RedisServer::new(client).on_outage(|event| eprintln!("{event}")));
//!     // 100 logins a minute for each user. In an outage, each of ten machines grants a tenth.
//!     let fallback = Fallback::Local { processes: 10, keys: 10_000 };
//!     let (keys, quota) = (Keys::new("api")?, Quota::per_minute(100));
//!     let login = RedisLimiter::new(server, &keys, "login", quota, fallback)?;
//!
//!     match login.key("alice").try_acquire().await {
//!         Ok(grant) => println!("go, {} left", grant.granted().remaining()),
//!         Err(denial) => println!("{denial}"),
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A [`RedisServer`] is shared by all limits on it. A [`RedisLimiter`] is one limit for many keys:
//! users, addresses, or any bytes. A [`RedisKey`] has the verbs.
//!
//! # Which limit
//!
//! A [`Quota`](tollgate::Quota) is a token bucket. A [`Limit`] can be any of these, also from text:
//!
//! | limit | for |
//! |---|---|
//! | [`Limit::token_bucket`] | a rate with a burst: the first choice. It decides as a GCRA or a leaky meter does |
//! | [`Limit::leaky_queue`] | requests that leave at a steady rate; each is told how long to wait |
//! | [`Limit::sliding_window`] | about `n` in the last minute, without a double burst where two minutes meet |
//! | [`Limit::sliding_log`] | at most `n` in the last minute, exactly; stores each permit |
//! | [`Limit::fixed_window`] | at most `n` in a calendar day, in UTC |
//! | [`Limit::first_hit_window`] | at most `n` in a period that begins with the first permit |
//! | [`Limit::concurrency`] | at most `n` at a time, in slots with leases, which a [`RedisGuard`] renews |
//!
//! [`RedisAll`] takes from several limits, all or nothing: those of one user in one call.
//!
//! # When the server does not answer
//!
//! The limit's [`Fallback`] decides a call that exceeds its budget ([`RedisServer::with_budget`],
//! 50 ms by default) or fails. If many do ([`RedisServer`] says when), an outage begins: until the
//! server answers again, fallbacks decide at once. The default denies everything; the others grant
//! a bounded number of permits. [`Grant::decider`] and [`Denial::decider`] say who decided,
//! [`RedisServer::stats`] counts, and [`RedisServer::on_outage`] reports the beginning and the end.
//! Nothing is sent twice or replayed.
//!
//! [Many machines](guide::distributed) has the bounds, and what each fault does to them.
//! [Operating](guide::operating) has what an operator needs to know. A file can name limits on the
//! server too: see [stores] of the crate `tollgate-policy`.
//!
//! Behind HTTP: `RateLimitLayer::redis` of the crate `tollgate-tower`, as [its guide] shows.
//!
//! [its guide]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html#limits-on-redis
//! [stores]: https://docs.rs/tollgate-policy/latest/tollgate_policy/guide/policy/index.html#stores
//!
//! # Floods of denied requests
//!
//! [`RedisLimiter::remember_denials`] lets a process remember denials, each for at most a second. A
//! flood of denied requests then makes one call a second.
//!
//! # Without a round trip
//!
//! [`RedisLimiter::leased`] lets a process draw permits of busy keys ahead of need, and decide from
//! them. Over all processes, the bound stays exact.
//!
//! # What the server sees
//!
//! Keys have hashes of users, so what clients send is in no key, command, log or snapshot of the
//! server, and in no error. [`Keys::with_secret`] hides users from guessing too. `tollgate key` and
//! [`RedisKey::name`] tell what a key is called.
//!
//! # Clusters, threads, TLS
//!
//! - A cluster: `client::connect_to_cluster_lazily` in place of `client::connect_lazily` (feature
//!   `cluster`).
//! - Connections of the crate `redis`, and pools of them: `client::Adapter`.
//! - Threads without an async runtime: `Runtime::block_on` of tokio, as in `examples/blocking.rs`.
//! - TLS: URLs that begin with `rediss://` (feature `tls`).
//! - Another client crate than `redis`: implement [`client::Client`], and turn off the default
//!   feature `redis-rs`.
//!
//! # Users of an access control list
//!
//! Put the name and the password in the URL: `redis://limits:password@10.0.0.1/`. The user needs
//! the keys of its namespace, `EVALSHA`, `EVAL` and `PING`, and the commands that scripts call:
//!
//! ```text
//! ACL SETUSER limits on >password ~api:{* +evalsha +eval +ping
//! ACL SETUSER limits +del +get +lindex +llen +lrem +lset +ltrim +pexpire +psetex +rpush +set
//! ACL SETUSER limits +exists +hdel +hget +hgetall +hlen +hset
//! ACL SETUSER limits +time +zadd +zcount +zrange +zrem +zremrangebyscore +zrevrange +zscore
//! ```
//!
//! In a cluster it also needs `+cluster|slots +asking`; for a database other than 0, `+select`.

pub mod client;
#[cfg(doc)]
pub mod guide;
mod key;
mod lease;
mod limit;
mod limiter;
mod outage;
mod remembered;
mod script;
mod server;

pub use key::Keys;
pub use key::error::KeysError;
pub use lease::{Allowance, LeaseError, LeaseStats, Leasing};
pub use limit::Limit;
pub use limit::error::LimitError;
pub use limit::fallback_error::FallbackError;
pub use limit::text::ParseLimitError;
pub use limiter::all::{AllError, RedisAll};
pub use limiter::decision::{Denial, Grant};
pub use limiter::guard::{EnterError, RedisGuard};
pub use limiter::{RedisKey, RedisLimiter};
pub use outage::fallback::Fallback;
pub use outage::stats::{Decider, Stats};
pub use outage::{OutageEvent, Unavailable};
pub use server::RedisServer;

#[cfg(test)]
#[path = "../tests/decisions/mod.rs"]
mod decisions;

/// The README's example.
#[cfg(all(doctest, feature = "redis-rs"))]
#[doc = include_str!("../README.md")]
struct Readme;
