//! Decides which key is evicted, if no slot is free and no key is idle.
//!
//! Keys leave in this order:
//!
//! 1. unprotected keys, then *protected* ones ([`slot`](super::slot)), then banned ones;
//! 2. among these, keys without debt before keys in debt;
//! 3. among keys without debt, the one that has spent the fewest eighths of its burst, and of
//!    several the newest; among keys in debt, the one with the least debt.
//!
//! So a flood of new keys that each spend everything evicts its own keys.
//!
//! All that a word of every algorithm says is when its key becomes idle. So the time until then
//! measures what a key has spent. Of two keys that have spent the same, the newer one has more of
//! that time left.

use super::plans::Plans;
use super::probe::Probe;
use super::slot::SlotState;
use crate::algorithm::Algorithm;
use crate::clock::Tick;

/// A key's turn to leave: the lowest one leaves first. The highest bits are the class: banned,
/// protected, in debt, and the eighths spent. The other bits order keys of one class.
type Turn = u128;

const CLASS_SHIFT: u32 = 112;
/// The bits of the class below [`SlotState::class`].
const CLASS_BITS: u32 = 5;
const OWES: u64 = 1 << 4;
/// Larger than any time in nanoseconds, which has 64 bits.
const LONGEST: u128 = 1 << 64;

/// How long it takes until a key is idle after all its permits were taken, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Scale {
    all: u64,
    eighth: u64,
    /// A key that becomes idle later than `all`, but by no more than this, counts as without debt.
    /// Its permits may have been taken by a clock that is slightly ahead.
    ahead: u64,
}

impl Scale {
    fn of(all: u64) -> Self {
        Self {
            all,
            eighth: (all / 8).max(1),
            ahead: all >> 10,
        }
    }

    /// Returns the turn of a key that becomes idle after this number of nanoseconds.
    #[inline(always)]
    fn turn(self, held: SlotState, until_idle: u64) -> Turn {
        let spent = self.spent(until_idle);
        let last = match spent & OWES {
            // The newest key first.
            0 => u128::from(self.all) + LONGEST - u128::from(until_idle),
            // The key with the least debt first.
            _ => u128::from(until_idle),
        };
        let class = held.class() << CLASS_BITS | spent;
        (u128::from(class) << CLASS_SHIFT) | last
    }

    /// Returns how many eighths of its burst a key has spent that becomes idle after `until_idle`,
    /// or [`OWES`] if it is in debt.
    #[inline(always)]
    fn spent(self, until_idle: u64) -> u64 {
        match until_idle.saturating_sub(self.all) > self.ahead {
            true => OWES,
            false => 7 - self.eighths(self.all.saturating_sub(until_idle)),
        }
    }

    /// Returns the refilled part `again` in whole eighths of `all`, at most 7.
    #[inline(always)]
    const fn eighths(self, again: u64) -> u64 {
        // A division would take as long as everything else here.
        let half = (again >= 4 * self.eighth) as u64 * 4;
        let quarter = half + (again >= (half + 2) * self.eighth) as u64 * 2;
        quarter + (again >= (quarter + 1) * self.eighth) as u64
    }
}

/// Finds the first of several keys to leave.
pub(super) struct FirstToLeave<'p, A, T> {
    by: By<'p, A>,
    /// The plan to which `scale` belongs: that of the previous key.
    plan: u8,
    scale: Option<Scale>,
    turn: Turn,
    first: Option<(T, SlotState)>,
    /// How many permits the first key can take, once that has been computed.
    left: Option<u64>,
}

impl<'p, A: Algorithm, T: Copy> FirstToLeave<'p, A, T> {
    #[inline(always)]
    pub(super) const fn new(by: By<'p, A>) -> Self {
        Self {
            by,
            plan: 0,
            scale: None,
            turn: Turn::MAX,
            first: None,
            left: None,
        }
    }

