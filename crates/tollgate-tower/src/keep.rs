//! Which services a layer can be put around.

/// Requests of a layer may wait, so its service has to be `Clone`.
#[derive(Debug, Clone, Copy)]
pub struct MayWait;

/// No request of a layer waits: see [`at_once`](crate::RateLimitLayer::at_once).
#[derive(Debug, Clone, Copy)]
pub struct AtOnce;

/// A service that a layer can be put around: each one, if no request waits, and otherwise each one
/// that is `Clone`.
pub trait Keep<M>: Sized {
    /// Returns the service that is ready, for a request that waits, and leaves a clone. `None` if
    /// no request waits.
    #[doc(hidden)]
    fn keep(&mut self) -> Option<Self>;
}

impl<S: Clone> Keep<MayWait> for S {
    fn keep(&mut self) -> Option<Self> {
        let clone = self.clone();
        Some(std::mem::replace(self, clone))
    }
}

impl<S> Keep<AtOnce> for S {
    fn keep(&mut self) -> Option<Self> {
        None
    }
}
