//! Limits over time: waiting, reservations, concurrency and changing quotas.

mod adjustable;
mod compose;
mod concurrency;
mod counted;
mod support;
mod wait;
