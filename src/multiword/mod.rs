//! Windows that need more than one word of memory: [`SlottedWindow`] and [`SlidingLog`].

mod log;
mod slotted;
mod verbs;

pub use log::SlidingLog;
pub use slotted::SlottedWindow;
