//! Limits on private servers: each verb, and what happens when a server fails.
//!
//! The tests run on redis-server and valkey-server. A server that is missing is skipped.

mod adapters;
mod ask;
#[cfg(feature = "cluster")]
mod cluster;
mod compositions;
mod faults;
mod foreign_values;
mod guards;
mod hidden_users;
mod leased_slots;
mod leases;
mod many_processes;
mod remembered;
mod security;
#[path = "../support/seen.rs"]
mod seen;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/server.rs"]
mod server;
mod slots;
mod verbs;
mod windows;
