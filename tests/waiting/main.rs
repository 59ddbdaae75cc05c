//! Limits over time: waiting, reservations, how many are inside, smooth rates, changing quotas.

mod adjustable;
mod concurrency;
mod smooth;
mod support;
mod wait;
