//! Decisions on keys: the key's slot is found, or the key is put into one, and the word there is changed.

use core::fmt;

use super::insert::Claimable;
use super::overflow::Overflow;
use super::plans::Plans;
use super::slot::{Content, State};
use super::spot::Spot;
use super::stats::{Event, Events};
use super::table::{At, Table, decide};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::deed::{Deed, Held};
use crate::outcome::Denied;
use crate::primitive::{AtomicU64, mistake, prefetch};

/// How often a key is tried to be put into the table, against others who take the same places, until there is said to
/// be no room.
const ROUNDS: usize = 32;

/// What a grant that nobody has recorded says of itself: nothing of it can be given back.
const UNRECORDED: u32 = u32::MAX;

/// All of a table but how keys are hashed and time is read.
pub(super) struct Core<A> {
    pub(super) table: Table,
    pub(super) plans: Plans<A>,
    pub(super) overflow: Overflow,
    pub(super) events: Events,
    /// The latest tick at which an idle key left. Who comes into the table does so at this tick or a later one: it may
    /// be the one that left.
    pub(super) horizon: AtomicU64,
}

/// Who is asked, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) spot: Spot,
    pub(super) plan: u8,
    pub(super) now: Tick,
}

/// What a look for a key finds.
enum Found {
    Live(At, Content),
    Pending(At, Content),
    Nothing,
}

/// What is said of a fresh word.
enum Fresh<T> {
    /// This, and nothing has to be kept.
    Said(T),
    /// It has to be kept.
    Keep,
}

/// The answer of a deed, or its refusal.
pub(super) type Outcome<A, D> = Result<<D as Deed<A>>::Answer, <D as Deed<A>>::Refusal>;

impl<A> Core<A> {
    pub(super) fn new(table: Table, plans: Plans<A>) -> Self {
        Self {
            table,
            plans,
            overflow: Overflow::default(),
            events: Events::new(),
            horizon: AtomicU64::new(0),
        }
    }

    /// The same, with no key in it.
    pub(super) fn emptied(self) -> Self {
        if self.events.tracked() == 0 {
            // As most are, and nobody has touched their memory yet.
            return self;
        }
        for (at, held) in self.table.all() {
            let _ = self.table.exchange(at, held, Content::GIVEN_UP);
            if held.is_live() {
                self.events.count(Event::Forgotten);
            }
        }
        self
    }

    /// Asks for the lines of a key that is soon needed.
    #[inline(always)]
    pub(super) fn expect(&self, spot: &Spot) {
        for line in [spot.first, spot.second] {
            if let Some(line) = self.table.line(line) {
                prefetch(line);
            }
        }
    }
}

impl<A: Algorithm> Core<A> {
    /// Does a deed on a key's word: the first turn, where the key is in a home line, of the plan that is asked for,
    /// which has never been changed.
    #[inline(always)]
    pub(super) fn update<D: Deed<A>>(&self, asked: Asked, mut deed: D) -> Outcome<A, D> {
        if let Some(outcome) = self.first_turn(&asked, &mut deed) {
            return outcome;
        }
        self.go_round(&asked, deed)
    }

    /// The first turn alone.
    #[inline(always)]
    pub(super) fn try_once<D: Deed<A>>(&self, asked: Asked, mut deed: D) -> Option<D::Answer> {
        self.first_turn(&asked, &mut deed)?.ok()
    }

    #[inline(always)]
    fn first_turn<D: Deed<A>>(&self, asked: &Asked, deed: &mut D) -> Option<Outcome<A, D>> {
        if D::BANS {
            return None;
        }
        let plan = self.plans.get(asked.plan)?;
        let first = Content::live(asked.spot.tag, false, asked.plan, 0, 0).label();
        let second = Content::live(asked.spot.tag, true, asked.plan, 0, 0).label();
        let (slot, held) = self.table.find(&asked.spot, first, second)?;
        // Looked at afterwards, so that it was so when the slot was looked at.
        if self.plans.version() != 0 {
            return None;
        }
        let word = Held::new(held.word, asked.now, part_of(asked.plan, 0));
        let (next, answer) = match deed.run_short(plan.first(), word)? {
            Ok(done) => done,
            Err(refusal) => return Some(Err(refusal)),
        };
        if !deed.leaves(held.word, next) {
            decide(slot, held, held.with_word(next)).ok()?;
        }
        Some(Ok(answer))
    }

