//! The permits that the callers in a line wait for: their sum, and its bound.
//!
//! A caller adds its permits before it stands in line, and removes them after it has left. So the
//! sum never exceeds the bound, and counts each caller in line.

use super::denied::AllDenied;
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
        if !inject_fault!(KeepsItsPermitsInLine) {
            // ORDERING: Relaxed. It publishes nothing: it only counts.
            self.waiting.sum.fetch_sub(self.n, Relaxed);
        }
    }
}
