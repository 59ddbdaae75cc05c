//! Limits for each key: the table of fixed size and its snapshots.

#![allow(clippy::disallowed_types, reason = "no model runs these tests")]

mod concurrency;
mod counted;
mod keyed;
mod metrics;
mod support;