    /// All other turns.
    #[cold]
    #[inline(never)]
    fn go_round<D: Deed<A>>(&self, asked: &Asked, mut deed: D) -> Outcome<A, D> {
        if self.plans.get(asked.plan).is_none() {
            return self.unrecorded(asked, deed, |n| Denied::never(n, 0));
        }
        let (mut rounds, mut is_full) = (0, false);
        while rounds < ROUNDS {
            // There was no room, and it has been looked for again since: it may be one of those that take it.
            let was_full = core::mem::take(&mut is_full);
            let done = match self.look_for(&asked.spot) {
                Found::Nothing if was_full => break,
                // Who finds it and can't change it was overtaken by somebody who did.
                Found::Live(at, held) => match self.decide_on(asked, at, held, &mut deed) {
                    None => continue,
                    done => done,
                },
                Found::Pending(..) if mistake!(WaitsForClaims) => None,
                Found::Pending(at, held) => match self.of_fresh(asked, &mut deed) {
                    Some(Fresh::Said(outcome)) => Some(outcome),
                    _ => self.establish(asked, at, held, &mut deed),
                },
                Found::Nothing => match self.of_fresh(asked, &mut deed) {
                    Some(Fresh::Said(outcome)) => Some(outcome),
                    _ => match self.choose(&asked.spot, asked.now) {
                        Some(place) => self.insert(asked, place, &mut deed),
                        None if mistake!(BelievesTheFirstLook) => break,
                        None => {
                            is_full = true;
                            None
                        }
                    },
                },
            };
            if let Some(outcome) = done {
                return outcome;
            }
            rounds += 1;
        }
        self.without_room(asked, deed)
    }

    /// Where the key is, or is to be.
    fn look_for(&self, spot: &Spot) -> Found {
        let mut pending = None;
        let live = self.table.visit(spot, |at, held| {
            if !held.is_of(spot.tag, at.second) {
                return None;
            }
            if held.is_live() {
                return Some((at, held));
            }
            pending = pending.or(Some((at, held)));
            None
        });
        match (live, pending) {
            (Some((at, held)), _) => Found::Live(at, held),
            (None, Some((at, held))) => Found::Pending(at, held),
            (None, None) => Found::Nothing,
        }
    }

    /// Does a deed on a slot's word. `None` if that has changed.
    fn decide_on<D: Deed<A>>(
        &self,
        asked: &Asked,
        at: At,
        held: Content,
        deed: &mut D,
    ) -> Option<Outcome<A, D>> {
        let of = if D::BANS { held.plan() } else { asked.plan };
        let plan = self.plans.get(of)?;
        // Later than the slot, whose version is so no later than this.
        let version = self.plans.version();
        let word = self.plans.brought(held, of, version, asked.now)?;
        let mut view = Held::new(word, asked.now, part_of(of, version));
        view.is_banned = held.state() == State::Banned;
        let outcome = plan.with(version, |algorithm| deed.run(algorithm, view))?;
        let next = match outcome {
            Ok((next, answer)) if D::BANS || !deed.leaves(word, next) => Ok((next, answer)),
            said => Err(said.map(|(_, answer)| answer)),
        };
        match next {
            Ok((next, answer)) => {
                let state = match D::BANS {
                    true => State::Banned,
                    false => held.state().after(D::GRANTS),
                };
                let next = Content::live(asked.spot.tag, at.second, of, version, next);
                let next = next.with_state(state);
                self.table.exchange(at, held, next).ok()?;
                Some(Ok(answer))
            }
            // It was so at one moment, if it still is.
            Err(said) => (self.table.load(at) == held).then_some(said),
        }
    }

    /// What is said of a key that is not in the table. `None` if the plan is changed just now.
    fn of_fresh<D: Deed<A>>(&self, asked: &Asked, deed: &mut D) -> Option<Fresh<Outcome<A, D>>> {
        let plan = self.plans.get(asked.plan)?;
        let version = self.plans.version();
        plan.with(version, |algorithm| {
            let word = first_word(algorithm, asked.now);
            let view = Held::new(word, asked.now, part_of(asked.plan, version));
            match deed.run(algorithm, view) {
                Ok((next, answer)) if !D::BANS && deed.leaves(word, next) => {
                    Fresh::Said(Ok(answer))
                }
                // It stays as it is, but for a word whose time begins.
                Err(refusal) if word == 0 => Fresh::Said(Err(refusal)),
                _ => Fresh::Keep,
            }
        })
    }

