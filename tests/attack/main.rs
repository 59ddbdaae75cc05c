//! What breaks of waiting.
#![cfg(all(feature = "wait", feature = "tokio", feature = "futures"))]
mod adapters;
mod edges;
mod search;
