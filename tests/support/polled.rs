//! Futures that are polled by hand, and what wakes them.

#![allow(dead_code, reason = "each binary uses some of these")]

use std::future::Ready;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tollgate::ManualClock;
use tollgate::clock::Timer;

pub(crate) use std::future::Future;
pub(crate) use std::pin::{Pin, pin};
pub(crate) use std::task::Poll;

/// A waker that counts its wake-ups.
#[derive(Default)]
pub(crate) struct WakeCounter(AtomicU64);

impl WakeCounter {
    pub(crate) fn wakes(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A waker that panics.
pub(crate) struct PanicsWhenWoken;

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        resume_unwind(Box::new("a waker's own panic"));
    }
}

pub(crate) fn poll_by<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

pub(crate) fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    poll_by(future, Waker::noop())
}

/// Returns the output of a future that is ready.
#[track_caller]
pub(crate) fn ready<F: Future>(future: Pin<&mut F>) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Polls a future once. It has to wait.
#[track_caller]
pub(crate) fn that_waits<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(poll(future.as_mut()).is_pending(), "it does not wait");
    future
}

/// A future that is polled by hand.
pub(crate) struct Polled<'f, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'f>>,
    wakes: Arc<WakeCounter>,
    /// The number of wake-ups before the latest poll.
    seen: u64,
}

impl<'f, T> Polled<'f, T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'f) -> Self {
        Self {
            future: Box::pin(future),
            wakes: Arc::default(),
            seen: 0,
        }
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.seen = self.wakes.wakes();
        poll_by(self.future.as_mut(), &self.wakes.clone().into())
    }

    pub(crate) fn was_woken(&self) -> bool {
        self.wakes.wakes() > self.seen
    }
}

/// Runs a future. Whenever it waits, the clock moves to the next tick for which a task sleeps.
pub(crate) fn run<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(done) = poll(future.as_mut()) {
            return done;
        }
        clock.set(clock.next_sleeper().expect("it waits for the clock"));
    }
    panic!("woken a hundred thousand times without progress");
}

/// A timer that returns at once. Such a timer must not hold the executor forever.
#[derive(Default)]
pub(crate) struct AtOnce(AtomicU64);

impl Timer for AtOnce {
    type Sleep = Ready<()>;

    fn sleep(&self, _: Duration) -> Ready<()> {
        let sleeps = self.0.fetch_add(1, SeqCst);
        assert!(sleeps < 1000, "too many sleeps in one poll");
        std::future::ready(())
    }
}
