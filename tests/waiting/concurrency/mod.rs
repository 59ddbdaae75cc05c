//! Never are more inside a [`Concurrency`] than its limit, waiters enter in the order in which they
//! began to wait, and nothing is lost.

mod model;
mod steps;
mod storms;
mod threads;
mod verbs;
mod wakers;

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tollgate::{Concurrency, Denied, Enter, Inside};

use crate::support::{Bell, poll_by};

type Gate = Arc<Concurrency>;
type Entered = Result<Inside<Gate>, Denied>;

fn gate(limit: u64) -> Gate {
    Arc::new(Concurrency::new(limit).expect("a limit"))
}

/// Asserts that no one is inside or waits, and that all of the limit can be had.
fn assert_empty(gate: &Gate) {
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    let all = gate.try_enter_n(gate.limit()).expect("there is room");
    assert!(gate.try_enter().is_err());
    drop(all);
}

/// One that waits, and is polled by hand.
struct Waiter {
    enter: Enter<Gate>,
    bell: Arc<Bell>,
}

impl Waiter {
    fn new(gate: &Gate, n: u64) -> Self {
        Self {
            enter: gate.enter_owned(n),
            bell: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<Entered> {
        poll_by(Pin::new(&mut self.enter), &self.bell.clone().into())
    }

    /// Stands in line.
    fn standing(gate: &Gate, n: u64) -> Self {
        let mut waiter = Self::new(gate, n);
        assert!(waiter.poll().is_pending());
        waiter
    }
}
