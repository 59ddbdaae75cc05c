//! Rate limits in HTTP: answers, `RateLimit` fields, their parsers, and client addresses.

mod address;
mod answers;
#[cfg(feature = "policy")]
mod decided;
mod facts;
mod limit_state;
pub mod proxy;
mod refusal;
mod server_limits;

pub use address::{AddressError, AddressPrefix, ClientAddress};
pub use answers::{Answers, Body, Fields};
#[cfg(feature = "policy")]
pub use decided::LimitStates;
#[cfg(feature = "policy")]
pub use facts::AnswerFacts;
pub use facts::{PathForm, RequestFacts};
pub use limit_state::{LimitState, Unit};
pub use refusal::{Cause, Refusal};
pub use server_limits::{ServerLimit, ServerLimits};
