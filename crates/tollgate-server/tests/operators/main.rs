//! Operators look, change things with a token, and restart without a loss.

mod changes;
mod documented;
mod encrypted;
mod ending;
mod hostile;
mod http2;
mod page;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../../tollgate-redis/tests/support/server.rs"]
mod redis_server;
mod reloads;
mod state;
#[path = "../support/mod.rs"]
mod support;
mod unread;

use support::Running;
