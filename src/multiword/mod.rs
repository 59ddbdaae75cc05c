//! Windows that need more memory than a word: [`SlottedWindow`] and [`SlidingLog`].

mod log;
mod slotted;
mod verbs;

pub use log::SlidingLog;
pub use slotted::SlottedWindow;
