//! Rate limits as a service: decisions for proxies, and for programs in any language.
//!
//! The command `tollgate serve` runs it. Or run a [`Server`] in a program of your own.

mod admin;
mod connections;
mod counters;
mod decide;
mod envoy;
mod error;
mod forward;
mod held;
mod overrides;
mod route;
mod server;
mod service;
mod settings;

pub use error::StartError;
pub use server::{BUILT_IN, Handle, Server};
pub use settings::{Limits, Settings};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
