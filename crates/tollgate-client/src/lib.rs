//! HTTP clients that behave: a layer paces requests by your own quota and by what servers say, and
//! sends some of them again.
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tollgate::Quota;
//! use tollgate_client::ClientLimitLayer;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! # let http_client = tower::service_fn(|_: Request<String>| async {
//! #     Ok::<_, std::convert::Infallible>(Response::new(String::new()))
//! # });
//! let client = ServiceBuilder::new()
//!     .layer(ClientLimitLayer::new().quota(Quota::per_second(50))?)
//!     .service(http_client); // hyper-util's, or reqwest's with the feature `reqwest`
//!
//! let request = Request::get("https://api.example.com/users").body(String::new())?;
//! let answer = client.clone().oneshot(request).await?;
//! assert_eq!(answer.status(), 200);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! | you want to | use |
//! |---|---|
//! | send requests as fast as servers allow | [`ClientLimitLayer`] |
//! | never send faster than a quota of your own | [`ClientLimitLayer::quota`] |
//! | bound how long a request waits | [`ClientLimitLayer::max_wait`] |
//! | bound how often requests are sent again | [`ClientLimitLayer::max_attempts`], [`RetryBudget`] |
//! | send requests whose bodies are not `Clone` | [`CopyRequest`], [`NeverCopy`] |
//! | read what a server says of its limits | [`ServerLimits`] |
//! | pace an HTTP client that is not a tower service | [`Pace`] |
//!
//! The layer works with each tower service of `http` requests, and with the feature `reqwest`
//! around `reqwest::Client`. With the feature `reqwest-middleware` it is a middleware of that
//! crate, so that callers write `client.get(url).send()`. Make one layer, and clone the service:
//! clones share all state.
//!
//! For the other side, servers that limit their clients, there is a [guide].
//!
//! [guide]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html
//!
//! # When a request goes
//!
//! Requests are put into *groups*: a group is one origin (scheme, host and port) and one credential
//! (the field `Authorization`, a header, or what [`group_by`](ClientLimitLayer::group_by) returns).
//! In a group, requests go in the order of their arrival. A request goes when all of these let it:
//!
//! | | |
//! |---|---|
//! | your own quota | [`quota`](ClientLimitLayer::quota): a token bucket for all groups together |
//! | `RateLimit` and `RateLimit-Policy`, and older fields | [`Pace`] plans by what is left. [`ServerLimits`] lists the fields |
//! | `Retry-After` of a 429 or 503 | the group sends nothing until then. Then one request tries, and the others wait for its answer (the response) |
//! | 429 without fields that say what is left | the group's rate is found by trying: it is lowered, and grows a little with each request that is not refused |
//! | no answer yet | four requests at once, and then 10 a second, until the first answer says what the limits are |
//!
//! reqwest follows redirects by itself. What the last server answers then counts for the one that
//! was asked. `redirect::Policy::none()` of reqwest leaves redirects to the caller.
//!
//! Answers that name a partition (`pk`) share the state of its limits with all groups of their
//! origin that name it. Several clients that share a server's limit, in one process or many, need
//! nothing to agree on it: see [`Pace`]. Limits on concurrent requests (`qu`) are ignored.
//!
//! A request waits at most [`max_wait`](ClientLimitLayer::max_wait), 30 seconds unless set
//! otherwise. If it would certainly have to wait longer, it fails at once with
//! [`ClientLimitError::WaitTooLong`]. No server stops a group for longer than
//! [`max_hold`](ClientLimitLayer::max_hold), 5 minutes: then one request tries again.
//!
//! A request that is dropped while it waits leaves the line. It has taken nothing, and a permit of
//! your quota that was reserved for it comes back. If the request that tries after a hold is
//! dropped, or fails, the next one tries.
//!
//! A 429 without a wait, or with `Retry-After: 0`, holds its group for a backoff, which doubles
//! with each such answer in a row up to 10 seconds.
//!
//! # Several clients on one key
//!
//! Each client steers what is left to a small reserve, so they share the limit without knowing of
//! each other. In simulations with many seeds, eight clients that always have more to send use at
//! least 96 % of a limit of 100 or 1000 a second, and at most 0.2 % of the answers are 429. With 10
//! a second this holds for buckets and for windows of a minute. Windows of a second with 10 permits
//! are too small for eight clients: they use about 85 %, with 2 to 5 % of 429. The example
//! `eight_clients` shows it.
//!
//! | a server | what the layer does |
//! |---|---|
//! | says nothing of limits | sends at your own quota |
//! | says a window of whole seconds that is longer than the real one | begins slowly, and finds the rate |
//! | has windows that begin with the first request | uses about 80 to 90 %, with 2 to 3 % of 429 |
//! | limits concurrent requests (`qu="concurrent-requests"`) | does not plan for it: use tower's `ConcurrencyLimit` outside of the layer |
//!
//! # What is sent again
//!
//! | the attempt | is sent again | after |
//! |---|---|---|
//! | 429 after a redirect | if the server may get it twice | the same as after another 429 |
//! | another 429 | always: the server has not begun with it | `Retry-After`; without it until a limit that is used up resets, or the group's backoff |
//! | 503 | if the server may get it twice | `Retry-After`, or a backoff |
//! | an error of the inner service | if the server may get it twice | a backoff |
//!
//! A server may get a request twice if its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE, if
//! it has an `Idempotency-Key`, or if [`retry_method`](ClientLimitLayer::retry_method) says so. The
//! backoff is at most 100 ms, doubles with each attempt, and is drawn at random from its upper
//! half.
//!
//! A request is sent at most [three times](ClientLimitLayer::max_attempts). By the [`RetryBudget`],
//! retries are at most 20 % of the requests plus 10 in any second. If the wait would be longer than
//! `max_wait`, if the budget is used up, or if the request [can't be copied](CopyRequest), the
//! caller gets the answer or the error.
//!
//! # Memory
//!
//! [`max_groups`](ClientLimitLayer::max_groups) groups are remembered, each with at most 64 limits.
//! A limit is forgotten if 32 answers in a row omit it. If there are too many groups, the least
//! recently used one is forgotten, but none with waiting requests. Only hashes of credentials are
//! kept, made with a random key.
//!
//! The state is behind mutexes that are held for a few lookups, and never while a request waits.
//! Requests wait on tokio's timer.

mod budget;
mod clock;
mod copy;
mod error;
mod future;
mod group;
mod layer;
mod line;
mod memory;
mod message;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod pace;
mod quota;
mod retry;
mod server_limits;
mod service;
mod settings;
mod turn;

pub use budget::RetryBudget;
pub use copy::{CloneRequest, CopyRequest, NeverCopy};
pub use error::ClientLimitError;
pub use future::ClientFuture;
pub use layer::ClientLimitLayer;
pub use message::{ClientRequest, ClientResponse, RequestHead};
pub use pace::Pace;
pub use server_limits::{ServerLimit, ServerLimits, Unit};
pub use service::ClientLimit;

/// The README's example.
#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../README.md")]
struct Readme;
