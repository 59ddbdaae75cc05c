//! Limits over time: waiting, reservations, how many are inside, smooth rates, changing quotas.

mod adjustable;
mod concurrency;
mod counted;
mod smooth;
mod support;
mod wait;