    /// Considers the key of a live slot that becomes idle at `idle_at`. Of keys with the same turn,
    /// the one that can take the most permits leaves first, or the first considered. (Keys of a
    /// window all become idle at its end, so they often have the same turn.)
    #[inline(always)]
    pub(super) fn consider(&mut self, slot: T, held: SlotState, idle_at: Tick) {
        let scale = match self.scale {
            Some(scale) if self.plan == held.plan() => scale,
            _ => {
                let scale = self.by.scale(held);
                // No other key has the same algorithm as a key with an override.
                let is_own = self.by.plans.overrides_of(held).is_some();
                (self.plan, self.scale) = (held.plan(), (!is_own).then_some(scale));
                scale
            }
        };
        let now = self.by.now.as_nanos();
        let turn = scale.turn(held, idle_at.as_nanos().saturating_sub(now));
        if turn > self.turn {
            return;
        }
        match self.first {
            Some((_, first)) if turn == self.turn => {
                let is_same = first.word == held.word && first.plan() == held.plan();
                if is_same && self.scale.is_some() {
                    return;
                }
                let had = self.left.unwrap_or_else(|| self.by.left(first));
                let has = self.by.left(held);
                self.left = Some(has.max(had));
                if has <= had {
                    return;
                }
            }
            _ => self.left = None,
        }
        (self.turn, self.first) = (turn, Some((slot, held)));
    }

    /// Returns the key that leaves first.
    #[inline(always)]
    pub(super) fn found(self) -> Option<(T, SlotState)> {
        self.first
    }
}

/// What keys are judged by: the plans, a version no older than any key's, and a tick.
pub(super) struct By<'p, A> {
    pub(super) plans: &'p Plans<A>,
    pub(super) version: u64,
    pub(super) now: Tick,
}

impl<A: Algorithm> By<'_, A> {
    /// Returns the number of the slot whose key leaves first, found by comparing words. All keys
    /// must have one plan, in which a larger word becomes idle later, and none may be idle. Returns
    /// `None` if the keys of the lowest class have not all spent the same number of eighths. Then
    /// each key must be considered.
    ///
    /// In a flood all keys have spent about the same. Comparing the key that becomes idle first
    /// with the one that becomes idle last shows that.
    #[inline(always)]
    pub(super) fn first_in_order(
        self,
        probe: &Probe,
        idle_at: impl Fn(u64) -> Tick,
    ) -> Option<usize> {
        let mut lowest = u64::MAX;
        probe.each(|_, held| lowest = lowest.min(held.rank()));
        if lowest != 0 && lowest != SlotState::IS_PROTECTED {
            return None;
        }
        let (mut soonest, mut newest, mut first) = (u64::MAX, 0, None);
        probe.each(|slot, held| {
            if held.rank() == lowest {
                soonest = soonest.min(held.word);
                if held.word > newest {
                    (newest, first) = (held.word, Some(slot));
                }
            }
        });
        let scale = self.scale(SlotState::NEVER_USED);
        let now = self.now.as_nanos();
        let spent = |word| scale.spent(idle_at(word).as_nanos().saturating_sub(now));
        let by_newest = spent(newest);
        let is_even = by_newest & OWES == 0 && by_newest == spent(soonest);
        first.filter(|_| is_even)
    }

    /// Returns the scale of a key's plan.
    #[cold]
    #[inline(never)]
    fn scale(self, held: SlotState) -> Scale {
        let now = self.now;
        let all = |algorithm: &A, _| {
            let (word, _) = algorithm.take_up_to(0, now, u64::MAX);
            algorithm.idle_at(word, now).as_nanos()
        };
        let all = self.plans.ask(held, self.version, all).unwrap_or(0);
        Scale::of(all.saturating_sub(now.as_nanos()))
    }

    /// Returns how many permits a key can take.
    #[cold]
    #[inline(never)]
    fn left(self, held: SlotState) -> u64 {
        let available = |algorithm: &A, word| algorithm.available(word, self.now);
        let left = self.plans.ask(held, self.version, available);
        left.unwrap_or(0)
    }
}

impl<A> Clone for By<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for By<'_, A> {}
