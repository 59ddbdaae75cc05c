use crate::algorithm::ChangeQuota;
use crate::clock::Tick;

/// The effect of a change of quota on the available permits of an [`Adjustable`](super::Adjustable)
/// limiter or of a key.
///
/// ```
/// use tollgate::Keep;
/// use tollgate::{Adjustable, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// for (keep, left) in [(Keep::AsIs, 4), (Keep::Scaled, 8), (Keep::Fresh, 20)] {
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
    /// Starts anew, with the new quota's [`initial`](crate::Quota::initial) permits. This allows
    /// one more burst, as a reset does, and cancels a debt.
    Fresh,
}

impl Keep {
    /// Returns the word with which `new` continues from `old`.
    pub(crate) fn carry<A: ChangeQuota>(self, old: &A, word: u64, now: Tick, new: &A) -> u64 {
        match self {
            Self::AsIs => old.carry_over(word, now, new),
            Self::Scaled => old.carry_scaled(word, now, new),
            Self::Fresh => new.initial_word(now),
        }
    }
}
