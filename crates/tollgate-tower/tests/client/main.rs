//! The client layer.

mod budget;
mod fleet;
mod idle;
mod sharing;
