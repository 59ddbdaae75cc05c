//! Longer runs of tollgate's protocols than loom can visit: more threads, more steps, on random
//! schedules.
//!
//! Loom visits what small models can do, all of it or nearly; `loom-tests/` has them. A fault that
//! needs four threads, or two take-overs and a late owner, is out of its reach. Here threads do
//! what is drawn for them, shuttle draws who moves at each operation on an atomic, and what must
//! hold of all that was answered is computed without the crate. What shuttle can't see: all its
//! atomics are sequentially consistent, so an ordering that is too weak is loom's to find.
//!
//! Every run takes other seeds, and who fails says its own: `SHUTTLE_RANDOM_SEED` brings that one
//! again.
//!
//! Nothing is here without `--cfg tollgate_shuttle`; `scripts/shuttle` sets it.

#![cfg(tollgate_shuttle)]

mod draw;
mod faults;
mod promise;
mod run;
mod tables;
mod threads;
/// The models of loom have the same.
#[path = "../../loom-tests/src/total.rs"]
pub mod total;
mod watched;

pub use draw::{below, one_in, one_of};
pub use faults::{stored, with_fault};
pub use promise::Promise;
pub use run::{Body, model, reached};
pub use tables::{Books, Standing, Table, check_table, table};
pub use threads::{Actor, act, actor};
pub use watched::{WRONG, Watched};
