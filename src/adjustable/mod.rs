//! A limiter whose quota can be changed while it is in use: `Adjustable`. [`Keep`] says what a
//! change does to the available permits. Tables of keys use it too.

// `ring.rs` explains the protocol.

pub(crate) mod keep;
pub(crate) mod limiter;
mod retry;
mod ring;
mod verbs;

pub(crate) use keep::Keep;
pub(crate) use limiter::Adjustable;
