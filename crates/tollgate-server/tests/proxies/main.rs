//! Real proxies ask about the requests of real clients, by the configurations of the guide.
//!
//! A proxy that is not installed is skipped, with a line that says so. Linux alone has the loopback
//! addresses that the clients use.

#![cfg(target_os = "linux")]

mod caddy;
mod haproxy;
mod nginx;
#[path = "../support/program.rs"]
mod program;
mod questions;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../tollgate-redis/tests/support/server.rs"]
mod redis_server;
mod support;
mod traefik;
mod two_instances;
mod warnings;
