//! Rate limits as tower layers.

#[cfg(feature = "client")]
pub mod client;
