//! What decisions allocate, and files. This binary has an allocator of its own, which counts.

#[path = "../../../../tests/support/allocations.rs"]
mod allocations;

mod decisions;
#[cfg(feature = "yaml")]
mod yaml_bombs;
