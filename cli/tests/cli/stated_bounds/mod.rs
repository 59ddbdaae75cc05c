//! The bounds that docs/ALGORITHMS.md states are kept, and those that it calls tight are reached:
//! random requests aim at the moments that matter, and every interval between grants is checked.

mod drive;
mod kept;
mod promise;
mod reached;
