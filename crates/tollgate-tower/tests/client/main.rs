//! The client layer.

mod fleet;
mod sharing;
