//! A waker that remembers whether it was called, and a future that is polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

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

/// A future that is polled by hand. It never blocks, so a forgotten one shows at the end. (A thread
/// that loom finds blocked cannot unwind.)
pub struct Polled<F: Future + ?Sized> {
    future: Pin<Box<F>>,
    /// Whether it was woken.
    pub wake_flag: Arc<WakeFlag>,
    /// What it returned, if it has ended.
    pub answer: Option<F::Output>,
}

impl<F: Future + ?Sized> Polled<F> {
    /// Polls the future once.
    pub fn new(future: Pin<Box<F>>) -> Self {
        let mut polled = Self {
            future,
            wake_flag: Arc::default(),
            answer: None,
        };
        polled.poll();
        polled
    }

    /// Polls it again.
    pub fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.wake_flag));
        if let Poll::Ready(answer) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.answer = Some(answer);
        }
    }
}
