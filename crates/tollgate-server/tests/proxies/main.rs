//! Real proxies ask about the requests of real clients, by the configurations of the guide.
//!
//! A proxy that is not installed is skipped, with a line that says so. Linux alone has the loopback
//! addresses that the clients use.

#![cfg(target_os = "linux")]

mod caddy;
mod haproxy;
mod nginx;
mod questions;
mod support;
mod traefik;
mod warnings;
