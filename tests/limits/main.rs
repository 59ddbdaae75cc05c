//! The limiters and their parts, one thread at a time and on real threads.
#![cfg(feature = "std")]

mod algorithm;
mod bad_input;
mod clock;
#[path = "../support/deadline.rs"]
mod deadline;
mod layers;
mod limiter;
mod many;
mod nothing_stranded;
mod outcome;
mod parallel;
mod quota;
mod support;
