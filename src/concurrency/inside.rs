use core::fmt;
use core::ops::Deref;

use super::Concurrency;

/// Is inside a [`Concurrency`] until it is dropped.
///
/// `G` is how it knows the gate: `&Concurrency`, or `Arc<Concurrency>` for a guard that goes anywhere.
///
/// ```
/// use tollgate::Concurrency;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Concurrency::new(2)?;
/// {
///     let _guard = gate.try_enter_n(2)?;
///     assert_eq!(gate.inside(), 2);
/// }
/// assert_eq!(gate.inside(), 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "who drops the guard has left"]
pub struct Inside<G: Deref<Target = Concurrency>> {
    gate: G,
    n: u64,
}

impl<G: Deref<Target = Concurrency>> Inside<G> {
    #[inline]
    pub(super) fn new(gate: G, n: u64) -> Self {
        Self { gate, n }
    }

    /// How much it weighs.
    #[inline]
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }
}

impl<G: Deref<Target = Concurrency>> Drop for Inside<G> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave(self.n);
    }
}

impl<G: Deref<Target = Concurrency>> fmt::Debug for Inside<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("n", &self.n).finish()
    }
}
