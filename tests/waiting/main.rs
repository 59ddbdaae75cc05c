//! Waiting: in the order of arrival, never early, one sleep each; and whoever gives up accounts for every permit.

#![cfg(feature = "wait")]

mod account;
#[cfg(all(feature = "futures", feature = "tokio"))]
mod adapters;
mod blocking;
mod counting;
#[cfg(all(feature = "futures", feature = "tokio"))]
mod edges;
mod futures_wait;
mod pacer;
mod storms;
mod throttles;
