//! The parts of shuttle that models use. All its atomics are sequentially consistent, and its
//! fences do nothing.

pub(super) use shuttle::sync::atomic::AtomicU64;
#[cfg(feature = "wide")]
pub(super) use shuttle::sync::atomic::AtomicU128;
#[cfg(feature = "wide")]
pub(super) use shuttle::sync::atomic::fence;
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
pub(super) use shuttle::thread_local;

/// Returns no counter: shuttle interrupts loads as often as any other operation.
pub(super) const fn load_counter() -> Option<AtomicU64> {
    None
}

/// A sleeping thread, with shuttle's `park`. Timed sleeps end at once.
pub(crate) struct Sleeper(shuttle::thread::Thread);

impl Sleeper {
    pub(crate) fn here() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(shuttle::thread::current()))
    }

    pub(crate) fn sleep(&self) {
        shuttle::thread::park();
    }

    pub(crate) fn sleep_at_most(&self, _long: core::time::Duration) {}
}

impl std::task::Wake for Sleeper {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}
