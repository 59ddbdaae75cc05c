//! A waker that remembers whether it was called.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// Whether a waiter was woken. Loom does not track it.
#[derive(Debug, Default)]
pub struct WakeFlag(Mutex<bool>);

impl WakeFlag {
    /// Returns whether it was woken.
    pub fn is_set(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it was woken since the last call.
    pub fn take(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}
