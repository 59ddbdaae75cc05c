//! Models of tollgate's protocols that are too long for loom: more threads and more steps, on
//! random schedules.
//!
//! Loom visits all or nearly all executions of the small models in `loom-tests/`. It cannot reach a
//! fault that needs four threads, or two takeovers of a slot and a late owner. Here each thread
//! makes random calls, and shuttle chooses which thread runs at each atomic operation. The checks
//! compute the expected answers without the crate's code. All of shuttle's atomics are sequentially
//! consistent, so only loom can find an ordering that is too weak.
//!
//! Every run takes the same schedules, unless `SHUTTLE_STREAM` names others. A model that fails
//! prints its seed, and `SHUTTLE_RANDOM_SEED` repeats that seed.
//!
//! The crate is empty without `--cfg tollgate_shuttle`, which `scripts/shuttle` sets.

#![cfg(tollgate_shuttle)]

mod draw;
mod faults;
pub mod prelude;
mod promise;
mod run;
/// The same operations that the loom models break.
#[path = "../../loom-tests/src/source.rs"]
pub mod source;
mod tables;
mod threads;
/// The same algorithm that the loom models use.
#[path = "../../loom-tests/src/total.rs"]
pub mod total;
mod watched;

pub use draw::{below, one_in, one_of};
pub use faults::{stored, with_faults};
pub use promise::Promise;
pub use run::{Body, model, reached};
pub use tables::{FrozenClock, Ledger, Table, check_table, table};
pub use threads::{on_threads, stops};
pub use watched::{WRONG, Watched};
