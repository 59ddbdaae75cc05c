//! Decides which key is evicted, if no slot is free and no key is idle.
//!
//! Keys leave in this order:
//!
//! 1. unprotected keys, then *protected* ones ([`SlotState`]), then banned ones;
//! 2. among these, keys without debt before keys in debt;
//! 3. among keys without debt, the one that has spent the least of its burst, and of several the
//!    newest; among keys in debt, the one with the least debt.
//!
//! Whatever the algorithm, a word says when its key becomes idle. So the time until then measures
//! what the key has spent. The part that a key has regained counts in whole *steps*, each the time
//! of one permit (at most an eighth of the burst). If two keys spent the same and neither has
//! regained a step, the newer one leaves first: it becomes idle later.
//!
//! The word can't tell a key that spent all from a newer one that spent a little less. So a slot
//! says whether its key is a *newcomer*: it took the slot of a key in use, and has had one grant.
//! It counts as if it had spent an eighth of its burst less. So the keys of a flood evict each
//! other, until the keys that were there before have regained that eighth.

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::find::{NEWCOMER, PROTECTED, Probe, SlotState, UNPROTECTED};
use crate::keyed::plans::Plans;

/// A key's turn to leave: the lowest one leaves first. The highest bits are the class: banned,
/// protected, in debt. The next bits are the share of its burst that the key has spent. The lowest
/// ones order keys that have spent the same.
type Turn = u128;

const CLASS_SHIFT: u32 = 112;
const OWES: u64 = 1;
const SHARE_SHIFT: u32 = 72;
/// The whole burst, as a share.
const WHOLE: u64 = 1 << 32;
/// Larger than any time in nanoseconds, which has 64 bits.
const LONGEST: u128 = 1 << 64;

/// How long the keys of a plan take to become idle, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// The time after all permits were taken.
    all: u64,
    /// The time in which one permit is regained, at most an eighth of `all`.
    step: u64,
    /// How much sooner a newcomer counts as idle.
    newcomer: u64,
    /// A key that becomes idle later than `all`, but by no more than this, counts as without debt.
    /// Its permits may have been taken by a clock that is slightly ahead.
    ahead: u64,
}

impl Scale {
    /// Returns the scale of a plan whose keys are idle `all` nanoseconds after they took `permits`.
    #[inline(always)]
    const fn of(all: u64, permits: u64) -> Self {
        let of_window = Self::of_window(all);
        let (eighth, one) = (of_window.step, all / if permits == 0 { 1 } else { permits });
        Self {
            step: match one {
                0 => 1,
                one if one > eighth => eighth,
                one => one,
            },
            newcomer: eighth,
            ..of_window
        }
    }

    /// Returns the scale of a plan whose keys are idle at one tick, whatever they took.
    #[inline(always)]
    const fn of_window(all: u64) -> Self {
        let all = if all == 0 { 1 } else { all };
        Self {
            all,
            step: if all < 8 { 1 } else { all / 8 },
            newcomer: 0,
            ahead: all >> 10,
        }
    }

    /// Returns the turn of a key that becomes idle after this number of nanoseconds.
    #[inline(always)]
    fn turn(self, held: SlotState, until_idle: u64) -> Turn {
        let (owes, share, last) = match self.owes(until_idle) {
            // The key with the least debt first.
            true => (OWES, 0, u128::from(until_idle)),
            false => {
                let spent = 2 * WHOLE - self.share(self.regained(held.is_newcomer(), until_idle));
                // The newest key first.
                let last = u128::from(self.all) + LONGEST - u128::from(until_idle);
                (0, spent, last)
            }
        };
        let class = held.class() << 1 | owes;
        u128::from(class) << CLASS_SHIFT | u128::from(share) << SHARE_SHIFT | last
    }

    /// Returns whether a key is in debt.
    #[inline(always)]
    const fn owes(self, until_idle: u64) -> bool {
        until_idle.saturating_sub(self.all) > self.ahead
    }

    /// Returns the part of `all` that is over for a key, in whole steps.
    #[inline(always)]
    const fn regained(self, is_newcomer: bool, until_idle: u64) -> u64 {
        // Times are rounded. A key that has just been granted permits must not be at the end of a
        // step.
        let regained = self
            .all
            .saturating_sub(until_idle)
            .saturating_add(self.step / 64);
        let newcomer = is_newcomer as u64 * self.newcomer;
        (regained - regained % self.step).saturating_add(newcomer)
    }

    /// Returns a time as a share of `all`, rounded down.
    #[inline(always)]
    const fn share(self, part: u64) -> u64 {
        // Keep 31 bits, so that a division of 64 bits suffices for up to twice `all`.
        let excess = (u32::BITS + 1).saturating_sub(self.all.leading_zeros());
        ((part >> excess) << 32) / (self.all >> excess)
    }

    /// Returns the longest time until a key is idle that has regained as many steps as this one.
    #[inline(always)]
    const fn most_of_step(self, until_idle: u64) -> u64 {
        match self.regained(false, until_idle) {
            0 => self.all.saturating_add(self.ahead),
            regained => self
                .all
                .saturating_add(self.step / 64)
                .saturating_sub(regained),
        }
    }
}

