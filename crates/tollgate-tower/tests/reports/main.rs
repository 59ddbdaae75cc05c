//! Counters of the crate `metrics`, by the name of the rule and never by key.

mod counters;
mod fallbacks;
mod handles;
mod requests;
mod tables;
