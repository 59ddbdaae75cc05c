//! Windows that need more than one word of memory: [`SlottedWindow`](crate::SlottedWindow) and
//! [`SlidingLog`](crate::SlidingLog).

pub(crate) mod log;
pub(crate) mod slotted;
mod verbs;
