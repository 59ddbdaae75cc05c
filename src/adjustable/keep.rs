use crate::algorithm::ChangeQuota;
use crate::clock::Tick;

/// What becomes of what is there when an [`Adjustable`](super::Adjustable) limiter's quota is
/// changed.
///
/// ```
/// use tollgate::adjustable::Keep;
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
    /// The permits that are there stay, as many as the new quota can hold, and so does a debt
    /// ([`ChangeQuota::carry_over`]). None comes from nowhere: right after the change no more are
    /// there than right before it.
    AsIs,
    /// As large a part of the new burst is there as was of the old one, rounded down, and a debt
    /// stays ([`ChangeQuota::carry_scaled`]). It is what Guava's `setRate` does.
    Scaled,
    /// It starts anew, with the new quota's [`initial`](crate::Quota::initial) permits. It allows
    /// one burst more, as a reset does, and a debt is forgotten.
    Fresh,
}

impl Keep {
    /// The word with which `new` goes on where `old` left off.
    pub(crate) fn carry<A: ChangeQuota>(self, old: &A, word: u64, now: Tick, new: &A) -> u64 {
        match self {
            Self::AsIs => old.carry_over(word, now, new),
            Self::Scaled => old.carry_scaled(word, now, new),
            Self::Fresh => new.initial_word(now),
        }
    }
}
