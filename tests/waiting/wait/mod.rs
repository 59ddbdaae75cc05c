//! Waiting: in the order of arrival, never early, one sleep each.

mod any;
mod blocking;
mod blocking_bytes;
mod bytes;
mod futures;
mod jitter;
mod longest_wait;
mod paced;
mod reservations;
mod sleepers;
mod streams;
mod tokio_time;
