//! The guide FROM_TOWER_GOVERNOR.md of tollgate-tower: each call of the page, and each change that
//! it tells of, with the same requests through both layers.
//!
//! tower_governor has no clock for tests. Its periods here are so long that none of them passes
//! during a test, or what is asserted does not depend on them.

mod addresses;
mod answers;
mod keys;
mod memory;
mod page;
mod programs;
mod rates;
mod several;
mod support;
