//! Which key leaves for another one, where no slot is free and no key idle.
//!
//! Keys that were granted something once leave before protected ones, which came again, and banned
//! keys leave last. Of keys that are alike in that, those leave first that have spent less, in
//! eighths of all that they can have; and of those that have spent about as much, the newest: who
//! fills a table with new keys, each of which spends all, gives up its own. A key that owes
//! something leaves after those that don't, the one that owes least first.
//!
//! A word says when its key will be idle, and nothing else that all algorithms have in common. So
//! what a key has spent is told by the time that it takes to have all of it again; and of two keys
//! that have spent as much the newer is the one for which less of that time is over.

use super::plans::Plans;
use super::probe::Probe;
use super::slot::SlotState;
use crate::algorithm::Algorithm;
use crate::clock::Tick;

/// When it is a key's turn to leave: the lowest one leaves first. Its highest bits are the class:
/// banned, protected, owes, and how many eighths are spent. The others are what is told of keys of
/// one class.
type Turn = u128;

const CLASS_SHIFT: u32 = 112;
/// Below [`SlotState::class`].
const CLASS_BITS: u32 = 5;
const OWES: u64 = 1 << 4;
/// More than any time in nanoseconds, of which there are 64 bits.
const LONGEST: u128 = 1 << 64;

/// Nanoseconds until a key is idle for which all permits were just taken.
#[derive(Debug, Clone, Copy)]
struct Scale {
    all: u64,
    eighth: u64,
    /// A key that will be idle so much later owes nothing: all was taken just now, by a clock that
    /// is a little ahead.
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

    /// The turn of a key that will be idle after this number of nanoseconds.
    #[inline(always)]
    fn turn(self, held: SlotState, until_idle: u64) -> Turn {
        let spent = self.spent(until_idle);
        let last = match spent & OWES {
            // The one that was there for the shortest time first.
            0 => u128::from(self.all) + LONGEST - u128::from(until_idle),
            // The one that owes least first.
            _ => u128::from(until_idle),
        };
        let class = held.class() << CLASS_BITS | spent;
        (u128::from(class) << CLASS_SHIFT) | last
    }

    /// How many eighths such a key has spent, or that it owes something.
    #[inline(always)]
    fn spent(self, until_idle: u64) -> u64 {
        match until_idle.saturating_sub(self.all) > self.ahead {
            true => OWES,
            false => 7 - self.eighths(self.all.saturating_sub(until_idle)),
        }
    }

    /// How many eighths that is, up to seven.
    #[inline(always)]
    const fn eighths(self, again: u64) -> u64 {
        // A division would take as long as all the rest.
        let half = (again >= 4 * self.eighth) as u64 * 4;
        let quarter = half + (again >= (half + 2) * self.eighth) as u64 * 2;
        quarter + (again >= (quarter + 1) * self.eighth) as u64
    }
}

/// Finds, of several keys, the first that leaves.
pub(super) struct FirstToLeave<'p, A, T> {
    by: By<'p, A>,
    /// That of the plan of the key before.
    plan: u8,
    scale: Option<Scale>,
    turn: Turn,
    first: Option<(T, SlotState)>,
    /// What the first one can take, once it is known.
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

    /// Considers the key of a live slot, and when it will be idle. Of keys that are alike in all
    /// else it is the one that can take most (of a window all are idle at its end), or the first.
    #[inline(always)]
    pub(super) fn consider(&mut self, slot: T, held: SlotState, idle_at: Tick) {
        let scale = match self.scale {
            Some(scale) if self.plan == held.plan() => scale,
            _ => {
                let scale = self.by.scale(held);
                // That of a key's own algorithm is no other key's.
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

    /// The key that leaves first.
    #[inline(always)]
    pub(super) fn found(self) -> Option<(T, SlotState)> {
        self.first
    }
}

/// By which plans it is judged, of a version that no key is later than, and when.
pub(super) struct By<'p, A> {
    pub(super) plans: &'p Plans<A>,
    pub(super) version: u64,
    pub(super) now: Tick,
}

impl<A: Algorithm> By<'_, A> {
    /// The number of the slot whose key leaves first, of keys of one plan, none of which is idle,
    /// and of which a larger word is idle later. `None` if keys of the lowest class have spent
    /// different parts of all that they can have: then each has to be considered.
    ///
    /// In a flood they have all spent about as much, which two of them show.
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

    /// That of a key's plan.
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

    /// How many permits a key can take.
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
