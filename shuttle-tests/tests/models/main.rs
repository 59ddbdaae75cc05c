//! The shuttle models, one module for each protocol.

#![cfg(tollgate_shuttle)]

mod adjust;
mod cell;
mod compose;
mod concurrency;
mod keyed;
mod keyed_quota;
mod keyed_turnover;
/// The same verbs that all tests use.
#[path = "../../../tests/support/verbs.rs"]
mod verbs;
