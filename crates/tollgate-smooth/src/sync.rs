//! The only file that names atomics: the processor's, those of `portable-atomic`, or those of
//! tollgate's models with `--cfg tollgate_loom` and the feature `loom`. They are `type` aliases, so
//! that clippy's ban on raw atomics applies to direct uses only.

#![allow(clippy::disallowed_types)]

pub(crate) use core::sync::atomic::Ordering;

#[cfg(all(tollgate_loom, feature = "loom"))]
use tollgate::sync::model as source;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod source {
    pub(super) use portable_atomic::{AtomicU64, AtomicU128};
    pub(super) use std::sync::Mutex as SettersMutex;
}

pub(crate) type AtomicU64 = source::AtomicU64;
pub(crate) type AtomicU128 = source::AtomicU128;
/// A lock that serializes threads that set rates. Decisions never take it.
pub(crate) type SettersMutex = source::SettersMutex<()>;

/// Is true if a model asks for this fault. With two expressions, evaluates the wrong one if a model
/// asks for the fault, and the right one otherwise. Other builds have the right code only.
#[cfg(all(tollgate_loom, feature = "loom"))]
macro_rules! inject_fault {
    ($fault:ident) => {
        tollgate::sync::model::Conditions::now().fault
            == Some(tollgate::sync::model::Fault::Of(stringify!($fault)))
    };
    ($fault:ident => $wrong:expr, else $right:expr) => {
        if inject_fault!($fault) {
            $wrong
        } else {
            $right
        }
    };
}
#[cfg(not(all(tollgate_loom, feature = "loom")))]
macro_rules! inject_fault {
    ($fault:ident) => {
        false
    };
    ($fault:ident => $wrong:expr, else $right:expr) => {
        $right
    };
}
pub(crate) use inject_fault;
