//! The one place that knows where atomics come from.
//!
//! The rest of the crate, and code that wants to be model-checked together with it, takes its
//! atomics from here. A normal build gets the processor's (or `portable-atomic`'s, where the
//! processor has no 64-bit ones), a build with `--cfg tollgate_loom` and the feature `loom` gets
//! loom's, and one with `--cfg tollgate_shuttle` and the feature `shuttle` gets shuttle's. They are
//! `type` aliases and not re-exports, so that clippy's ban on raw atomics is loud at a direct use
//! and quiet here.

#![allow(clippy::disallowed_types)]

pub use core::sync::atomic::Ordering;

#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
pub mod model;
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
use model as source;

#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
mod native;
#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
use native as source;

/// The 64-bit atomic that every word of this crate lives in.
///
/// Which type that is depends on the processor and on the build, so name it by this name only: what
/// stands behind it is not covered by the crate's version.
///
/// ```
/// use tollgate::sync::{AtomicU64, Ordering};
///
/// let word = AtomicU64::new(7);
/// assert_eq!(word.load(Ordering::Relaxed), 7);
/// ```
pub type AtomicU64 = source::AtomicU64;

/// What only counts: nothing is decided by it, and no model needs to see it.
#[cfg(feature = "std")]
pub(crate) type Count = source::Count;

/// Two words that change together: `portable-atomic`'s, and a model's of it in models.
#[cfg(feature = "wide")]
pub(crate) type AtomicU128 = source::AtomicU128;

/// A fence between accesses of several atomics.
#[cfg(any(feature = "map", feature = "wide"))]
pub(crate) use source::fence;

/// Stops the compiler, and not the processor, from moving accesses across it.
#[cfg(feature = "wide")]
pub(crate) use core::sync::atomic::compiler_fence;

/// A lock, for what is done only where somebody has to wait anyhow.
#[cfg(feature = "std")]
pub(crate) type Mutex<T> = source::Mutex<T>;
#[cfg(feature = "std")]
pub(crate) type MutexGuard<'a, T> = source::MutexGuard<'a, T>;

/// What keeps apart those who change parameters, of whom one may be stopped for ever. No decision
/// takes one.
#[cfg(any(feature = "map", feature = "wide"))]
pub(crate) type SettersMutex<T> = source::SettersMutex<T>;

/// A thread that waits to be woken.
#[cfg(feature = "std")]
pub(crate) use source::Sleeper;

/// What a thread does after it lost an exchange to another one. In a model it does nothing: to wait
/// changes no order of events that would not be there without it.
pub(crate) use source::Backoff;

/// Whether a model has asked for a fault; or what is done then, and what is right. In any other
/// build only what is right is there.
#[allow(unused_imports, reason = "without std nobody asks")]
pub(crate) use source::inject_fault;

/// Defines a function that is `const` in a normal build and an ordinary one under loom, whose
/// atomics can only be made while a model runs.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(all(tollgate_loom, feature = "loom")))]
        $(#[$meta])* $vis const fn $($rest)*
        #[cfg(all(tollgate_loom, feature = "loom"))]
        $(#[$meta])* $vis fn $($rest)*
    };
}
pub(crate) use const_unless_loom;

#[cfg(feature = "wide")]
mod fast_pair;
#[cfg(feature = "keyed")]
mod memory;
#[cfg(feature = "wide")]
pub(crate) use fast_pair::FastPair;
#[cfg(feature = "keyed")]
pub(crate) use memory::{Bucket, Buckets, IS_MODEL, SLOTS, prefetch};
