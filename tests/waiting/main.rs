//! Limits over time: waiting, reservations, concurrency and changing quotas.

#![allow(clippy::disallowed_types, reason = "no model runs these tests")]

mod adjustable;
mod concurrency;
mod counted;
mod support;
mod wait;
