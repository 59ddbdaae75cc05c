//! A limiter whose quota can be changed while it is in use: [`Adjustable`], and
//! [`Keep`], which says what a change does to the permits at hand.
//!
//! `ring.rs` has the protocol.

mod keep;
pub(crate) mod limiter;
mod retry;
mod ring;
mod verbs;

pub use keep::Keep;
pub(crate) use limiter::Adjustable;
