//! The client's address, also behind proxies.

mod client;
mod entries;
mod error;
mod forwarded;
mod networks;
mod node;
#[cfg(feature = "policy")]
mod policy;
mod prefix;

pub use client::ClientAddress;
pub use error::AddressError;
pub use prefix::AddressPrefix;
