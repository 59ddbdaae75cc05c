//! The names that most adapters use.

pub use std::sync::Arc;
pub use std::time::Duration;

pub use tollgate::algorithm::ChangeQuota;
pub use tollgate::{
    Concurrency, Denied, FixedWindow, Gcra, Granted, LeakyBucket, ManualClock, Quota, SlidingLog,
    SlidingWindow, Tick, TokenBucket,
};

pub use crate::{
    Class, Comparison, Direction, Fields, Header, Malformed, Op, Replay, ReplayedLimiter, Value,
    before, in_nanos,
};
