//! Rate limits as tower layers, for servers.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tollgate::{Keyed, Quota};
//! use tollgate_tower::RateLimitLayer;
//!
//! // Each client address has 5 requests at once, and one more every 2 seconds.
//! let limits = Keyed::token_bucket(Quota::per_minute(30).burst(5), 100_000)?;
//! let app = Router::new()
//!     .route("/", get(async || "hello"))
//!     .layer(RateLimitLayer::by_address(limits));
//!
//! // The layer needs the addresses of connections.
//! let service = app.into_make_service_with_connect_info::<std::net::SocketAddr>();
//! # let _ = service;
//! # Ok::<(), tollgate::error::LimiterError>(())
//! ```
//!
//! | you want to | use |
//! |---|---|
//! | limit each client address | [`RateLimitLayer::by_address`] |
//! | find the address [behind a proxy](guide::http#behind-a-proxy) | [`RateLimitLayer::client_address`] |
//! | limit each user, API key or tenant | [`RateLimitLayer::by_key`] |
//! | give each plan of customers its own limit | [`RateLimitLayer::plan`] |
//! | limit all requests together | [`RateLimitLayer::shared`] |
//! | limit how many are served at once, and shed load | [`RateLimitLayer::concurrency`], [`concurrency_by_key`](RateLimitLayer::concurrency_by_key) |
//! | limit each key over many machines | `RateLimitLayer::redis` (feature `redis`) |
//! | have several limits, plans, bans, or limits from a file | `RateLimitLayer::policy` (feature `policy`) |
//! | let requests wait, and not refuse them | `wait` of the layer, such as [`RateLimitLayer::<Inside>::wait`] |
//! | limit a service that is not `Clone` | `at_once` of the layer, such as [`RateLimitLayer::<Inside>::at_once`] |
//! | count failures, such as wrong passwords | [`RateLimitLayer::count`] |
//! | limit bytes, time or tokens | [`RateLimitLayer::cost`], [`RateLimitLayer::settle`] |
//! | tell clients in fields (headers) what they have left | [`RateLimitLayer::fields`] |
//! | change the answers (responses) that refuse: status and body | [`RateLimitLayer::answers`], [`RateLimitLayer::body`] |
//! | exempt requests | [`RateLimitLayer::exempt_if`], [`RateLimitLayer::exempt_preflight`] |
//! | count decisions, or trace them | the features `metrics` and `tracing` |
//! | send requests as fast as a server allows | the crate `tollgate-client` |
//!
//! The features `axum` and `tonic` find the addresses of these servers' connections; other servers
//! insert a [`PeerAddr`]. With `tonic`, a layer also has `grpc`, which refuses gRPC calls with
//! `RESOURCE_EXHAUSTED`.
//!
//! [The guide](guide::http) explains all this, by examples. Others say what to watch in
//! [production](guide::production) and what clients can do ([security](guide::security)), and are
//! for those who come from [`tower_governor`](guide::from_tower_governor).

mod admission;
mod answered;
mod body;
mod boxed;
mod costs;
#[cfg(any(feature = "policy", feature = "redis"))]
mod deciding;
mod decision;
mod future;
#[cfg(all(
    doc,
    any(
        not(doctest),
        all(
            feature = "axum",
            feature = "policy",
            feature = "redis",
            feature = "tonic"
        )
    )
))]
pub mod guide;
mod head;
mod inside;
mod keep;
mod key;
mod layer;
mod peer;
#[cfg(feature = "policy")]
mod policy;
mod rate;
#[cfg(feature = "redis")]
mod redis;
mod refuse;
mod report;
mod service;
mod settings;
mod ticket;

pub use admission::Admission;
pub use answered::{End, Ended};
pub use body::ResponseBody;
pub use boxed::BoxedLimits;
pub use costs::CountedRequests;
pub use decision::LayerDecision;
pub use future::ResponseFuture;
pub use inside::{Inside, InsideByKey};
pub use keep::{AtOnce, Keep, MayWait};
pub use key::{ByAddress, ByHeader, IntoKey, RequestKey};
pub use layer::RateLimitLayer;
pub use peer::PeerAddr;
#[cfg(feature = "policy")]
pub use policy::ByPolicy;
pub use rate::{PerKey, Rate, Shared, Source};
#[cfg(feature = "redis")]
pub use redis::ByRedis;
#[cfg(feature = "metrics")]
pub use report::record_stats;
pub use service::RateLimitService;
pub use settings::MissingKey;
pub use tollgate;
pub use tollgate_http::{
    AddressError, AddressPrefix, Ambiguous, Answers, Cause, ClientAddress, Fields, PathForm,
    Refusal, RefusalBody, RequestFacts, Unit,
};
#[cfg(feature = "policy")]
pub use tollgate_policy;
#[cfg(feature = "redis")]
pub use tollgate_redis;

/// The README's example.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../README.md")]
struct Readme;
