//! Estimates that are settled when the cost is known.

use core::fmt;
use core::ops::{Deref, DerefMut};

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::members::SettleMembers;
use crate::clock::Clock;
use crate::outcome::{Denied, Granted, Settled};
use crate::rate_limiter::SettleLimiter;

/// Permits of one limiter for an estimated cost: take them, do the work, and settle what it cost.
///
/// `L` is the limiter: a reference, an `Arc`, or a key of a table. If the estimate is dropped
/// before it is settled or undone, the permits stay taken; with
/// [`undo_on_drop`](Self::undo_on_drop) they come back. For several limiters use an [`AllGranted`].
///
/// ```
/// use tollgate::compose::Estimate;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Limiter::token_bucket(Quota::per_day(9_000))?;
/// let estimate = Estimate::new(&tokens, 800)?;
/// // ... the work takes 650
/// assert_eq!(estimate.settle(650).returned, 150);
/// assert_eq!(tokens.available(), 8_350);
/// # Ok(())
/// # }
/// ```
#[must_use = "an estimate that is dropped keeps its permits"]
#[derive(Debug)]
pub struct Estimate<L> {
    limiter: L,
    granted: Granted,
}

impl<L: SettleLimiter<Clock: Clock>> Estimate<L> {
    /// Takes `n` permits.
    ///
    /// # Errors
    ///
    /// [`Denied`] if fewer than `n` permits are available.
    #[inline]
    pub fn new(limiter: L, n: u64) -> Result<Self, Denied> {
        let granted = limiter.try_acquire_n(n)?;
        Ok(Self { limiter, granted })
    }

    /// Corrects the estimate: what was not used comes back, and what was used in addition is
    /// charged. See [`Limiter::settle`](crate::Limiter::settle).
    #[inline]
    pub fn settle(self, actual: u64) -> Settled {
        self.limiter.settle(self.granted, actual)
    }

    /// Gives the permits back as far as possible, and returns how many came back.
    #[inline]
    pub fn undo(self) -> u64 {
        self.limiter.undo(self.granted)
    }

    /// Returns a guard that gives the permits back if it is dropped before it is settled, such as
    /// after an error.
    ///
    /// ```
    /// use tollgate::compose::Estimate;
    /// use tollgate::{Limiter, Quota, TokenBucket};
    ///
    /// fn call(tokens: &Limiter<TokenBucket>) -> Result<u64, Box<dyn std::error::Error>> {
    ///     let estimate = Estimate::new(tokens, 800)?.undo_on_drop();
    ///     let used = "650 tokens".parse()?; // fails
    ///     estimate.settle(used);
    ///     Ok(used)
    /// }
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let tokens = Limiter::token_bucket(Quota::per_day(9_000))?;
    /// assert!(call(&tokens).is_err());
    /// assert_eq!(tokens.available(), 9_000);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn undo_on_drop(self) -> UndoOnDrop<Self> {
        UndoOnDrop::new(self, |estimate| {
            estimate.limiter.undo(estimate.granted.again())
        })
    }
}

impl<L> Estimate<L> {
    /// Returns the grant.
    #[inline]
    pub const fn granted(&self) -> &Granted {
        &self.granted
    }
}

impl<R: Deref<Target = All<M, C>>, M: SettleMembers<C>, C: Clock> AllGranted<R, M, C> {
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
    pub fn undo_on_drop(self) -> UndoOnDrop<Self> {
        UndoOnDrop::new(self, Self::undo_each)
    }
}

/// A grant that is undone when it is dropped: see [`Estimate::undo_on_drop`] and
/// [`AllGranted::undo_on_drop`].
///
/// ```
/// use tollgate::compose::Estimate;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(10))?;
/// let mut estimate = Estimate::new(&limiter, 4)?.undo_on_drop();
/// estimate.keep();
/// drop(estimate);
/// assert_eq!(limiter.available(), 6);
/// # Ok(())
/// # }
/// ```
#[must_use = "it is undone when it is dropped"]
pub struct UndoOnDrop<G> {
    granted: G,
    /// What undoes the grant, until it is settled or kept. It is called at most once.
    undo: Option<fn(&mut G) -> u64>,
}

impl<G> UndoOnDrop<G> {
    #[inline]
    fn new(granted: G, undo: fn(&mut G) -> u64) -> Self {
        let undo = Some(undo);
        Self { granted, undo }
    }

    /// Gives the permits back as far as possible, and returns how many came back: none after
    /// [`keep`](Self::keep).
    pub fn undo(mut self) -> u64 {
        self.undo_once()
    }

    /// Keeps the permits: they stay taken when this is dropped.
    #[inline]
    pub fn keep(&mut self) {
        self.undo = None;
    }

    #[inline]
    fn undo_once(&mut self) -> u64 {
        let undo = self.undo.take();
        undo.map_or(0, |undo| undo(&mut self.granted))
    }
}

impl<L: SettleLimiter<Clock: Clock>> UndoOnDrop<Estimate<L>> {
    /// Corrects the estimate: see [`Estimate::settle`].
    #[inline]
    pub fn settle(mut self, actual: u64) -> Settled {
        self.keep();
        let Estimate { limiter, granted } = &self.granted;
        limiter.settle(granted.again(), actual)
    }
}

impl<R, M, C> UndoOnDrop<AllGranted<R, M, C>>
where
    R: Deref<Target = All<M, C>>,
    M: SettleMembers<C>,
    C: Clock,
{
    /// Corrects the estimates: see [`AllGranted::settle`].
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
}

impl<G> Deref for UndoOnDrop<G> {
    type Target = G;

    #[inline]
    fn deref(&self) -> &G {
        &self.granted
    }
}

impl<G> DerefMut for UndoOnDrop<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G {
        &mut self.granted
    }
}

impl<G> Drop for UndoOnDrop<G> {
    #[inline]
    fn drop(&mut self) {
        self.undo_once();
    }
}

impl<G: fmt::Debug> fmt::Debug for UndoOnDrop<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOnDrop")
            .field("granted", &self.granted)
            .field("kept", &self.undo.is_none())
            .finish()
    }
}
