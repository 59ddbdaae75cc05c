//! Rate limits as tower layers.

mod admission;
mod answered;
mod body;
#[cfg(feature = "client")]
pub mod client;
mod future;
mod inside;
mod key;
mod layer;
mod peer;
#[cfg(feature = "policy")]
mod policy;
mod rate;
mod report;
mod service;
mod settings;
mod ticket;

pub use admission::Admission;
pub use answered::{End, Ended};
pub use body::ResponseBody;
pub use future::ResponseFuture;
pub use inside::{Inside, InsideByKey};
pub use key::{ByAddress, ByHeader, RequestKey};
pub use layer::RateLimitLayer;
pub use peer::PeerAddr;
#[cfg(feature = "policy")]
pub use policy::ByPolicy;
pub use rate::{Count, PerKey, Rate, Shared, Source};
pub use service::RateLimit;
pub use settings::Missing;
