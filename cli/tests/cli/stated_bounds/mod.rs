//! The bounds that docs/ALGORITHMS.md derives are kept, and those that it calls tight are reached:
//! random requests aimed at the moments that matter, and every interval between grants looked at.

mod drive;
mod kept;
mod promise;
mod reached;
