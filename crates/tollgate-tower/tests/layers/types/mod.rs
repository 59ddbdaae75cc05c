//! What the types of layers ask of a program, and what their functions see.

mod boxed;
mod inferred;
mod not_clone;
mod plans;
mod shadow;
mod taken;
