//! Limits over time: waiting, reservations, concurrency, smooth rates and changing quotas.

mod adjustable;
mod compose;
mod concurrency;
mod counted;
mod smooth;
mod support;
mod wait;
