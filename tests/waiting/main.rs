//! Waiting: in the order of arrival, never early, one sleep each; and whoever gives up loses nothing for others.

#![cfg(feature = "wait")]

mod account;
mod blocking;
mod counting;
mod futures_wait;
mod storms;
mod throttles;
