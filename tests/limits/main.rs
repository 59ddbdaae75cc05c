//! The limiters and their parts, one thread at a time and on real threads.
#![cfg(feature = "std")]

mod bad_input;
mod carry;
mod clocks;
mod exact;
mod known_failures;
mod layers;
mod many;
mod nothing_stranded;
mod parallel;
mod statics;
mod support;
mod windows;
