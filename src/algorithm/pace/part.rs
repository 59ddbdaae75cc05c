//! One of the equal parts that a pace is split into.
//!
//! The clock makes as many units for a part as for the whole, and a permit takes `of` times as many:
//! so the parts' rates are the same, and add up to exactly the whole's, whatever the quota. Bursts are
//! shared out; what a tolerance has beyond whole permits goes to the first part.

use core::num::NonZeroU64;

use super::super::grid::Stairs;
use super::super::split::share;
use super::{MAX_WORD, Meter, Pace, SPEED_BITS, Steady};
use crate::clock::Tick;
use crate::outcome::Granted;
use crate::quota::MIN_HORIZON_NS;

/// What of a pace does not depend on its meter.
struct Share {
    unit: NonZeroU64,
    reach: u64,
    burst: NonZeroU64,
    missing: u64,
}

impl<M> Pace<M> {
    /// `None` if there is nothing for this part, or its numbers don't fit.
    fn share(&self, index: u64, of: u64) -> Option<Share> {
        let whole = self.burst.get();
        let burst = NonZeroU64::new(share(whole, index, of))?;
        let unit = self.unit.checked_mul(NonZeroU64::new(of)?)?;
        let beyond = match index {
            0 => (self.reach - whole * self.unit.get()).checked_mul(of)?,
            _ => 0,
        };
        Some(Share {
            reach: burst.get().checked_mul(unit.get())?.checked_add(beyond)?,
            unit,
            burst,
            missing: burst.get() - share(whole - self.missing, index, of),
        })
    }

    fn with(&self, share: Share, meter: M) -> Self {
        Self {
            meter,
            unit: share.unit,
            reach: share.reach,
            round: self.round,
            burst: share.burst,
            missing: share.missing,
        }
    }
}

impl<M: Meter + PartialEq> Pace<M> {
    /// The word without a grant that nobody has used.
    ///
    /// What it would be without that grant can't be told from it: where the bucket would have been full
    /// meanwhile, others would have added to less. Certain is what was taken, less all that the clock has made
    /// since: `c(j) = max(0, units(j) - made since t(j))` for each such grant `j` that is under way. For the
    /// base of an idle bucket at the latest tick seen this holds after each change:
    ///
    /// - `word >= base + sum of c`, while that sum is not 0, and
    /// - `word - sum of c` is at least what the word would be without those grants, or both are idle.
    ///
    /// Such a grant adds its units to both sides; time lowers each `c` by as much as it raises the base; other
    /// grants raise the word; and this lowers word and sum by `c(j)` at most. The mark of the grant, by which
    /// an undo knows it, would not do: it counts what others had taken and may have put back since.
    ///
    /// Without a tick that is late enough, nothing is certain.
    pub(in crate::algorithm) fn put_back(
        &self,
        word: u64,
        granted: &Granted,
        later: Option<Tick>,
    ) -> u64 {
        let Some(later) = later else { return word };
        let taken = granted.n().saturating_mul(self.unit.get());
        let since = self.made(later).saturating_sub(self.made(granted.at()));
        self.give_back(word, self.base(later), taken.saturating_sub(since))
            .0
    }
}

impl Pace<Steady> {
    /// Part `index` of `of`.
    pub(in crate::algorithm) fn part(&self, index: u64, of: u64) -> Option<Self> {
        let share = self.share(index, of)?;
        let twice = share.reach.checked_mul(2)?;
        let room = (MAX_WORD - self.round).checked_sub(twice)?;
        let horizon = (u128::from(room) << SPEED_BITS) / u128::from(self.meter.speed.get());
        let horizon = u64::try_from(horizon).unwrap_or(u64::MAX);
        let meter = Steady {
            horizon,
            ..self.meter
        };
        (horizon >= MIN_HORIZON_NS).then(|| self.with(share, meter))
    }
}

impl Pace<Stairs> {
    /// Part `index` of `of`.
    pub(in crate::algorithm) fn part(&self, index: u64, of: u64) -> Option<Self> {
        let share = self.share(index, of)?;
        let twice = share.reach.checked_mul(2)?;
        // With the next stair, which a bucket may look forward to.
        let room = MAX_WORD.checked_sub(twice)?;
        let meter = self.meter.until(room / self.meter.step.get())?;
        let last = meter.made(Tick::from_nanos(meter.horizon()));
        (last <= room).then(|| self.with(share, meter))
    }
}
