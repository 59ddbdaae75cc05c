//! Rate limits as a service: decisions for proxies, and for programs in any language.
//!
//! | you want to | use |
//! |---|---|
//! | run the service | the command `tollgate serve` |
//! | run it in a program of your own | [`Server`], [`Settings`] |
//! | read the policy again | [`Handle::reload`] |
//!
//! [The guide](guide::service) has what programs ask, [another](guide::envoy) the configuration of
//! Envoy, and [another](guide::running) what operators need.

mod admin;
mod budget;
mod client;
mod connections;
mod counters;
mod decide;
mod descriptors;
mod ends;
mod envoy;
mod error;
mod forward;
#[cfg(doc)]
pub mod guide;
mod heaviest;
mod held;
mod history;
mod json;
mod overrides;
mod read;
mod reload;
mod route;
mod server;
mod service;
mod settings;
mod state;
mod store;
#[cfg(feature = "tls")]
mod tls;

/// What `scripts/fuzz` runs.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use decide::fuzzing as decide_fuzzing;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use envoy::fuzzing;
pub use error::{ReloadError, StartError};
pub use server::{BUILT_IN, Handle, Server};
#[cfg(feature = "tls")]
pub use settings::TlsSettings;
pub use settings::{Limits, Settings, StateSettings};
#[cfg(feature = "tls")]
pub use tls::TlsError;

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
