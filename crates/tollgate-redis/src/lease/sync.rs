//! The atomics of a pool. A model in `loom-tests` puts loom's in their place.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
