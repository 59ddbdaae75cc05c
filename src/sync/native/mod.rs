//! The processor's atomics and the standard library's locks.

mod backoff;
#[cfg(feature = "std")]
mod sleeper;

pub(crate) use backoff::Backoff;

#[cfg(all(target_has_atomic = "64", not(tollgate_portable_atomic)))]
pub(super) type AtomicU64 = core::sync::atomic::AtomicU64;
#[cfg(any(not(target_has_atomic = "64"), tollgate_portable_atomic))]
pub(super) type AtomicU64 = portable_atomic::AtomicU64;

#[cfg(feature = "std")]
pub(super) type Count = AtomicU64;

#[cfg(feature = "wide")]
pub(super) type AtomicU128 = portable_atomic::AtomicU128;

#[cfg(feature = "wide")]
pub(crate) use core::sync::atomic::fence;

#[cfg(feature = "std")]
pub(super) type Mutex<T> = std::sync::Mutex<T>;
#[cfg(feature = "std")]
pub(super) type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;
#[cfg(feature = "keyed")]
pub(super) type SettersMutex<T> = std::sync::Mutex<T>;

#[cfg(feature = "std")]
pub(crate) use sleeper::Sleeper;

#[allow(unused_macros, reason = "unused without std")]
macro_rules! inject_fault {
    ($fault:ident) => {
        false
    };
    ($fault:ident => $wrong:expr, else $right:expr) => {
        $right
    };
}
#[allow(unused_imports, reason = "unused without std")]
pub(crate) use inject_fault;
