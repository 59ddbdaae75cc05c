use super::{checker, stop_if_due};

/// The checker's lock, except that a holder that stops forever never releases it.
#[derive(Debug)]
pub struct SettersMutex<T>(checker::Mutex<T>);

/// The guard of a [`SettersMutex`].
#[derive(Debug)]
pub struct SettersGuard<'a, T>(Option<checker::MutexGuard<'a, T>>);

#[allow(missing_docs, reason = "as the standard library's")]
impl<T> SettersMutex<T> {
    pub fn new(value: T) -> Self {
        Self(checker::Mutex::new(value))
    }

    pub fn lock(&self) -> std::sync::LockResult<SettersGuard<'_, T>> {
        stop_if_due();
        self.0
            .lock()
            .map(|guard| SettersGuard(Some(guard)))
            .map_err(|poisoned| {
                std::sync::PoisonError::new(SettersGuard(Some(poisoned.into_inner())))
            })
    }
}

impl<T> core::ops::Deref for SettersGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("held until the guard is dropped")
    }
}

impl<T> core::ops::DerefMut for SettersGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held until the guard is dropped")
    }
}

impl<T> Drop for SettersGuard<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            core::mem::forget(self.0.take());
        }
    }
}
