//! The names that most models use.

pub use std::sync::{Arc, Mutex, PoisonError};
pub use std::time::Duration;

pub use tollgate::clock::NoClock;
pub use tollgate::keyed::Overflow;
pub use tollgate::sync::model::Fault;
pub use tollgate::{Concurrency, Denied, Granted, Keep, Limiter, Quota, Tick, TokenBucket};

pub use crate::{
    Ledger, Promise, Table, WRONG, Watched, below, check_table, model, on_threads, one_of, reached,
    source, stops, stored, table, with_faults,
};
