//! The crate's only source of atomics.
//!
//! The rest of the crate takes its atomics from here. The build decides what they are:
//!
//! - normally the processor's atomics, or those of `portable-atomic` if the processor has no 64-bit
//!   ones;
//! - loom's with `--cfg tollgate_loom` and the feature `loom`;
//! - shuttle's with `--cfg tollgate_shuttle` and the feature `shuttle`.
//!
//! A comment `Model: cell::name` names the test that fails if an operation's ordering is weaker, in
//! `loom-tests/tests/models/cell.rs`.
//!
//! They are `type` aliases and not re-exports, so that clippy's ban on raw atomics applies to
//! direct uses only.

#![allow(clippy::disallowed_types)]

pub(crate) use core::sync::atomic::Ordering;

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

/// The 64-bit atomic that holds every word of this crate.
pub(crate) type AtomicU64 = source::AtomicU64;

/// A counter that no decision depends on, so models do not track it.
#[cfg(feature = "std")]
pub(crate) type Count = source::Count;

/// A 128-bit atomic, for two words that change together.
#[cfg(feature = "wide")]
pub(crate) type AtomicU128 = source::AtomicU128;

/// A fence between accesses to several atomics.
#[cfg(feature = "wide")]
pub(crate) use source::fence;

/// Stops the compiler, but not the processor, from moving accesses across it.
#[cfg(feature = "wide")]
pub(crate) use core::sync::atomic::compiler_fence;

/// A lock, used only where a thread has to wait anyway.
#[cfg(feature = "std")]
pub(crate) type Mutex<T> = source::Mutex<T>;
#[cfg(feature = "std")]
pub(crate) type MutexGuard<'a, T> = source::MutexGuard<'a, T>;

/// A lock that serializes threads that change parameters. Decisions never take it, so they continue
/// even if its holder stops forever.
#[cfg(feature = "keyed")]
pub(crate) type SettersMutex<T> = source::SettersMutex<T>;

/// A thread that sleeps until it is woken.
#[cfg(feature = "std")]
pub(crate) use source::Sleeper;

/// The wait of a thread after a failed exchange. A model does not wait: that would not add any
/// interleaving.
pub(crate) use source::Backoff;

/// Injects a fault in models. With one argument, it is true if the model asks for that fault. With
/// two expressions, it evaluates the wrong one if the model asks for the fault, and the right one
/// otherwise. In other builds only the right code is compiled.
#[allow(unused_imports, reason = "unused without std")]
pub(crate) use source::inject_fault;

/// Defines a function that is `const` in a normal build and not `const` under loom, whose atomics
/// can be made only while a model runs.
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
pub(crate) use memory::{Buckets, IS_MODEL, SLOTS, prefetch};
