//! How a policy decides about a request: which rules apply, what they ask, and the answer.

mod acquire;
mod acquire_async;
mod asked;
mod asks;
mod collect;
mod decision;
mod finish_async;
mod many;
mod remotes;
mod state;
mod visits;

pub(crate) use acquire::decide;
pub(crate) use acquire_async::decide_async;
pub use asked::Asked;
pub(crate) use asks::Asks;
pub use decision::{Decision, Reason};
