//! A layer for HTTP clients: it paces requests by your own quota and by what servers say, and sends
//! some of them again.
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tollgate::Quota;
//! use tollgate_tower::client::ClientLimitLayer;
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
//! # When a request goes
//!
//! Requests are put into *groups*: a group is one origin (scheme, host and port) and one credential
//! (the field `Authorization`, or what [`group_by`](ClientLimitLayer::group_by) returns). In a
//! group, requests go in the order of their arrival. A request goes when all of these let it:
//!
//! | | |
//! |---|---|
//! | your own quota | [`quota`](ClientLimitLayer::quota): a token bucket for all groups together |
//! | `RateLimit` and `RateLimit-Policy`, and older fields | [`Pace`] plans by what is left. `tollgate_http::ServerLimits` lists the fields |
//! | `Retry-After` of a 429 or 503 | the group sends nothing until then, and then not all at once |
//! | 429 without fields that say what is left | the group's rate is halved, and grows by 5 % a second until it has not been refused for a minute |
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
//! otherwise. If it is known that it would have to wait longer, it fails at once with
//! [`ClientError::WaitTooLong`]. No server stops a group for longer than
//! [`max_hold`](ClientLimitLayer::max_hold), 5 minutes: then one request tries again.
//!
//! A request that is dropped while it waits leaves the line. It has taken nothing, and a permit of
//! your quota that was reserved for it comes back.
//!
//! # What is sent again
//!
//! | the attempt | is sent again | after |
//! |---|---|---|
//! | 429 after a redirect | if the server may get it twice | the same as after another 429 |
//! | another 429 | always: the server has not begun with it | `Retry-After`; without it until a limit that is used up resets, or a backoff |
//! | 503 | if the server may get it twice | `Retry-After`, or a backoff |
//! | an error of the inner service | if the server may get it twice | a backoff |
//!
//! A server may get a request twice if its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE, if
//! it has an `Idempotency-Key`, or if [`retry_method`](ClientLimitLayer::retry_method) says so. The
//! backoff is at most 100 ms, doubles with each attempt, and is drawn at random from its upper
//! half.
//!
//! A request is sent at most [three times](ClientLimitLayer::max_attempts), and only while the
//! [`RetryBudget`] lasts. If the wait would be longer than `max_wait`, if the budget is used up, or
//! if the request [can't be copied](CopyRequest), the caller gets the answer or the error.
//!
//! # Memory
//!
//! [`max_groups`](ClientLimitLayer::max_groups) groups are remembered, each with at most 64 limits.
//! A limit that 32 answers in a row do not name is forgotten, and so is the group that was used
//! least recently if there are too many. Credentials are not kept, only their hashes, which a
//! random key makes.
//!
//! The state is behind mutexes that are held for a few lookups, and never while a request waits.
//! Requests wait on tokio's timer.

mod blind;
mod budget;
mod clock;
mod copy;
mod error;
mod future;
mod group;
mod layer;
mod memory;
mod message;
mod pace;
mod quota;
mod retry;
mod service;
mod settings;
mod turn;

pub use budget::RetryBudget;
pub use copy::{CloneRequest, CopyRequest, NeverCopy};
pub use error::ClientError;
pub use future::ClientFuture;
pub use layer::ClientLimitLayer;
pub use message::{ClientRequest, ClientResponse, RequestHead};
pub use pace::Pace;
pub use service::ClientLimit;
