//! The order in which a composition takes from its members.

use super::MAX_MEMBERS;
use super::member::Member;
use super::members::Members;
use crate::clock::Clock;
use crate::compose::error::ComposeError;
use crate::store::Place;
use crate::sync::inject_fault;

/// The order in which a composition takes from its members: by their places, with a member that
/// can't undo last. So all compositions take from the same limits in the same order, and if two of
/// them compete for permits, one gets them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Members, in order: each limit once.
    list: [u8; MAX_MEMBERS],
    /// The length of the list.
    limits: u8,
    /// For each member, the first member that is the same limit.
    same_as: [u8; MAX_MEMBERS],
    /// How many members there are, including limits that appear twice.
    members: u8,
    /// Whether the holder of a grant leaves a member.
    leaves: bool,
}

/// How deep a member may be nested: a [`Held`](super::Held) has this many bits to remember
/// choices.
const MAX_DEPTH: u32 = u32::BITS;

/// What the order needs to know of a member.
struct Described {
    place: Place,
    can_undo: bool,
    depth: u32,
    leaves: bool,
    clock: Option<usize>,
    /// Whether all clocks inside the member are the same.
    clocks_agree: bool,
}

impl Described {
    fn of<C: Clock>(member: &dyn Member<C>) -> Self {
        let (mut first, mut clocks_agree) = (None, true);
        member.each_clock(&mut |clock| {
            let clock = clock.identity();
            clocks_agree &= *first.get_or_insert(clock) == clock;
        });
        Self {
            place: member.place(),
            can_undo: member.can_undo(),
            depth: member.depth(),
            leaves: member.leaves(),
            clock: first,
            clocks_agree,
        }
    }
}

impl Order {
    /// Finds the order of these members.
    pub(super) fn of<C: Clock, M: Members<C>>(members: &M) -> Result<Self, ComposeError> {
        let count = members.count();
        if count == 0 {
            return Err(ComposeError::ZeroMembers);
        }
        if count > MAX_MEMBERS {
            return Err(ComposeError::TooManyMembers {
                members: count,
                max: MAX_MEMBERS,
            });
        }
        let mut order = Self {
            list: [0; MAX_MEMBERS],
            limits: 0,
            same_as: [0; MAX_MEMBERS],
            members: count as u8,
            leaves: false,
        };
        let describe = |index| members.with(index, Described::of);
        let (mut clock, mut last) = (None, None);
        for index in 0..count {
            let Some(member) = describe(index) else {
                continue;
            };
            order.leaves |= member.leaves;
            if member.depth > MAX_DEPTH {
                return Err(ComposeError::NestedTooDeep {
                    member: index,
                    depth: member.depth,
                    max: MAX_DEPTH,
                });
            }
            if !member.clocks_agree {
                return Err(ComposeError::ClocksDiffer {
                    member: index,
                    other: index,
                });
            }
            match (clock, member.clock) {
                (Some((_, known)), Some(clock)) if clock == known => {}
                (Some((other, _)), Some(_)) => {
                    return Err(ComposeError::ClocksDiffer {
                        member: index,
                        other,
                    });
                }
                (None, Some(known)) => clock = Some((index, known)),
                (_, None) => {}
            }
            let same = order.limits().find(|first| {
                describe(*first).is_some_and(|first| first.place.is_same(&member.place))
            });
            if let Some(same_as) = order.same_as.get_mut(index) {
                *same_as = same.unwrap_or(index) as u8;
            }
            if same.is_some() {
                continue;
            }
            if !member.can_undo {
                if let Some(other) = last {
                    return Err(ComposeError::SecondWithoutUndo {
                        member: index,
                        other,
                    });
                }
                last = Some(index);
            }
            if let Some(next) = order.list.get_mut(usize::from(order.limits)) {
                *next = index as u8;
                order.limits += 1;
            }
        }
        let key = |index: &u8| {
            let member = describe(usize::from(*index));
            member.map(|member| (!member.can_undo, member.place))
        };
        let sorts = !inject_fault!(TakesInTheCallersOrder); // FAULT
        match order.list.get_mut(..usize::from(order.limits)) {
            Some(list) if sorts => list.sort_unstable_by_key(key),
            _ => {}
        }
        Ok(order)
    }

    /// Returns whether the holder of a grant leaves a member.
    #[inline(always)]
    pub(super) const fn leaves(&self) -> bool {
        self.leaves
    }

    /// Returns how many limits there are: each counts once.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.limits as usize
    }

    /// Returns how many members there are.
    #[inline(always)]
    pub(super) const fn members(&self) -> usize {
        self.members as usize
    }

    /// Returns the member that this position takes from.
    #[inline(always)]
    pub(super) fn get(&self, position: usize) -> usize {
        self.list
            .get(position)
            .map_or(0, |member| usize::from(*member))
    }

    /// Returns the position that takes from this member. `None` if another one with a lower number
    /// is the same limit.
    pub(super) fn position_of(&self, member: usize) -> Option<usize> {
        self.limits().position(|other| other == member)
    }

    /// Returns the members in their order.
    #[inline(always)]
    pub(super) fn limits(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let list = self.list.get(..self.len()).unwrap_or_default();
        list.iter().map(|member| usize::from(*member))
    }

    /// Returns what a request takes from this member, for all members that are the same limit.
    #[inline(always)]
    pub(super) fn sum(&self, member: usize, cost: impl Fn(usize) -> u64) -> u64 {
        match self.limits == self.members {
            true => cost(member),
            false => self.sum_of_same(member, cost),
        }
    }

    #[inline(never)]
    fn sum_of_same(&self, member: usize, cost: impl Fn(usize) -> u64) -> u64 {
        let same = self.same_as.iter().take(self.members()).enumerate();
        let costs = same.filter(|(_, first)| usize::from(**first) == member);
        costs.fold(0, |sum, (index, _)| sum.saturating_add(cost(index)))
    }
}
