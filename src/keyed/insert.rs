//! How a key comes into the table.
//!
//! A slot is first *claimed* for it, by a number that no other claim has; then all other slots where the key may be are
//! looked at again; and only if it is in none of them is the claim *established*, with the word after the first decision.
//! Of two claims for a key the one that comes first in the key's own order stays, and whoever establishes it ends the
//! other. Anybody who wants the key and finds it claimed does the same, so that nobody waits for who made the claim.
//! Between a claim and the look round is a fence: of two who claim at the same time at least one sees the other.

use super::core::Core;
use super::seen::Seen;
use super::slot::Content;
use super::spot::Spot;
use super::stats::Event;
use super::table::At;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;
use crate::primitive::{Ordering, fence, mistake};

/// A slot that can be claimed, and what becomes of what is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimable {
    pub(super) at: At,
    held: Content,
    /// A key leaves, and how.
    leaves: Option<Event>,
}

impl<A: Algorithm> Core<A> {
    /// A place for a key: one that is nobody's, else one whose key is idle; at home, if there is one; else as the overflow
    /// says.
    pub(super) fn choose(&self, seen: &Seen, now: Tick) -> Option<Claimable> {
        let of = |event| {
            move |(at, held)| Claimable {
                at,
                held,
                leaves: event,
            }
        };
        if let Some(free) = seen.free() {
            return Some(free).map(of(None));
        }
        // Who comes in is counted no earlier than others left: so those are idle who were idle then.
        // ORDERING: Relaxed. An old one finds fewer idle.
        let now = now.max(Tick::from_nanos(self.horizon.load(Ordering::Relaxed)));
        // Later than what was seen, of which so none is of a later one.
        let version = self.plans.version();
        let is_idle = |held| self.plans.is_idle(held, version, now) || mistake!(TakesWhoIsBusy);
        let idle = seen.idle(is_idle).map(of(Some(Event::TakenOver)));
        idle.or_else(|| self.make_room(seen, version, now))
    }

    /// A place that is somebody's: of the key that is nearest to idle, if it may be evicted (of one that was banned, if
    /// all were), or of another claim, whose owner may have stopped for ever.
    fn make_room(&self, seen: &Seen, version: u64, now: Tick) -> Option<Claimable> {
        let live = seen.slots().filter(|(_, held)| held.is_live());
        let nearest = match self.overflow {
            Overflow::Evict => live.min_by_key(|(_, held)| self.plans.turn(*held, version, now)),
            Overflow::Deny | Overflow::Admit => None,
        };
        if let Some((at, held)) = nearest {
            let leaves = Some(Event::Evicted);
            return Some(Claimable { at, held, leaves });
        }
        let (at, held) = seen.slots().find(|(_, held)| held.is_pending())?;
        let leaves = None;
        Some(Claimable { at, held, leaves })
    }

    /// Claims a place for a key. `None` if it has changed.
    pub(super) fn claim(&self, spot: &Spot, place: Claimable, now: Tick) -> Option<Content> {
        let is_idle = matches!(place.leaves, Some(Event::TakenOver));
        let afterwards = mistake!(RaisesAfterwards);
        let left_at = match is_idle {
            true => self.idle_since(place.held).unwrap_or(now),
            false => Tick::ZERO,
        };
        if !afterwards {
            self.raise(left_at);
        }
        let nonce = mistake!(NumbersAlike => 0, else self.events.nonce());
        let claim = Content::pending(spot.tag(), place.at.second, nonce);
        self.table.exchange(place.at, place.held, claim).ok()?;
        if afterwards {
            self.raise(left_at);
        }
        if let Some(event) = place.leaves {
            self.events.count(event);
        }
        Some(claim)
    }

    /// A tick since which an idle key has been idle, if it is known: as long ago as can be, so that who is late is
    /// counted no later than he must be.
    fn idle_since(&self, held: Content) -> Option<Tick> {
        let version = self.plans.version();
        let (_, since) = self.plans.turn(held, version, Tick::ZERO);
        self.plans.is_idle(held, version, since).then_some(since)
    }

    /// Says that a key leaves that has been idle since this tick.
    fn raise(&self, now: Tick) {
        let now = now.as_nanos();
        // ORDERING: Relaxed. What it is compared with may be old, which only writes the same again.
        if self.horizon.load(Ordering::Relaxed) < now {
            // ORDERING: Relaxed. The exchange that follows publishes it.
            // Model: loom-tests/tests/keyed_turnover.rs::who_is_late_gets_no_second_burst
            self.horizon.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Ends a claim, if it is still there.
    pub(super) fn give_up(&self, at: At, claim: Content) {
        let held = mistake!(GivesUpBlindly => self.table.load(at), else claim);
        let _ = self.table.exchange(at, held, Content::GIVEN_UP);
    }

    /// Whether a claim may be established: the key is nowhere else, and other claims for it have been ended. If so, the
    /// earliest tick at which the key may come into the table.
    pub(super) fn alone_since(&self, spot: &Spot, claim: At) -> Option<Tick> {
        // ORDERING: SeqCst. Of two who have claimed slots for the same key, or found them claimed, one sees what
        // the other has seen. It also comes before the neighbours that are skipped.
        // Model: loom-tests/tests/keyed.rs::two_insert_the_same_key
        fence(Ordering::SeqCst);
        let mut is_after = false;
        for (at, held) in self.table.look(spot).slots() {
            if at == claim {
                is_after = true;
            } else if held.is_of(spot.tag(), at.second) && !mistake!(LooksOnce) {
                let ends = held.is_pending() && is_after;
                if !ends {
                    return None;
                }
                let is_left = mistake!(LeavesOtherClaims);
                if !is_left && self.table.exchange(at, held, Content::GIVEN_UP).is_err() {
                    return None;
                }
            }
        }
        // ORDERING: Relaxed. Whoever saw that the key had left saw what was published before that.
        // Model: loom-tests/tests/keyed_turnover.rs::who_is_late_gets_no_second_burst
        let horizon = self.horizon.load(Ordering::Relaxed);
        Some(Tick::from_nanos(
            mistake!(IgnoresTheHorizon => 0, else horizon),
        ))
    }
}
