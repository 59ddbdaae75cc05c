//! Grants that are undone unless they are settled.

use core::fmt;
use core::ops::{Deref, DerefMut};

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::members::Members;
use crate::clock::Clock;
use crate::outcome::Settled;

/// A grant that is undone when it is dropped before it is settled.
///
/// [`AllGranted::undo_on_drop`] returns it. A `SlidingLog` and `Leases` take nothing back: see
/// [`AllGranted::undo`].
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(10))?;
/// let limit = All::new(&limiter)?;
/// drop(limit.try_acquire_n(4)?.undo_on_drop());
/// assert_eq!(limiter.available(), 10);
/// let mut estimate = limit.try_acquire_n(4)?.undo_on_drop();
/// estimate.keep();
/// drop(estimate);
/// assert_eq!(limiter.available(), 6);
/// # Ok(())
/// # }
/// ```
#[must_use = "it is undone when it is dropped"]
pub struct UndoOnDrop<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> {
    granted: AllGranted<R, M, C>,
    /// Whether dropping it leaves the permits taken, or settled.
    is_kept: bool,
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> AllGranted<R, M, C> {
    /// Returns a guard that gives the permits back if it is dropped before it is settled, such as
    /// after an error.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_day(9_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// drop(model.try_acquire_each([1, 800])?.undo_on_drop());
    /// assert_eq!((requests.available(), tokens.available()), (60, 9_000));
    /// model.try_acquire_each([1, 800])?.undo_on_drop().settle([1, 650])?;
    /// assert_eq!((requests.available(), tokens.available()), (59, 8_350));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub const fn undo_on_drop(self) -> UndoOnDrop<R, M, C> {
        UndoOnDrop {
            granted: self,
            is_kept: false,
        }
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> UndoOnDrop<R, M, C> {
    /// Gives the permits back as far as possible, and returns how many came back: none after
    /// [`keep`](Self::keep).
    pub fn undo(mut self) -> u64 {
        self.undo_once()
    }

    /// Keeps the permits: they stay taken when this is dropped.
    #[inline]
    pub const fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Corrects the estimates.
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member. The grant is unchanged,
    /// and is still undone when this is dropped.
    #[inline]
    pub fn settle(&mut self, costs: impl AsRef<[u64]>) -> Result<Settled, AllDenied> {
        let costs = self.granted.checked(costs.as_ref())?;
        self.keep();
        self.granted.settle(costs)
    }

    #[inline]
    fn undo_once(&mut self) -> u64 {
        let was_kept = self.is_kept;
        self.keep();
        match was_kept {
            true => 0,
            false => self.granted.undo_each(),
        }
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> Deref for UndoOnDrop<R, M, C> {
    type Target = AllGranted<R, M, C>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.granted
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> DerefMut for UndoOnDrop<R, M, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.granted
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> Drop for UndoOnDrop<R, M, C> {
    #[inline]
    fn drop(&mut self) {
        self.undo_once();
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> fmt::Debug for UndoOnDrop<R, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOnDrop")
            .field("granted", &self.granted)
            .field("kept", &self.is_kept)
            .finish()
    }
}
