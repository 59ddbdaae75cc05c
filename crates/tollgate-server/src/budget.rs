//! The memory that bodies and answers may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How many bytes the bodies of all connections take, and the answers that clients have not taken.
/// One connection has many requests in HTTP/2, so a limit for each is not enough.
#[derive(Debug)]
pub(crate) struct Budget {
    most: usize,
    used: AtomicUsize,
    refused: AtomicU64,
}

impl Budget {
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            most,
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Begins a share of no bytes.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Returns how often there were not enough bytes.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

/// Bytes of a budget. They return to it when the share is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Takes more bytes, if that many are left.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let Budget {
            most,
            used,
            refused,
        } = &*self.budget;
        let before = used.fetch_add(bytes, Relaxed);
        // Two that come at once near the end may both be refused.
        if before.saturating_add(bytes) > *most {
            used.fetch_sub(bytes, Relaxed);
            refused.fetch_add(1, Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_return_to_the_budget() {
        let budget = Arc::new(Budget::new(10));
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.grow(4) && one.grow(2) && other.grow(4));
        assert!(!other.grow(1));
        assert_eq!((budget.used(), budget.refused()), (10, 1));
        drop(one);
        assert_eq!(budget.used(), 4);
        assert!(other.grow(6) && !other.grow(usize::MAX));
        drop(other);
        assert_eq!((budget.used(), budget.refused()), (0, 2));
    }
}
