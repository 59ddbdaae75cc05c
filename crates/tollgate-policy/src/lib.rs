//! Rate limits from a file: which limits apply to a request, with their keys, plans and costs.
//!
//! ```
//! use tollgate_policy::{Outcome, Policy};
//!
//! let policy = Policy::from_toml(
//!     r#"
//!     [[rule]]
//!     name  = "login"
//!     when  = { method = "POST", path = "/login" }
//!     key   = "client-ip"
//!     limit = "5/min"
//!     count = "failures"
//!     "#,
//! )?;
//! let request = [("method", "POST"), ("path", "/login"), ("client-ip", "10.0.0.7")];
//! let decision = policy.decide(&request);
//! assert!(decision.is_allowed());
//! decision.finish(Outcome::Success, &()); // the password was right: nothing is counted
//! # Ok::<(), tollgate_policy::Problems>(())
//! ```
//!
//! | you want to | use |
//! |---|---|
//! | read a policy and decide | [`Policy::from_toml`], [`Policy::decide`] |
//! | supply a request's facts (attributes) | [`Facts`]: maps, pairs, or a type of your own |
//! | decide about several descriptors at once | [`Policy::decide_together`] |
//! | know what was asked | [`Decision::asked`], [`Decision::tightest`], [`Decision::reason`] |
//! | settle costs, or give permits back | [`Decision::finish`], [`Decision::undo`] |
//! | register keys, algorithms and stores | [`Policy::builder`] |
//! | share limits with other processes | [`Policy::decide_async`], `redis::RedisStore` (feature `redis`) |
//! | reload while it decides | [`LivePolicy`], [`LivePolicy::reload_file`] |
//! | reload when the file changes | `LivePolicy::watch` (feature `watch`) |
//! | ask about a key, ban or reset it | [`Policy::key`] |
//! | list rules, and write statistics | [`Policy::rules`], [`Policy::stats`] |
//! | save the state for the next process | [`Policy::snapshot`], [`PolicyBuilder::restore`] |
//! | write policies in JSON, or in YAML (feature `yaml`) | [`file::Format`] |
//! | read and check a file without deciding | [`file::PolicyFile`], [`warnings`] |
//!
//! [The guide](guide::policy) has the format, by examples. [Another](guide::from_gateways) is for
//! those who come from the limits of a gateway. For servers of HTTP, see the crate
//! `tollgate-tower` and [its guide].
//!
//! [its guide]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html

mod builder;
mod check;
mod choose;
mod compile;
mod decide;
pub mod explain;
mod facts;
pub mod file;
#[cfg(all(doc, any(not(doctest), all(feature = "redis", feature = "watch"))))]
pub mod guide;
mod limit;
mod live;
pub mod operate;
mod parse;
mod policy;
mod problem;
#[cfg(feature = "redis")]
pub mod redis;
mod registry;
mod rule;
mod state;
pub mod when;

pub use builder::PolicyBuilder;
pub use check::warnings;
pub use decide::{Asked, Decision, Reason, RequestKey};
pub use explain::explain;
pub use facts::{FactKind, FactName, FactValue, FactValues, Facts};
pub use file::disk::FileError;
pub use file::secret::Secret;
pub use limit::{DynLimit, Hashed, KeyRef, KeyedLimit, LimitSpec, OwnLimit, PolicyClock};
pub use limit::{
    FallbackKind, RemoteAsk, RemoteDenied, RemoteError, RemoteFuture, RemoteGrants, RemoteLimit,
    RemoteRefusal, RemoteStore,
};
#[cfg(feature = "watch")]
pub use live::Watch;
pub use live::{Current, LivePolicy, Reloaded};
pub use policy::Policy;
pub use problem::{Position, Problem, Problems, Severity};
pub use registry::Store;
pub use rule::Outcome;
pub use state::{RuleState, StateError};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
