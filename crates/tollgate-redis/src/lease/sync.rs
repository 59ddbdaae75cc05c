//! The atomics and the lock of a pool. A model in `loom-tests` puts loom's in their place.

pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
