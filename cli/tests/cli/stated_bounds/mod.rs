//! The bounds that docs/WHICH_LIMITER.md derives hold, and those that it calls tight are reached.
//! Random requests aim at the critical moments, and every interval between grants is checked.

mod drive;
mod kept;
mod promise;
mod reached;
