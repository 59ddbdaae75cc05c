//! A limiter whose quota can be changed while it is in use: `Adjustable`. [`Keep`] says what a
//! change does to the available permits.
//!
//! Without the feature `wide` there is only [`Keep`], which tables of keys use too. `ring.rs`
//! explains the protocol.

mod keep;
#[cfg(feature = "wide")]
pub(crate) mod limiter;
#[cfg(feature = "wide")]
mod retry;
#[cfg(feature = "wide")]
mod ring;
#[cfg(feature = "wide")]
mod verbs;

pub use keep::Keep;
#[cfg(feature = "wide")]
pub(crate) use limiter::Adjustable;
