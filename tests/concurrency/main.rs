//! Never are more inside a [`Concurrency`](tollgate::Concurrency) than its limit, waiters come in the order in
//! which they began to wait, and nothing is lost: one step at a time beside a model, from many threads, and
//! in storms of waiters that give up, on two runtimes.

#![cfg(feature = "std")]

mod given;
mod model;
mod order;
mod panics;
#[path = "../common/random.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod random;
mod steps;
mod storms;
mod threads;
mod verbs;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tollgate::primitive::{AtomicU64, Ordering::Relaxed};
use tollgate::{Concurrency, Denied, Enter, Inside};

/// Counts how often it was woken.
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Somebody who waits, polled by hand.
struct Waiter {
    enter: Enter<Arc<Concurrency>>,
    bell: Arc<Bell>,
}

impl Waiter {
    fn new(gate: &Arc<Concurrency>, n: u64) -> Self {
        Self {
            enter: gate.enter_owned(n),
            bell: Arc::new(Bell(AtomicU64::new(0))),
        }
    }

    fn poll(&mut self) -> Poll<Result<Inside<Arc<Concurrency>>, Denied>> {
        let waker = Waker::from(Arc::clone(&self.bell));
        Pin::new(&mut self.enter).poll(&mut Context::from_waker(&waker))
    }

    /// Stands in line.
    fn standing(gate: &Arc<Concurrency>, n: u64) -> Self {
        let mut waiter = Self::new(gate, n);
        assert!(waiter.poll().is_pending());
        waiter
    }

    fn woken(&self) -> u64 {
        self.bell.0.load(Relaxed)
    }
}

fn gate(limit: u64) -> Arc<Concurrency> {
    Arc::new(Concurrency::new(limit).expect("a limit"))
}

fn busy(n: u64) -> Option<Denied> {
    Some(Denied::busy(n))
}
