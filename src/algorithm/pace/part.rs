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
