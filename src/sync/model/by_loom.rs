//! The parts of loom that models use.

pub(super) use loom::sync::atomic::AtomicU64;
#[cfg(feature = "wide")]
pub(super) use loom::sync::atomic::fence;
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(super) use loom::thread_local;

use super::CONDITIONS;

/// Returns a counter that each load of an atomic increments first, if
/// [`Conditions::counts_loads`](super::Conditions::counts_loads) is set.
pub(super) fn load_counter() -> Option<AtomicU64> {
    CONDITIONS.get().counts_loads.then(|| AtomicU64::new(0))
}

/// A sleeping thread, with loom's notification. Timed sleeps end at once.
pub(crate) struct Sleeper(loom::sync::Notify);

impl Sleeper {
    pub(crate) fn here() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(loom::sync::Notify::new()))
    }

    pub(crate) fn sleep(&self) {
        self.0.wait();
    }

    pub(crate) fn sleep_at_most(&self, _long: core::time::Duration) {}
}

impl std::task::Wake for Sleeper {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}
