//! A thread that sleeps until it is woken.

use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

/// A thread that sleeps until it is woken, or returns at once if it was woken since its last sleep.
/// It may also wake spuriously.
pub(crate) struct Sleeper(Thread);

impl Sleeper {
    pub(crate) fn here() -> Arc<Self> {
        Arc::new(Self(thread::current()))
    }

    pub(crate) fn sleep(&self) {
        thread::park();
    }

    pub(crate) fn sleep_at_most(&self, long: Duration) {
        thread::park_timeout(long);
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
