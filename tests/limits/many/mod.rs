//! What keeps more than one word answers exactly what its definition says, one thread at a time: a million
//! random operations of each and more, every verb and every returned value, compared with models that
//! remember what was taken when. Ticks go back, stand still, hit the edges, leap over many windows and come
//! from beyond the end of the clock. There is no difference at all.

mod known_failures;
mod leases;
mod lent;
mod log;
mod parts;
mod sharded;
mod shardings;
mod slotted;
mod sums;
mod whole;
mod windows;

/// So many operations of each. A build that checks overflow as well does a share of them, so that the tests
/// stay quick.
const OPERATIONS: u64 = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};
