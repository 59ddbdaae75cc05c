//! Limits for each key: the table of fixed size and its snapshots.

mod compose;
mod concurrency;
mod counted;
mod keyed;
mod metrics;
mod support;
