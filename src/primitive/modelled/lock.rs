#[cfg(feature = "wide")]
use super::stop_if_due;

/// Loom's, which who stops for ever while holding it never gives back.
#[cfg(feature = "wide")]
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// Who has one holds it.
#[cfg(feature = "wide")]
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

#[cfg(feature = "wide")]
#[allow(missing_docs, reason = "as the standard library's")]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> std::sync::LockResult<MutexGuard<'_, T>> {
        stop_if_due();
        self.0
            .lock()
            .map(|guard| MutexGuard(Some(guard)))
            .map_err(|poisoned| {
                std::sync::PoisonError::new(MutexGuard(Some(poisoned.into_inner())))
            })
    }
}

#[cfg(feature = "wide")]
impl<T> core::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is held until it is dropped")
    }
}

#[cfg(feature = "wide")]
impl<T> core::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is held until it is dropped")
    }
}

#[cfg(feature = "wide")]
impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            core::mem::forget(self.0.take());
        }
    }
}

/// As the one of threads, with loom's notification. What is to last for a time has passed at once.
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
