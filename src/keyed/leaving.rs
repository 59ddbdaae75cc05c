//! Which key leaves for another one, where no slot is free and no key idle.
//!
//! Keys that were granted something once leave before protected ones, which came again, and banned
//! keys leave last. Of keys that are alike in that, those leave first that have spent less, by
//! steps of at most an eighth of all that they can have; and of those that have spent about as
//! much, the newest: who fills a table with new keys, each of which spends all, gives up its own. A
//! key that owes something leaves after those that don't, the one that owes least first.
//!
//! A word says when its key will be idle, and nothing else that all algorithms have in common. So
//! what a key has spent is told by the time that it takes to have all of it again; and of two keys
//! that have spent as much the one that is idle later is the newer.

use core::cmp::Reverse;

use super::plans::Plans;
use super::slot::{SlotKind, SlotState};
use crate::algorithm::Algorithm;
use crate::clock::Tick;

/// When it is a key's turn to leave: the lowest one leaves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_banned: bool,
    is_protected: bool,
    spent: Spent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spent {
    /// All that it could, or a part: how many steps are there again, the most first; and how many
    /// nanoseconds it takes until all is, the most first.
    UpToAll(Reverse<u64>, Reverse<u64>),
    /// More than all: how many nanoseconds it takes until all is there again.
    MoreThanAll(u64),
}

impl Spent {
    /// Of a key that will be idle after this time, where it takes `all` after all is spent.
    fn of(until_idle: u64, all: u64) -> Self {
        // From 8 to 15 steps are in all.
        let bits = all.checked_ilog2().unwrap_or(0).saturating_sub(3);
        // A key that spent all just now by a clock that is a little ahead owes nothing.
        let ahead = all >> 10;
        match until_idle.saturating_sub(all) > ahead {
            true => Self::MoreThanAll(until_idle),
            false => {
                let again = all.saturating_sub(until_idle) >> bits;
                Self::UpToAll(Reverse(again), Reverse(until_idle))
            }
        }
    }
}

impl<A: Algorithm> Plans<A> {
    /// The slot whose key is the first that leaves for another one. Of keys of which that can't be
    /// told it is the one that can take most (of a window all are idle at its end), or the first.
    pub(super) fn first_to_leave<T: Copy>(
        &self,
        live: impl Iterator<Item = (T, SlotState)>,
        version: u64,
        now: Tick,
    ) -> Option<(T, SlotState)> {
        let until_idle = |algorithm: &A, word| {
            let idle_at = algorithm.idle_at(word, now).as_nanos();
            idle_at.saturating_sub(now.as_nanos())
        };
        let spent = |algorithm: &A, _| {
            let (word, _) = algorithm.take_up_to(0, now, u64::MAX);
            until_idle(algorithm, word)
        };
        let available = |algorithm: &A, word| algorithm.available(word, now);
        let left = |held| self.ask(held, version, available).unwrap_or(0);
        // Of the plan of the slot before.
        let mut all = None;
        let mut first = None;
        // What that one could still take, once it is known.
        let mut first_left = None;
        live.for_each(|slot| {
            let held = slot.1;
            let plan = held.plan();
            let all = match all {
                Some((of, all)) if of == plan => all,
                _ => {
                    let known = self.ask(held, version, spent).unwrap_or(0);
                    all = Some((plan, known));
                    known
                }
            };
            let until_idle = self.ask(held, version, until_idle).unwrap_or(u64::MAX);
            let turn = Turn {
                is_banned: held.state() == SlotKind::Banned,
                is_protected: held.is_protected(),
                spent: Spent::of(until_idle, all),
            };
            match first {
                Some((first_turn, _)) if turn > first_turn => {}
                Some((first_turn, (_, first_held))) if turn == first_turn => {
                    let has = left(held);
                    if has > *first_left.get_or_insert_with(|| left(first_held)) {
                        (first, first_left) = (Some((turn, slot)), Some(has));
                    }
                }
                _ => (first, first_left) = (Some((turn, slot)), None),
            }
        });
        first.map(|(_, slot)| slot)
    }
}
