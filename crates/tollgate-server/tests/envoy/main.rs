//! Envoy's rate limit service: by calls of gRPC, and with Envoy itself.

mod calls;
mod decisions;
mod examples;
mod hits;
mod outage;
mod own_limits;
mod proxy;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../tollgate-redis/tests/support/server.rs"]
mod redis_server;
mod support;
mod waiting;
