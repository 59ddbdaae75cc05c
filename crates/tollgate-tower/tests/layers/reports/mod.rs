//! Counters of the crate `metrics`, by the name of the rule and never by key. And what the pages
//! say of metrics and tests.

mod counters;
mod fallbacks;
mod handles;
mod pages;
mod requests;
mod tables;
