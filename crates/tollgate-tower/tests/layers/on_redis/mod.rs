//! Layers of limits on a server of Redis.

mod decided;
mod without_server;
