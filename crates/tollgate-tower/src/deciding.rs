//! Decisions that stores make elsewhere.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A decision that its store can undo.
pub trait Undo: Send + 'static {
    /// Gives back what the decision took, as far as the store answers.
    fn undo(self) -> impl Future<Output = ()> + Send;
}

/// A decision that stores are making. If it is dropped, they finish it, and it is undone.
pub struct Deciding<T: Undo> {
    /// The decision goes over the network, beside which the box costs nothing.
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    has_begun: bool,
}

impl<T: Undo> Deciding<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            future: Some(Box::pin(future)),
            has_begun: false,
        }
    }
}

impl<T: Undo> Future for Deciding<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        // If it panics, it is gone.
        let Some(mut future) = self.future.take() else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<T: Undo> Drop for Deciding<T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take().filter(|_| self.has_begun) {
            spawn(async move { future.await.undo().await });
        }
    }
}

impl<T: Undo> fmt::Debug for Deciding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deciding").field(&self.has_begun).finish()
    }
}

/// Runs a future in a task of its own. Without a runtime it does not run, and nothing is settled.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(future);
    }
}
