//! The one place that knows where atomics come from.
//!
//! The rest of the crate, and code that wants to be model-checked together with it, takes its
//! atomics from here. A normal build gets the processor's (or `portable-atomic`'s, where the
//! processor has no 64-bit ones), a build with `--cfg tollgate_loom` and the feature `loom` gets
//! loom's. They are `type` aliases and not re-exports, so that clippy's ban on raw atomics is loud
//! at a direct use and quiet here.

#![allow(clippy::disallowed_types)]

pub use core::sync::atomic::Ordering;

#[cfg(all(tollgate_loom, feature = "loom"))]
mod source {
    pub(super) type AtomicU64 = super::modelled::AtomicU64;
}

#[cfg(all(
    not(all(tollgate_loom, feature = "loom")),
    any(not(target_has_atomic = "64"), tollgate_portable_atomic)
))]
mod source {
    pub(super) type AtomicU64 = portable_atomic::AtomicU64;
}

#[cfg(all(
    not(all(tollgate_loom, feature = "loom")),
    target_has_atomic = "64",
    not(tollgate_portable_atomic)
))]
mod source {
    pub(super) type AtomicU64 = core::sync::atomic::AtomicU64;
}

/// The 64-bit atomic that every word of this crate lives in.
///
/// Which type that is depends on the processor and on the build, so name it by this name only: what
/// stands behind it is not covered by the crate's version.
///
/// ```
/// use tollgate::primitive::{AtomicU64, Ordering};
///
/// let word = AtomicU64::new(7);
/// assert_eq!(word.load(Ordering::Relaxed), 7);
/// ```
pub type AtomicU64 = source::AtomicU64;

/// Two words that change together: `portable-atomic`'s, and a model's of it under loom.
#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type AtomicU128 = portable_atomic::AtomicU128;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub(crate) type AtomicU128 = modelled::AtomicU128;

/// A fence between accesses of several atomics.
#[cfg(all(
    any(feature = "map", feature = "wide"),
    not(all(tollgate_loom, feature = "loom"))
))]
pub(crate) use core::sync::atomic::fence;
#[cfg(all(
    any(feature = "map", feature = "wide"),
    tollgate_loom,
    feature = "loom"
))]
pub(crate) use modelled::fence;

/// A lock, for what is done only where somebody has to wait anyhow.
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type Mutex<T> = std::sync::Mutex<T>;
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;
#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) type Mutex<T> = loom::sync::Mutex<T>;
#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) use modelled::Sleeper;
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) use sleeper::Sleeper;

#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
mod sleeper;

/// What keeps apart those who change parameters, of whom one may be stopped for ever. No decision takes one.
#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type SettersMutex<T> = std::sync::Mutex<T>;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub(crate) type SettersMutex<T> = modelled::Mutex<T>;

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

/// Whether a model has asked for a mistake; or what is done then, and what is right. In any other build
/// only what is right is there.
#[cfg(not(all(tollgate_loom, feature = "loom")))]
#[allow(unused_macros, reason = "without std nobody asks")]
macro_rules! mistake {
    ($mistake:ident) => {
        false
    };
    ($mistake:ident => $wrong:expr, else $right:expr) => {
        $right
    };
}
#[cfg(all(tollgate_loom, feature = "loom"))]
macro_rules! mistake {
    ($mistake:ident) => {
        $crate::primitive::modelled::is_made($crate::primitive::modelled::Mistake::$mistake)
    };
    ($mistake:ident => $wrong:expr, else $right:expr) => {
        match mistake!($mistake) {
            true => $wrong,
            false => $right,
        }
    };
}
#[allow(unused_imports, reason = "without std nobody asks")]
pub(crate) use mistake;

#[cfg(all(tollgate_loom, feature = "loom"))]
pub mod modelled;
