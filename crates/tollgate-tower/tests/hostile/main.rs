//! Hostile requests: thousands of header lines, values of a megabyte, absurd paths and hosts, bytes
//! that are no text, malformed addresses. Each gets a decision or a clear refusal, and no memory is
//! kept.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

mod memory;
#[path = "../support/random.rs"]
mod random;
mod requests;
mod tests;
