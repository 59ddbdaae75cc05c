//! The limiters and their parts, one thread at a time and on real threads.
#![cfg(feature = "std")]

mod algorithm;
mod asked_again;
mod clock;
mod constructors;
mod counted;
#[path = "../support/deadline.rs"]
mod deadline;
mod layers;
mod leases;
mod limiter;
mod multiword;
mod outcome;
mod quota;
mod sharded;
mod snapshot;
mod support;
