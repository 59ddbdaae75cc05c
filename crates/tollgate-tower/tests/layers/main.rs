//! What layers do with requests. These tests are one binary, since each binary compiles and links
//! tokio, hyper and tower again. Tests that need a process of their own have a binary of their own.

#[cfg(feature = "policy")]
#[path = "../support/clock.rs"]
mod clock;
#[cfg(feature = "redis")]
#[path = "../../../tollgate-redis/examples/private_server/mod.rs"]
mod private_server;
#[cfg(feature = "policy")]
#[path = "../support/random.rs"]
mod random;

#[cfg(feature = "policy")]
mod accounts;
#[cfg(all(feature = "axum", feature = "policy"))]
mod contract;
#[cfg(feature = "policy")]
mod known_failures;
#[cfg(feature = "redis")]
mod on_redis;
#[cfg(all(feature = "metrics", feature = "policy"))]
mod reports;
#[cfg(feature = "policy")]
mod server;
#[cfg(all(feature = "axum", feature = "tonic"))]
mod sockets;
#[cfg(all(
    feature = "axum",
    feature = "redis",
    feature = "tonic",
    feature = "watch"
))]
mod tasks;
#[cfg(feature = "policy")]
mod types;
#[cfg(feature = "policy")]
mod waiting;
