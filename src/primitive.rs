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
    pub(super) type AtomicU64 = loom::sync::atomic::AtomicU64;
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
