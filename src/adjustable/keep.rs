use crate::algorithm::ChangeQuota;
use crate::clock::Tick;

/// Converts the word of one algorithm into that of another.
pub(crate) type Carry<A> = fn(&A, u64, Tick, &A) -> u64;

/// The effect of a change of quota on the available permits of an [`Adjustable`](super::Adjustable)
/// limiter or of a key.
///
/// ```
/// use tollgate::Keep;
/// use tollgate::{Adjustable, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// for (keep, left) in [(Keep::AsIs, 4), (Keep::Scaled, 8), (Keep::Used, 14), (Keep::Fresh, 20)] {
///     let bucket = TokenBucket::new(Quota::per_second(10))?;
///     let limiter = Adjustable::with_clock(bucket, ManualClock::new());
///     limiter.try_acquire_n(6)?;
///     limiter.set_quota(Quota::per_second(20), keep)?;
///     assert_eq!(limiter.available(), left);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Keeps the available permits, up to what the new quota can hold, and keeps a debt
    /// ([`ChangeQuota::carry_over`]). The change itself never makes more permits available.
    AsIs,
    /// Keeps the available fraction of the burst, rounded down, and keeps a debt
    /// ([`ChangeQuota::carry_scaled`]). Guava's `setRate` does the same.
    Scaled,
    /// Keeps what was used: permits that are counted and not refilled yet stay counted, rounded up
    /// ([`ChangeQuota::carry_used`]). A burst or limit that is raised from 100 to 1000 adds exactly
    /// 900 permits, and one that is lowered from 1000 to 100 takes 900 away. What was used beyond
    /// the new burst is owed until time refills it, at the new rate. A full limiter stays full, and
    /// changing up and down never adds permits. **Bound.** An interval with changes grants a bucket
    /// at most the largest burst in force in it, plus what each rate refills while it is in force,
    /// and a window whose periods stay at most what the largest limit in force in it allows. If the
    /// period or the algorithm of a window changes, the bounds of both add up. Windows by first hit
    /// and greedy intervals can owe one to three times their new limit. If they owe that much, more
    /// may have been used, so they owe as much after further changes too, until time refills it.
    ///
    /// ```
    /// use tollgate::{Adjustable, Keep, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Adjustable::token_bucket(Quota::per_day(100))?;
    /// limiter.try_acquire_n(70)?;
    /// limiter.set_quota(Quota::per_day(1000), Keep::Used)?;
    /// assert_eq!(limiter.available(), 930);
    /// limiter.set_quota(Quota::per_day(50), Keep::Used)?;
    /// assert_eq!((limiter.available(), limiter.charge(0).debt()), (0, 20));
    /// limiter.set_quota(Quota::per_day(100), Keep::Used)?;
    /// assert_eq!(limiter.available(), 30);
    /// # Ok(())
    /// # }
    /// ```
    Used,
    /// Starts anew, with the new quota's [`initial`](crate::Quota::initial) permits. This allows
    /// one more burst, as a reset does, and cancels a debt.
    Fresh,
}

impl Keep {
    /// Returns the function that converts a word of one algorithm at a tick into that of another.
    pub(crate) fn carry<A: ChangeQuota>(self) -> Carry<A> {
        match self {
            Self::AsIs => A::carry_over,
            Self::Scaled => A::carry_scaled,
            Self::Used => A::carry_used,
            Self::Fresh => |_, _, now, new| new.initial_word(now),
        }
    }
}
