//! The permits that the callers in a line wait for, with their sum and its bound.
//!
//! A caller adds its permits before it stands in line, and removes them after it has left. So the
//! sum never exceeds the bound, and counts each caller in line. It removes them before the next
//! caller wakes, which finds room if it comes again.

use core::future::poll_fn;

use super::denied::AllDenied;
use crate::concurrency::limiter::Concurrency;
use crate::concurrency::queue::QueueTicket;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, inject_fault};

#[derive(Debug)]
pub(super) struct WaitingPermits {
    sum: AtomicU64,
    max: u64,
}

/// The permits of one caller. Dropping it removes them from the sum.
#[must_use = "dropping it removes the permits"]
#[derive(Debug)]
pub(super) struct CallersPermits<'l> {
    waiting: &'l WaitingPermits,
    n: u64,
}

impl WaitingPermits {
    pub(super) fn bounded(max: u64) -> Self {
        let sum = AtomicU64::new(0);
        Self { sum, max }
    }

    pub(super) fn sum(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing, and pairs with nothing. The value is only
        // reported, or an exchange checks it.
        self.sum.load(Relaxed)
    }

    /// Adds the permits of a caller, unless the sum would exceed the bound.
    pub(super) fn add(&self, n: u64) -> Result<CallersPermits<'_>, AllDenied> {
        let mut sum = self.sum();
        loop {
            if n > self.max.saturating_sub(sum) {
                return Err(AllDenied::LineFull {
                    requested: n,
                    waiting_permits: sum,
                    max_waiting_permits: self.max,
                });
            }
            // ORDERING: Relaxed. It publishes nothing: it only counts.
            // Model: line::a_line_never_holds_more_than_its_bound, stored
            let added = self
                .sum
                .compare_exchange_weak(sum, sum.wrapping_add(n), Relaxed, Relaxed);
            match added {
                Ok(_) => return Ok(CallersPermits { waiting: self, n }),
                Err(seen) => sum = seen,
            }
        }
    }
}

impl Drop for CallersPermits<'_> {
    fn drop(&mut self) {
        let leaves = !inject_fault!(KeepsItsPermitsInLine); // FAULT
        if leaves {
            // ORDERING: Relaxed. It publishes nothing: it only counts.
            self.waiting.sum.fetch_sub(self.n, Relaxed);
        }
    }
}

/// A caller that stands in line, or is the first: inside a `Concurrency` of 1. Dropping it leaves.
pub(super) struct PlaceInLine<'l> {
    turns: &'l Concurrency,
    ticket: Option<QueueTicket>,
    is_first: bool,
    permits: Option<CallersPermits<'l>>,
}

impl<'l> PlaceInLine<'l> {
    /// Stands in line until the caller is the first.
    pub(super) async fn first(turns: &'l Concurrency, permits: CallersPermits<'l>) -> Self {
        let (ticket, permits) = (None, Some(permits));
        let mut place = Self {
            turns,
            ticket,
            is_first: false,
            permits,
        };
        let entered = poll_fn(|context| turns.ask(1, &mut place.ticket, context.waker())).await;
        // A weight of 1 is never refused.
        place.is_first = entered.is_ok();
        place
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        let is_first = self.is_first && !inject_fault!(PassesNoTurn); // FAULT
        let next = self.turns.quit(1, self.ticket.take(), is_first);
        // The next caller wakes last: it may come again at once, and its waker may panic.
        let in_time = !inject_fault!(WakesTooEarly); // FAULT
        if in_time {
            drop(self.permits.take());
        }
        drop(next);
    }
}
