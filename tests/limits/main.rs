//! The limiters and their parts, on one thread and on several.
#![allow(clippy::disallowed_types, reason = "no model runs these tests")]

mod algorithm;
mod asked_again;
mod clock;
mod constructors;
mod counted;
#[path = "../support/deadline.rs"]
mod deadline;
mod errors;
mod layers;
mod leases;
mod limiter;
mod multiword;
mod outcome;
mod quota;
mod sharded;
mod snapshot;
mod support;
mod whole_burst;
