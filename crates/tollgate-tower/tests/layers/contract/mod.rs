//! tower's contract: what a layer does with `poll_ready`, `call`, errors and bodies.

mod bodies;
mod clients;
mod errors;
mod paths;
mod picky;
mod pieces;
mod readiness;
mod secrets;
