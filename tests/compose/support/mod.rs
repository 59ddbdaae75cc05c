//! Shared helpers of these tests: models, tables with fixed seeds, futures polled by hand, and
//! threads.

#[path = "../../support/deadline.rs"]
mod deadline;
#[path = "../../support/polled.rs"]
mod polled;
#[path = "../../support/prelude.rs"]
mod prelude;
#[path = "../../support/random.rs"]
mod random;
#[path = "../../support/reference/mod.rs"]
#[allow(dead_code, reason = "a composition asks the models less")]
pub(crate) mod reference;
#[path = "../../support/sleep.rs"]
mod sleep;
#[path = "../../support/storm.rs"]
pub(crate) mod storm;
#[path = "../../support/tables.rs"]
mod tables;
#[path = "../../support/threads.rs"]
mod threads;

pub(crate) use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

pub(crate) use tollgate::keyed::Overflow;
pub(crate) use tollgate::{Keep, Keyed};

pub(crate) use deadline::deadline;
pub(crate) use polled::*;
pub(crate) use prelude::*;
pub(crate) use random::Random;
pub(crate) use reference::FIFTY_YEARS;
pub(crate) use sleep::{HalfAsleep, Leaping};
pub(crate) use tables::*;
pub(crate) use threads::{on_threads, on_threads_while};
