use super::{Charged, Granted};

/// The outcome of settling a grant when its cost is known.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(100))?;
/// let estimate = limiter.try_acquire_n(30)?;
/// let settled = limiter.settle(estimate, 10);
/// assert_eq!((settled.returned, settled.lost, settled.charged), (20, 0, 0));
/// # Ok(())
/// # }
/// ```
///
/// The default is a settlement that changed nothing. A limit of your own sets its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Settled {
    /// How many permits were returned, rounded up.
    pub returned: u64,
    /// How many unused permits were not returned, because the clock has already refilled them or
    /// because a later caller is waiting for permits behind them.
    pub lost: u64,
    /// How many permits were taken in addition, into debt if they were not available.
    pub charged: u64,
}

impl Settled {
    /// Creates the outcome for a grant of `unused` permits too many. The limiter took back
    /// `returned` of them.
    pub(crate) const fn too_many(unused: u64, returned: u64) -> Self {
        Self {
            returned,
            lost: unused.saturating_sub(returned),
            charged: 0,
        }
    }

    /// Creates the outcome for a grant that was fully used, and after which `charged` more permits
    /// were taken.
    pub(crate) const fn charged(charged: u64) -> Self {
        Self {
            returned: 0,
            lost: 0,
            charged,
        }
    }

    /// Adds up the outcomes of two grants.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(100))?;
    /// let (one, other) = (limiter.try_acquire_n(30)?, limiter.try_acquire_n(5)?);
    /// let sum = limiter.settle(one, 10).plus(limiter.settle(other, 4));
    /// assert_eq!(sum.returned, 21);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            returned: self.returned.saturating_add(other.returned),
            lost: self.lost.saturating_add(other.lost),
            charged: self.charged.saturating_add(other.charged),
        }
    }

    /// Settles a grant whose actual cost is `actual` permits.
    #[inline]
    pub(crate) fn by(
        granted: Granted,
        actual: u64,
        undo: impl FnOnce(Granted) -> u64,
        charge: impl FnOnce(u64) -> Charged,
    ) -> Self {
        let taken = granted.n();
        if actual < taken {
            let unused = taken - actual;
            return Self::too_many(unused, undo(granted.with_n(unused)));
        }
        Self::charged(match actual - taken {
            0 => 0,
            more => charge(more).n(),
        })
    }
}
