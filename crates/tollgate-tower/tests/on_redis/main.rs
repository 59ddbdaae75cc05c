//! Layers of limits on a server of Redis.

#[path = "../../../tollgate-redis/examples/private_server/mod.rs"]
mod private_server;

mod decided;
mod without_server;
