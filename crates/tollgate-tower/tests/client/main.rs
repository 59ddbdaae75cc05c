//! The client layer.

mod fleet;
mod idle;
mod sharing;
