//! What layers allocate, and what they keep. This binary has an allocator of its own, which counts.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

#[cfg(all(feature = "axum", feature = "policy"))]
mod hostile;
mod memory;
#[cfg(all(feature = "axum", feature = "policy"))]
#[path = "../support/random.rs"]
mod random;
mod requests;
