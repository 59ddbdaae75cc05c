//! The current algorithm of all keys without their own.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::published::Published;

/// An algorithm that entries share. New keys change its reference count, so the count lies on
/// another cache line than the algorithm, which decisions read.
pub(super) type SharedAlgorithm<A> = Arc<CachePadded<A>>;

/// The algorithm of all keys without their own: the first one, until another one is published.
pub(super) struct Latest<A> {
    first: SharedAlgorithm<A>,
    later: Published<CachePadded<A>>,
}

impl<A> Latest<A> {
    pub(super) fn new(first: A) -> Self {
        Self {
            first: Arc::new(CachePadded::new(first)),
            later: Published::nothing(),
        }
    }

    pub(super) fn get(&self) -> SharedAlgorithm<A> {
        (self.later.get()).unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// Returns whether this is the current algorithm.
    pub(super) fn is(&self, algorithm: &SharedAlgorithm<A>) -> bool {
        self.later
            .read(|later| Arc::ptr_eq(later.unwrap_or(&self.first), algorithm))
    }

    pub(super) fn set(&self, algorithm: SharedAlgorithm<A>) {
        self.later.set(algorithm);
    }
}
