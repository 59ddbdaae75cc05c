//! How a key comes into the table.
//!
//! A slot is first *claimed* for it, by a number that no other claim has; then all other slots where the key may be are
//! looked at again; and only if it is in none of them is the claim *established*, with the word after the first decision.
//! Of two claims for a key the one that comes first in the key's own order stays, and whoever establishes it ends the
//! other. Anybody who wants the key and finds it claimed does the same, so that nobody waits for who made the claim.
//! Between a claim and the look round is a fence: of two who claim at the same time at least one sees the other.

use super::core::Core;
use super::overflow::Overflow;
use super::slot::Content;
use super::spot::Spot;
use super::stats::Event;
use super::table::At;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::primitive::{Ordering, SLOTS, fence, mistake};

/// A slot that can be claimed, and what becomes of what is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimable {
    pub(super) at: At,
    held: Content,
    /// A key leaves, and how.
    leaves: Option<Event>,
}

/// What is in a line.
#[derive(Debug, Clone, Copy, Default)]
struct Survey {
    /// How many slots are in use.
    used: usize,
    /// A slot that is nobody's.
    free: Option<Claimable>,
    /// One whose key is idle.
    idle: Option<Claimable>,
}

impl Survey {
    fn room(self) -> Option<Claimable> {
        self.free.or(self.idle)
    }
}

/// A line with fewer slots in use is as good as any.
const FEW: usize = SLOTS / 2;

impl<A: Algorithm> Core<A> {
    /// A place for a key: one that is free or whose key is idle, in the home line that is less in use, else in a
    /// neighbour; else as the overflow says.
    pub(super) fn choose(&self, spot: &Spot, now: Tick) -> Option<Claimable> {
        let [first, second, third, fourth] = spot.lines();
        let homes = [first, second].map(|line| self.survey(spot, line, now));
        let room = better(homes).or_else(|| {
            let neighbours = [third, fourth].map(|line| self.survey(spot, line, now));
            better(neighbours)
        });
        room.or_else(|| self.make_room(spot, now))
    }

    fn survey(&self, spot: &Spot, line: Option<(usize, bool)>, now: Tick) -> Survey {
        let mut survey = Survey::default();
        let Some((line, second)) = line else {
            survey.used = SLOTS;
            return survey;
        };
        for turn in 0..SLOTS {
            let at = At {
                line,
                place: (turn ^ spot.preferred(second)) % SLOTS,
                second,
            };
            let held = self.table.load(at);
            let leaves = |event| Claimable {
                at,
                held,
                leaves: event,
            };
            if held.is_of(spot.tag, second) && !mistake!(EvictsItself) {
                survey.used += 1;
            } else if held.is_free() {
                survey.free = survey.free.or(Some(leaves(None)));
            } else if held.is_live() && (self.plans.is_idle(held, now) || mistake!(TakesWhoIsBusy))
            {
                survey.idle = survey.idle.or(Some(leaves(Some(Event::TakenOver))));
            } else {
                survey.used += 1;
            }
        }
        survey
    }

    /// A place that is somebody's: of the key that is nearest to idle, if it may be evicted, or of another claim, whose
    /// owner may have stopped for ever.
    fn make_room(&self, spot: &Spot, now: Tick) -> Option<Claimable> {
        let evicts = self.overflow == Overflow::Evict;
        let (mut nearest, mut pending) = (None, None);
        for (line, second) in spot.lines().into_iter().flatten() {
            for place in 0..SLOTS {
                let at = At {
                    line,
                    place,
                    second,
                };
                let held = self.table.load(at);
                if held.is_of(spot.tag, second) && !mistake!(EvictsItself) {
                    // It has come since it was looked for.
                    return None;
                }
                if held.is_pending() {
                    pending = Some(Claimable {
                        at,
                        held,
                        leaves: None,
                    });
                } else if held.is_live() && evicts {
                    let idle_at = self.plans.idle_at(held, now);
                    if nearest.is_none_or(|(soonest, _)| idle_at < soonest) {
                        let leaves = Some(Event::Evicted);
                        nearest = Some((idle_at, Claimable { at, held, leaves }));
                    }
                }
            }
        }
        nearest.map(|(_, place)| place).or(pending)
    }

    /// Claims a place for a key. `None` if it has changed.
    pub(super) fn claim(&self, spot: &Spot, place: Claimable, now: Tick) -> Option<Content> {
        let is_idle = matches!(place.leaves, Some(Event::TakenOver));
        let afterwards = mistake!(RaisesAfterwards);
        if is_idle && !afterwards {
            self.raise(now);
        }
        let nonce = mistake!(NumbersAlike => 0, else self.events.nonce());
        let claim = Content::pending(spot.tag, place.at.second, nonce);
        self.table.exchange(place.at, place.held, claim).ok()?;
        if is_idle && afterwards {
            self.raise(now);
        }
        if let Some(event) = place.leaves {
            self.events.count(event);
        }
        Some(claim)
    }

    /// Says that a key leaves as idle at this tick.
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
        let mut seen = false;
        let other = self.table.visit(spot, |at, held| {
            if at == claim {
                seen = true;
                return None;
            }
            if !held.is_of(spot.tag, at.second) || mistake!(LooksOnce) {
                return None;
            }
            let ends = held.is_pending() && seen;
            if ends && mistake!(LeavesOtherClaims) {
                return None;
            }
            match ends && self.table.exchange(at, held, Content::GIVEN_UP).is_ok() {
                true => None,
                false => Some(()),
            }
        });
        if other.is_some() {
            return None;
        }
        // ORDERING: Relaxed. Whoever saw that the key had left saw what was published before that.
        // Model: loom-tests/tests/keyed_turnover.rs::who_is_late_gets_no_second_burst
        let horizon = self.horizon.load(Ordering::Relaxed);
        Some(Tick::from_nanos(
            mistake!(IgnoresTheHorizon => 0, else horizon),
        ))
    }
}

/// The room in the line that is less in use, or in the first of two that are hardly in use.
fn better([first, second]: [Survey; 2]) -> Option<Claimable> {
    let prefer_first = first.used < FEW || first.used <= second.used;
    match (first.room(), second.room()) {
        (Some(first), None) => Some(first),
        (Some(first), Some(_)) if prefer_first => Some(first),
        (_, second) => second,
    }
}
