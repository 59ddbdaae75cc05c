//! A client layer that paces requests by what servers say.

mod pace;

pub use pace::Pace;
