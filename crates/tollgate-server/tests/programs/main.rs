//! Programs ask over HTTP, in JSON, and are answered as a policy decides.

mod asks;
mod documented;
mod holds;
mod places;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../tollgate-redis/tests/support/server.rs"]
mod redis_server;
mod refused;
mod same_as_policy;
#[path = "../support/mod.rs"]
mod support;

use support::Running;
