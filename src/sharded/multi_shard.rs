//! Decisions that need more than the thread's own shard. The shards' words are the only state: a
//! thread that stops in the middle blocks no other thread, and the permits that it took stay
//! consumed.
//!
//! # Why shards are kept level
//!
//! A full shard can't refill, so the limiter loses permits while one shard is full and another is
//! not. Therefore a request that would leave its own shard less than seven eighths full scans all
//! shards. If one shard would still be about as full as the others afterwards, the request takes
//! from that shard alone. Otherwise it takes from all shards above a common level.
//!
//! A request for more than a quarter of a shard takes the same share from each shard, so that their
//! words stay equal. If shards differed by a fraction of a permit, a request that comes just in
//! time for one word would be too early for the shards. For the same reason, if a period begins
//! with a permit, a request that finds all shards full begins the periods of all.
//!
//! Greedy intervals are the exception: their small requests empty one shard after another. If they
//! left a fraction in each shard, two threads that gather the last fractions could lose a permit to
//! each other.
//!
//! A scan for each request would be slow while a burst is used up. So a scan stores a limit for its
//! thread's own shard: the word of the fullest shard, plus a 32nd of what a shard can hold. (A
//! larger word has fewer permits. The algorithm must order its words: [`Split::is_ordered`].)
//! Requests take from their own shard, and then from the fullest one, without another scan until
//! the word exceeds the limit.
//!
//! No limit is stored while the fullest shard is nearly full, because a full shard loses what it
//! would refill. If the word is smaller than the one that was stored for the fullest shard, permits
//! were returned since the scan. They may have been returned to other shards too, so the request
//! scans again.

use core::time::Duration;

use super::hint::Noted;
use super::shard::{MAX_SHARDS, Shard};
use super::view::ShardedView;
use crate::algorithm::Split;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};
use crate::store::AtomicWord;

/// The wait that a denial reports if permits became available meanwhile.
const SOON: Duration = Duration::from_nanos(1);

/// How many times a request tries to take from several shards before it is denied. Concurrent
/// requests can make each other fail, and none may retry forever.
const ATTEMPTS: u32 = 4;

/// If at most an eighth of the burst is left, requests empty one shard after the other instead of
/// keeping them level. No other request takes from an empty shard, so a failed request can roll
/// back everything.
const SCARCE: u64 = 8;

/// A request for more than a quarter of a shard takes the same share from all shards.
const LARGE: u64 = 4;

/// The outcome of an attempt to take permits.
enum Attempt {
    Done(Granted),
    /// Another thread was faster, and nothing was taken here.
    Lost,
    /// The shards had less than the scan found. The request has rolled back.
    TooFew,
    /// One shard counts at a later tick than the others: try again at that tick.
    From(Tick),
}

/// The words of this many shards fit in two cache lines.
const FEW: usize = 16;

/// The result of a scan that reads each shard once, in fractions of a permit.
struct Survey<const N: usize> {
    /// The words, by shard number.
    words: [u64; N],
    total: u64,
    /// The fractions in the thread's own shard.
    own: u64,
    /// The fractions in the fullest shard, and its distance from the thread's own. If several are
    /// equally full, it is the nearest.
    most: u64,
    fullest: usize,
}

/// A plan to take from several shards.
struct Plan<const N: usize> {
    /// The fractions in each shard, by shard number.
    have: [u64; N],
    /// The fractions to leave in each shard.
    leave: u64,
}

