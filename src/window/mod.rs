//! Windows that need more memory than a word: [`SlottedWindow`] and [`SlidingLog`].

mod log;
mod slotted;

pub use log::{MAX_LOG, SlidingLog};
pub use slotted::{MAX_SLOTS, SlottedWindow};
