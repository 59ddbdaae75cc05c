//! The names that most models use.

pub use std::sync::{Arc, Mutex, PoisonError};
pub use std::time::Duration;

pub use tollgate::clock::NoClock;
pub use tollgate::keyed::Overflow;
pub use tollgate::sync::model::{Defect, Fault};
pub use tollgate::{Concurrency, Denied, Granted, Keep, Limiter, Quota, Tick, TokenBucket};

pub use crate::{
    DECIDE, Ledger, MIGRATE, Promise, RELEASE, Table, WRONG, Watched, below, check_table, model,
    on_threads, one_of, reached, stops, stored, table, with_faults, wrong_at,
};