    /// Puts a key into a place.
    fn insert<D: Deed<A>>(
        &self,
        asked: &Asked,
        place: Claimable,
        deed: &mut D,
    ) -> Option<Outcome<A, D>> {
        let claimed = self.claim(&asked.spot, place, asked.now)?;
        let done = self.establish(asked, place.at, claimed, deed);
        if done.is_none() {
            self.give_up(place.at, claimed);
        }
        done
    }

    /// Makes a claim the key's slot, with the deed done. `None` if it can't be, or if the key is in the table now and
    /// the deed is still to be done.
    fn establish<D: Deed<A>>(
        &self,
        asked: &Asked,
        at: At,
        claimed: Content,
        deed: &mut D,
    ) -> Option<Outcome<A, D>> {
        let plan = self.plans.get(asked.plan)?;
        let early = mistake!(ReadsTheVersionFirst).then(|| self.plans.version());
        let now = self.alone_since(&asked.spot, at)?.max(asked.now);
        // Later than the claim, and than the fence that follows it: who goes through this part of the table after that
        // version has been brought ends the claim.
        let version = early.unwrap_or_else(|| self.plans.version());
        let (next, answer) = plan.with(version, |algorithm| {
            let word = first_word(algorithm, now);
            let view = Held::new(word, now, part_of(asked.plan, version));
            match deed.run(algorithm, view) {
                Ok((next, answer)) => (next, Some(answer)),
                // Said again of the word that is kept.
                Err(_) => (word, None),
            }
        })?;
        let next = Content::live(asked.spot.tag, at.second, asked.plan, version, next);
        let next = match D::BANS {
            true => next.with_state(State::Banned),
            false => next,
        };
        self.table.exchange(at, claimed, next).ok()?;
        self.events.count(Event::Inserted);
        answer.map(Ok)
    }

    /// What is said of a key for which there is no room.
    fn without_room<D: Deed<A>>(&self, asked: &Asked, deed: D) -> Outcome<A, D> {
        self.events.count(Event::NoRoom);
        self.unrecorded(asked, deed, Denied::no_room)
    }

    /// Refuses it, or answers as for a fresh key, which nobody keeps.
    fn unrecorded<D: Deed<A>>(
        &self,
        asked: &Asked,
        mut deed: D,
        why: fn(u64) -> Denied,
    ) -> Outcome<A, D> {
        let plan = self.plans.get(asked.plan);
        if self.overflow != Overflow::Admit || D::BANS || plan.is_none() {
            if let Some(refusal) = deed.refused(why) {
                return Err(refusal);
            }
        }
        self.now_in_force(asked.plan, |algorithm| {
            let word = first_word(algorithm, asked.now);
            let view = Held::new(word, asked.now, UNRECORDED);
            deed.run(algorithm, view).map(|(_, answer)| answer)
        })
    }

    /// Asks the plan as it is now, or the first one if there is no such plan.
    pub(super) fn now_in_force<T>(&self, plan: u8, mut ask: impl FnMut(&A) -> T) -> T {
        let plan = self.plans.get(plan).unwrap_or(self.plans.first());
        loop {
            // A version that is over has been followed by another one.
            if let Some(said) = plan.with(self.plans.version(), &mut ask) {
                return said;
            }
        }
    }
}

/// The word of a key that comes into the table.
pub(super) fn first_word<A: Algorithm>(algorithm: &A, now: Tick) -> u64 {
    algorithm.initial_word(now).min(crate::cell::UNSTARTED - 1)
}

/// By which a grant knows what granted it: its plan and version, which comes again after 2^28 changes.
#[inline(always)]
const fn part_of(plan: u8, version: u64) -> u32 {
    (plan as u32) << 28 | version as u32 & ((1 << 28) - 1)
}

impl<A: fmt::Debug> fmt::Debug for Core<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("plans", &self.plans)
            .field("overflow", &self.overflow)
            .field("tracked", &self.events.tracked())
            .finish_non_exhaustive()
    }
}
