//! HTTP rate limits for servers: answers (responses), `RateLimit` fields (headers), and addresses.
//!
//! | you want to | use |
//! |---|---|
//! | write the answer of a granted or refused request | [`Answers`], [`Fields`], [`RefusalBody`] |
//! | say what a limit answered | [`LimitState`], and `LimitStates` for a policy (feature `policy`) |
//! | say why a request is refused | [`Refusal`], [`Cause`] |
//! | read what a server says of its limits | the crate `tollgate-client` |
//! | find the client's address | [`ClientAddress`], [`AddressPrefix`] |
//! | supply a request's facts (attributes) | [`RequestFacts`], [`PathForm`] |
//! | explain a request that an operator describes | `DescribedRequest` (feature `policy`) |
//!
//! The [guide] of the crate `tollgate-tower`, whose layers use this crate, explains the answers,
//! the fields, and addresses behind a proxy.
//!
//! [guide]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html

mod address;
mod answers;
#[cfg(feature = "policy")]
mod decided;
#[cfg(feature = "policy")]
mod described;
mod facts;
mod limit_state;
mod refusal;

pub use address::{AddressError, AddressPrefix, ClientAddress};
pub use answers::{Answers, FieldValues, Fields, RefusalBody};
#[cfg(feature = "policy")]
pub use decided::LimitStates;
#[cfg(feature = "policy")]
pub use described::{DescribedRequest, UnknownFacts};
#[cfg(feature = "policy")]
pub use facts::AnswerFacts;
pub use facts::{Ambiguous, PathForm, RequestFacts};
pub use limit_state::{LimitState, Unit};
pub use refusal::{Cause, Refusal};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
