//! What a policy's file says, and what the policy decides. These tests are one binary, since each
//! binary compiles and links the policy, and its stores, again. Tests that need a process of their
//! own have a binary of their own.

#[path = "../support/folder.rs"]
mod folder;
#[path = "../../../../tests/support/random.rs"]
mod random;
#[cfg(feature = "redis")]
#[path = "../../../tollgate-redis/tests/support/seen.rs"]
mod seen;
#[cfg(feature = "redis")]
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../tollgate-redis/tests/support/server.rs"]
mod server;

mod decisions;
mod guide;
#[cfg(feature = "redis")]
mod hidden_keys;
mod key_secret;
#[cfg(feature = "redis")]
mod leased_on_redis;
mod many;
mod matching;
#[cfg(feature = "redis")]
mod on_redis;
mod operate;
mod overrides;
#[cfg(feature = "redis")]
mod overrides_on_redis;
mod reload;
#[cfg(feature = "redis")]
mod remembered;
mod remote;
mod state;
mod text;
mod together;
mod warnings;
#[cfg(feature = "watch")]
mod watch;
