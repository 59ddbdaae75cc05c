//! Reports: counters of the crate `metrics` and events of the crate `tracing`, by the name of the
//! rule and never by key.

mod counters;
mod events;
mod requests;