/// Finds the first of several keys to leave.
pub(crate) struct FirstToLeave<'p, A, T> {
    order: EvictionOrder<'p, A>,
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
    pub(crate) const fn new(plans: &'p Plans<A>, version: u64, now: Tick) -> Self {
        Self {
            order: EvictionOrder::new(plans, version, now),
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
    pub(crate) fn consider(&mut self, slot: T, held: SlotState, idle_at: Tick) {
        let scale = match self.scale {
            Some(scale) if self.plan == held.plan() => scale,
            _ => {
                let scale = self.order.scale(held);
                // No other key has the same algorithm as a key with an override.
                let is_shared = !self.order.plans.is_override(held);
                (self.plan, self.scale) = (held.plan(), is_shared.then_some(scale));
                scale
            }
        };
        let now = self.order.now.as_nanos();
        let turn = scale.turn(held, idle_at.as_nanos().saturating_sub(now));
        if turn > self.turn {
            return;
        }
        match self.first {
            Some((_, first)) if turn == self.turn => {
                let is_same = first.word() == held.word()
                    && first.plan() == held.plan()
                    && first.is_newcomer() == held.is_newcomer();
                if is_same && self.scale.is_some() {
                    return;
                }
                let had = self.left.unwrap_or_else(|| self.order.left(first));
                let has = self.order.left(held);
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
    pub(crate) fn found(self) -> Option<(T, SlotState)> {
        self.first
    }
}

/// The order in which keys are evicted at a tick. No key has a version later than `version`.
pub(super) struct EvictionOrder<'p, A> {
    plans: &'p Plans<A>,
    version: u64,
    now: Tick,
}

impl<'p, A> EvictionOrder<'p, A> {
    pub(super) const fn new(plans: &'p Plans<A>, version: u64, now: Tick) -> Self {
        Self {
            plans,
            version,
            now,
        }
    }
}

impl<A: Algorithm> EvictionOrder<'_, A> {
    /// Returns the number of the slot whose key leaves first, found by comparing words. No key may
    /// be banned or idle, and all must have one plan, in which a larger word becomes idle later.
    /// `least` is the smallest word. Returns `None` if comparing words does not suffice. Then each
    /// key must be considered.
    #[inline(always)]
    pub(super) fn first_in_order(
        &self,
        probe: &Probe,
        least: u64,
        idle_at: impl Fn(u64) -> Tick,
    ) -> Option<usize> {
        let (scale, now) = (self.scale(SlotState::NEVER_USED), self.now.as_nanos());
        let until_idle = |word| idle_at(word).as_nanos().saturating_sub(now);
        let soonest = |code: u64| {
            let mut soonest = u64::MAX;
            probe.each(|_, held| {
                let counts = held.code() == code;
                soonest = soonest.min(if counts { held.word() } else { u64::MAX });
            });
            // No word is all ones.
            (soonest < u64::MAX).then(|| until_idle(soonest))
        };
        let least = until_idle(least);
        let precedes = |newcomer: u64, other: u64| {
            // By more than a step.
            let clearly =
                newcomer.saturating_add(scale.step) <= other.saturating_add(scale.newcomer);
            let precedes =
                clearly || scale.regained(true, newcomer) >= scale.regained(false, other);
            precedes && !scale.owes(newcomer)
        };
        let (code, first) = match soonest(NEWCOMER) {
            // In a flood, newcomers precede all others.
            Some(newcomer) if precedes(newcomer, least) => (NEWCOMER, newcomer),
            newcomer => match (newcomer, soonest(UNPROTECTED)) {
                (Some(newcomer), Some(other)) if precedes(newcomer, other) => (NEWCOMER, newcomer),
                (Some(newcomer), None) => (NEWCOMER, newcomer),
                (_, Some(other)) => (UNPROTECTED, other),
                (None, None) => (PROTECTED, least),
            },
        };
        if scale.owes(first) {
            return None;
        }
        let (mut newest, mut found) = (0, None);
        probe.each(|slot, held| {
            if held.code() == code && held.word() >= newest {
                (newest, found) = (held.word(), Some(slot));
            }
        });
        let most = scale.most_of_step(first);
        if until_idle(newest) <= most {
            // In a flood all keys have spent about the same.
            return found;
        }
        (newest, found) = (0, None);
        probe.each(|slot, held| {
            let is_later = held.code() == code && held.word() >= newest;
            if is_later && until_idle(held.word()) <= most {
                (newest, found) = (held.word(), Some(slot));
            }
        });
        found
    }

    /// Returns the scale of a key's plan.
    #[cold]
    #[inline(never)]
    fn scale(&self, held: SlotState) -> Scale {
        let now = self.now;
        let scale = |algorithm: &A, _| {
            let (word, granted) = algorithm.take_up_to(0, now, u64::MAX);
            let all = algorithm.idle_at(word, now).as_nanos();
            let all = all.saturating_sub(now.as_nanos());
            if algorithm.larger_is_idle_later() {
                return Scale::of(all, granted.n());
            }
            let (word, _) = algorithm.take_up_to(0, now, 1);
            let one = algorithm.idle_at(word, now).as_nanos();
            // If one permit takes as long as all, time does not show what was spent.
            match one.saturating_sub(now.as_nanos()) >= all && granted.n() > 1 {
                true => Scale::of_window(all),
                false => Scale::of(all, granted.n()),
            }
        };
        let scale = self.plans.ask(held, self.version, scale);
        scale.unwrap_or_else(|| Scale::of_window(0))
    }

    /// Returns how many permits a key can take. A newcomer counts as if it had an eighth of its
    /// burst more.
    #[cold]
    #[inline(never)]
    fn left(&self, held: SlotState) -> u64 {
        let left = |algorithm: &A, word| {
            let left = algorithm.available(word, self.now);
            let more = algorithm.available(0, self.now).div_ceil(8);
            left.saturating_add(if held.is_newcomer() { more } else { 0 })
        };
        self.plans.ask(held, self.version, left).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
