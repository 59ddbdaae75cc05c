use core::fmt;
use core::ops::Deref;

use super::Concurrency;

/// A place inside a [`Concurrency`]: dropping the guard leaves it.
///
/// `G` is the reference to the limiter: `&Concurrency`, or `Arc<Concurrency>` for a guard that
/// outlives the caller's scope.
///
/// ```
/// use tollgate::Concurrency;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Concurrency::new(2)?;
/// {
///     let _guard = limiter.try_enter_n(2)?;
///     assert_eq!(limiter.inside(), 2);
/// }
/// assert_eq!(limiter.inside(), 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the guard leaves the limiter"]
pub struct ConcurrencyGuard<G: Deref<Target = Concurrency>> {
    limiter: G,
    n: u64,
}

impl<G: Deref<Target = Concurrency>> ConcurrencyGuard<G> {
    #[inline]
    pub(super) fn new(limiter: G, n: u64) -> Self {
        Self { limiter, n }
    }

    /// Returns the guard's weight.
    #[inline]
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }
}

impl<G: Deref<Target = Concurrency>> Drop for ConcurrencyGuard<G> {
    #[inline]
    fn drop(&mut self) {
        self.limiter.leave(self.n);
    }
}

impl<G: Deref<Target = Concurrency>> fmt::Debug for ConcurrencyGuard<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyGuard")
            .field("n", &self.n)
            .finish()
    }
}