impl<A: Split> ShardedView<'_, A> {
    /// Makes a decision that the first attempt did not make.
    #[cold]
    #[inline(never)]
    pub(super) fn acquire(self, n: u64) -> Result<Granted, Denied> {
        if n == 0 {
            return self.acquire_none();
        }
        // Denies a request for more than the limiter can ever have.
        let _ = self.whole.step(0, self.now, n)?;
        let noted = self.hint.note(self.now);
        let (number, shard) = self.neighbor(0).ok_or(Denied::stuck(n))?;
        let needs_no_look = |word, granted: &Granted| shard.needs_no_look(word, granted);
        let own = match shard.take_if(self.now, n, needs_no_look) {
            Ok(granted) => return Ok(granted.with_source(number)),
            Err(word) => word,
        };
        if let Some(granted) = self.take_from_fullest(shard, n) {
            return Ok(granted);
        }
        if self.shards.len() <= FEW {
            self.acquire_of::<FEW>(n, own, noted)
        } else {
            self.acquire_of::<MAX_SHARDS>(n, own, noted)
        }
    }

    /// Takes from the shard that was the fullest at the last scan, if that needs no new scan.
    fn take_from_fullest(&self, own: &Shard<A>, n: u64) -> Option<Granted> {
        let (number, shard) = self.neighbor(own.fullest_distance()?)?;
        let granted = own.take_from(shard, self.now, n)?;
        Some(granted.with_source(number))
    }

    /// Decides with a scan of all shards.
    #[inline(never)]
    fn acquire_of<const N: usize>(
        self,
        n: u64,
        own: u64,
        noted: Option<Noted>,
    ) -> Result<Granted, Denied> {
        let wanted = |there| if there < n { 0 } else { n };
        let denied = |look: Option<&Survey<N>>| match look.map(|look| self.due_of(&look.words, n)) {
            Some(None) => Denied::stuck(n),
            Some(Some(due)) if due > self.now => {
                match noted {
                    Some(noted) if n == 1 && self.whole.never_falls() => self.hint.set(noted, due),
                    _ => {}
                }
                Denied::later(n, due.saturating_since(self.now))
            }
            // Other threads interfered, or the shards have fewer permits at a later tick.
            _ => Denied::later(n, SOON),
        };
        self.take::<N, _>(Some(own), wanted, denied)
    }

    /// Takes no permit, from a shard that is not in debt.
    fn acquire_none(self) -> Result<Granted, Denied> {
        for (number, shard) in self.nearest_first() {
            if let Ok(granted) = shard.at(self.now).try_acquire_n(0) {
                return Ok(granted.of_permits(0, self.permit()).with_source(number));
            }
        }
        Err(match self.due(0) {
            Some(due) if due <= self.now => Denied::later(0, SOON),
            Some(due) => Denied::later(0, due.saturating_since(self.now)),
            None => Denied::stuck(0),
        })
    }

    /// Takes up to `n` permits. Returns `None` if no permit is available.
    pub(super) fn take_some(self, n: u64) -> Option<Granted> {
        // A later attempt may be at a later tick, at which shards may have more permits. The
        // request takes no more than there were at its own tick.
        let mut most = n;
        let wanted = |there: u64| {
            most = most.min(there);
            most
        };
        self.hint.note(self.now);
        if self.shards.len() <= FEW {
            self.take::<FEW, _>(None, wanted, |_| ()).ok()
        } else {
            self.take::<MAX_SHARDS, _>(None, wanted, |_| ()).ok()
        }
    }

    /// Scans all shards, asks `wanted` how many of the available permits to take, and takes them
    /// from one shard or several. `own` is the word of the thread's own shard, if the caller has
    /// just read it.
    ///
    /// # Errors
    ///
    /// Returns the result of `denied`. Its argument is the scan if `wanted` returned 0, and `None`
    /// if other threads were faster in every attempt.
    #[inline(always)]
    fn take<const N: usize, E>(
        self,
        mut own: Option<u64>,
        mut wanted: impl FnMut(u64) -> u64,
        denied: impl Fn(Option<&Survey<N>>) -> E,
    ) -> Result<Granted, E> {
        let (mut then, mut left) = (self, ATTEMPTS);
        while left > 0 {
            let look = then.look(own.take());
            let n = wanted(look.total / self.permit());
            if n == 0 {
                return Err(denied(Some(&look)));
            }
            then.store_look(&look);
            match then.take_of(n, &look) {
                Attempt::Done(granted) => return Ok(granted.of_permits(n, self.permit())),
                Attempt::Lost => {}
                // Each of these ticks is later than the one before. None is later than the tick of
                // the shard that is furthest ahead.
                Attempt::From(tick) => then.now = tick,
                Attempt::TooFew => left -= 1,
            }
        }
        Err(denied(None))
    }

    #[inline(always)]
    fn look<const N: usize>(&self, own: Option<u64>) -> Survey<N> {
        let mut look = Survey {
            words: [0; N],
            total: 0,
            own: 0,
            most: 0,
            fullest: 0,
        };
        let mut distance = 0;
        while let Some((number, shard)) = self.neighbor(distance) {
            let word = match own {
                Some(own) if distance == 0 => own,
                _ => shard.cell().load(),
            };
            let have = shard.algorithm().available(word, self.now);
            if let Some(place) = look.words.get_mut(number as usize) {
                *place = word;
            }
            look.total = look.total.saturating_add(have);
            if distance == 0 {
                look.own = have;
            }
            if have > look.most {
                (look.most, look.fullest) = (have, distance);
            }
            distance += 1;
        }
        look
    }

    /// Stores what later requests from this shard need to know about the scan.
    #[inline(always)]
    fn store_look<const N: usize>(&self, look: &Survey<N>) {
        let (own, fullest) = (self.neighbor(0), self.neighbor(look.fullest));
        if let (Some((_, own)), Some((number, _))) = (own, fullest) {
            let word = look.words.get(number as usize).copied();
            own.store_look(word.unwrap_or_default(), look.fullest, self.now);
        }
    }

    /// Takes from the thread's own shard or from the fullest, if that keeps the shards level;
    /// otherwise from several.
    #[inline(never)]
    fn take_of<const N: usize>(&self, n: u64, look: &Survey<N>) -> Attempt {
        let (permit, shards) = (self.permit(), self.shards.len() as u64);
        let wanted = n.saturating_mul(permit);
        let uneven = match self.begins_periods(look, wanted) {
            true => 0,
            false => self.may_be_uneven(n),
        };
        let mean = look.total.saturating_sub(wanted) / shards.max(1);
        let is_level = |have: u64| match have.checked_sub(wanted) {
            Some(left) => left.saturating_add(uneven) >= mean,
            None => false,
        };
        let distance = match (is_level(look.own), is_level(look.most)) {
            (true, _) => 0,
            (_, true) => look.fullest,
            _ => {
                let Some(plan) = self.plan(look, wanted, uneven) else {
                    return Attempt::Lost;
                };
                return match self.latest_of(look, &plan, wanted) {
                    Some(tick) => Attempt::From(tick),
                    None => self.gather_from(0, &plan, wanted, None),
                };
            }
        };
        let one = self.neighbor(distance);
        match one.map(|(number, shard)| (number, shard.at(self.now).try_acquire_n(wanted))) {
            Some((number, Ok(granted))) => Attempt::Done(granted.with_source(number)),
            _ => Attempt::Lost,
        }
    }

    /// Returns how much less than the others a shard may have after a request took from it, in
    /// fractions of a permit. A smaller result makes requests take from more shards. A larger one
    /// makes it more likely that one shard is full while another is not.
    ///
    /// It is 0 if the request is for more than a quarter of a shard. Then all shards give the same
    /// share, their words stay equal, and they grant at the same tick as one word would. Few such
    /// requests fit in a shard, so each that comes a fraction too early would count much. (If there
    /// are more than four shards for each permit of the request, it takes from fewer shards. Two
    /// threads that each take from all shards could lose a permit to each other.)
    fn may_be_uneven(&self, n: u64) -> u64 {
        let (permit, shards) = (self.permit(), self.shards.len() as u64);
        let share = permit / n.max(1);
        match self.full() < n.saturating_mul(permit).saturating_mul(LARGE) {
            true => share.saturating_sub((permit / shards.max(1)).saturating_mul(4)),
            false => share.saturating_add(self.full() / 64),
        }
    }

    /// Returns whether a request begins the periods of all shards, because all are full. It takes
    /// the same share from each, so that all periods begin and end at the same ticks.
    fn begins_periods<const N: usize>(&self, look: &Survey<N>, wanted: u64) -> bool {
        let all = self.full().saturating_mul(self.shards.len() as u64);
        let first = self.shards.first();
        look.total == all
            && first.is_some_and(|shard| shard.algorithm().begins_with_a_permit())
            && !self.empties_one_by_one(wanted)
    }

    /// Returns whether a request empties one shard after another: if it is small, and all shards
    /// are refilled at the same tick. Then no other thread takes from the shards that it has
    /// emptied.
    fn empties_one_by_one(&self, wanted: u64) -> bool {
        let shards = (self.shards.len() as u64).max(1);
        let first = self.shards.first();
        wanted / shards <= self.full() / 4
            && first.is_some_and(|shard| !shard.algorithm().is_steady())
    }

    /// Returns the number of fractions in a full shard.
    fn full(&self) -> u64 {
        self.shards.first().map_or(0, |shard| shard.full())
    }

    /// Returns the first tick at which all shards together have `n` permits.
    pub(super) fn due(&self, n: u64) -> Option<Tick> {
        let _ = self.whole.step(0, self.now, n).ok()?;
        if self.shards.len() <= FEW {
            self.due_of(&self.look::<FEW>(None).words, n)
        } else {
            self.due_of(&self.look::<MAX_SHARDS>(None).words, n)
        }
    }

    /// Returns the first tick at which these words together have `n` permits. The caller ensures
    /// that the limiter can ever have that many.
    fn due_of(&self, words: &[u64], n: u64) -> Option<Tick> {
        let words = words.get(..self.shards.len())?;
        let algorithm = self.shards.first()?.algorithm();
        if n == 0 {
            let due = |word: &u64| algorithm.due(*word, self.now, 0);
            return words.iter().filter_map(due).min();
        }
        algorithm.due_together(words, self.now, n.saturating_mul(self.permit()))
    }

    /// Plans to take from the fullest shards, so that all are about equally full afterwards.
    fn plan<const N: usize>(&self, look: &Survey<N>, wanted: u64, uneven: u64) -> Option<Plan<N>> {
        let mut have = [0; N];
        for ((have, word), shard) in have.iter_mut().zip(&look.words).zip(self.shards) {
            *have = shard.algorithm().available(*word, self.now);
        }
        let shards = (self.shards.len() as u64).max(1);
        let is_scarce = look.total / shards <= self.full() / SCARCE;
        if is_scarce || self.empties_one_by_one(wanted) {
            return Some(Plan { have, leave: 0 });
        }
        let of_those_above = |level: u64| {
            let above = have.iter().filter(|have| **have > level);
            above.fold((0, 0_u64), |(shards, all), have| {
                (shards + 1, all.saturating_add(*have))
            })
        };
        let (mut shards, mut all) = of_those_above(0);
        loop {
            let level = all.checked_sub(wanted)?.checked_div(shards)?;
            let above = of_those_above(level);
            if above.0 == shards {
                let leave = level.saturating_sub(uneven);
                return Some(Plan { have, leave });
            }
            (shards, all) = above;
        }
    }

    /// Returns the latest tick at which a planned shard counts its permits, if these ticks differ.
    fn latest_of<const N: usize>(
        &self,
        look: &Survey<N>,
        plan: &Plan<N>,
        wanted: u64,
    ) -> Option<Tick> {
        let (mut missing, mut first, mut last) = (wanted, Tick::MAX, Tick::ZERO);
        for ((have, word), shard) in plan.have.iter().zip(&look.words).zip(self.shards) {
            let n = have.saturating_sub(plan.leave).min(missing);
            if n > 0 {
                let (_, granted) = shard.algorithm().take_up_to(*word, self.now, n);
                (first, last) = (first.min(granted.at()), last.max(granted.at()));
                missing -= n;
            }
        }
        (first < last).then_some(last)
    }

    /// Takes the missing fractions from this shard and those after it, in at most two rounds over
    /// all shards. If it can't take everything, each stack frame rolls back what it took. The
    /// function is recursive because its stack frames store what to roll back.
    ///
    /// All requests visit the shards in the same order. If two requests scan at the same moment,
    /// the slower one finds the first shard changed before it has taken anything.
    fn gather_from<const N: usize>(
        &self,
        mut turn: usize,
        plan: &Plan<N>,
        missing: u64,
        so_far: Option<Granted>,
    ) -> Attempt {
        let shards = self.shards.len();
        while turn < 2 * shards {
            // If other threads took permits meanwhile, the second round leaves nothing in the
            // shards.
            let (number, leave) = match turn.checked_sub(shards) {
                None => (turn, plan.leave),
                Some(number) => (number, 0),
            };
            turn += 1;
            let (Some(shard), Some(have)) = (self.shards.get(number), plan.have.get(number)) else {
                break;
            };
            let n = have.saturating_sub(leave).min(missing);
            let at_least = if so_far.is_none() { *have } else { 0 };
            let taken = match n {
                0 => None,
                n => shard.take(self.now, at_least, n),
            };
            let Some((granted, taken)) = taken else {
                if n > 0 && so_far.is_none() {
                    return Attempt::Lost;
                }
                continue;
            };
            let granted = granted.with_source(number as u32);
            let n = granted.n();
            let taking = match so_far {
                Some(so_far) if so_far.at() != granted.at() => {
                    Attempt::From(so_far.at().max(granted.at()))
                }
                so_far => {
                    let sum = match so_far {
                        Some(so_far) => so_far.and(granted),
                        None => granted,
                    };
                    match missing.saturating_sub(n) {
                        0 => Attempt::Done(sum),
                        missing => self.gather_from(turn, plan, missing, Some(sum)),
                    }
                }
            };
            if !matches!(taking, Attempt::Done(_)) {
                self.lowering(|| shard.roll_back(&taken));
            }
            return taking;
        }
        Attempt::TooFew
    }
}
