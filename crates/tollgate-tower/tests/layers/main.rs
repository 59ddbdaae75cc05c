//! What the types of layers ask of a program, and what their functions see.

mod boxed;
#[path = "../support/clock.rs"]
mod clock;
mod inferred;
mod not_clone;
mod plans;
mod shadow;
mod taken;
