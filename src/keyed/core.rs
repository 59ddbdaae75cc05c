//! Decides on keys: finds a key's slot, or inserts the key, and changes the word in the slot. The
//! word is the state of the key's limit ([`slot`](super::slot)).

use super::claimable::{Claimable, ClaimedBy};
use super::overflow::Overflow;
use super::overrides::OVERRIDE;
use super::plans::{AlgorithmId, Plans};
use super::probe::Lookup;
use super::probe_seq::ProbeSeq;
use super::slot::{SlotKind, SlotState};
use super::stats::{Event, Events};
use super::table::{SlotIndex, Table};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::store::op::{Attempt, Current, Op, OpResult, Refusal};
use crate::sync::{AtomicU64, Backoff, inject_fault};

/// How often a thread tries to insert a key while other threads take the slots that it chose. After
/// that it reports that there is no room.
const ROUNDS: usize = 32;

/// The source ([`source_of`]) of a grant that was not recorded. Such a grant can't be undone.
const UNRECORDED: u32 = u32::MAX;

/// A table without its clock and hasher.
pub(super) struct Core<A> {
    pub(super) table: Table,
    pub(super) plans: Plans<A>,
    pub(super) overflow: Overflow,
    pub(super) events: Events,
    /// The latest tick at which an evicted key had become idle. A new key starts at this tick or
    /// later, so that an evicted key that returns with a stale clock reading cannot get a second
    /// burst.
    pub(super) horizon: AtomicU64,
}

/// A key, the plan under which it is requested, and the tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) probe_seq: ProbeSeq,
    pub(super) plan: u8,
    pub(super) now: Tick,
}

/// Why the first attempt decided nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Retry {
    /// The first attempt does not handle this case.
    IsLong,
    /// Another thread changed the slot before the exchange.
    WasDisturbed,
}

/// The result of an operation on a key that is not in the table.
pub(super) enum Absent<A, O: Op<A>> {
    /// Nothing has to be stored. This is the answer.
    Answer(OpResult<A, O>),
    /// This word, which algorithm `of` made, must be stored for the key. `answer` is `None` if the
    /// algorithm refuses the operation. It will refuse it again when the word is stored.
    Keep {
        word: u64,
        of: AlgorithmId,
        answer: Option<O::Output>,
    },
}

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

    /// Returns the same table without its keys and overrides.
    pub(super) fn emptied(mut self) -> Self {
        self.plans.clear_overrides();
        if self.events.tracked() == 0 {
            // The usual case: no key was inserted. The table's memory may not even be mapped yet,
            // so don't touch it.
            return self;
        }
        for (at, held) in self.table.all() {
            let _ = self.table.release(at, held);
            if held.is_live() {
                self.events.count(Event::Removed);
            }
        }
        self
    }

    /// Returns the probe sequence of a hash, and prefetches its primary buckets, which are needed
    /// soon.
    #[inline(always)]
    pub(super) fn fetch(&self, hash: u64) -> ProbeSeq {
        let probe_seq = self.table.probe_seq(hash);
        self.table.fetch(probe_seq.first());
        self.table.fetch(probe_seq.second());
        probe_seq
    }
}

impl<A: Algorithm> Core<A> {
    /// Runs an operation on a key's word. The first attempt is inlined and handles the usual case
    /// ([`first_attempt`](super::first_attempt)). All others are out of line.
    #[inline(always)]
    pub(super) fn apply<O: Op<A>>(&self, request: Request, mut op: O) -> OpResult<A, O> {
        // Pass the parts separately, so that they stay in registers.
        let (hash, plan, now) = (request.probe_seq.hash(), request.plan, request.now);
        match self.first_attempt(request, &mut op) {
            Ok(outcome) => outcome,
            Err(why) => self.retry(hash, plan, now, op, why),
        }
    }

    /// Runs all other attempts.
    #[cold]
    #[inline(never)]
    fn retry<O: Op<A>>(
        &self,
        hash: u64,
        plan: u8,
        now: Tick,
        mut op: O,
        why: Retry,
    ) -> OpResult<A, O> {
        let probe_seq = self.table.probe_seq(hash);
        let request = &Request {
            probe_seq,
            plan,
            now,
        };
        // Prefetch the neighbors.
        self.table.fetch(probe_seq.first() ^ 1);
        self.table.fetch(probe_seq.second() ^ 1);
        let done = match why {
            Retry::WasDisturbed => self.first_attempt_later(request, &mut op),
            Retry::IsLong => None,
        };
        if let Some(outcome) = done {
            return outcome;
        }
        if let Some(outcome) = self.changed_attempt(request, &mut op) {
            return outcome;
        }
        if self.plans.get(request.plan).is_none() {
            return self.unrecorded(request, op, Denied::no_such_plan);
        }
        let believes = inject_fault!(BelievesTheFirstLook); // FAULT
        if !believes {
            if let Some(outcome) = self.second_attempt(request, &mut op) {
                return outcome;
            }
        }
        let (mut rounds, mut is_full, mut is_brought) = (0, false, false);
        let mut backoff = Backoff::new();
        while rounds < ROUNDS {
            // If the last round found no room, look for the key once more: another thread may have
            // taken the last slot for this very key.
            let was_full = core::mem::take(&mut is_full);
            let probe = self.table.look(&probe_seq);
            let done = match probe.find(probe_seq.tag()) {
                Lookup::Live(at, held) => match self.decide_on(request, at, held, &mut op) {
                    None => {
                        // The slot changed after this thread found it.
                        backoff.wait();
                        continue;
                    }
                    done => done,
                },
                Lookup::Pending(..) if inject_fault!(WaitsForClaims) => None, // FAULT
                Lookup::Pending(at, held) => match self.run_fresh(request, now, &mut op) {
                    Some(Absent::Answer(outcome)) => Some(outcome),
                    fresh => {
                        let claim = (held, ClaimedBy::Another);
                        self.establish(request, at, claim, &mut op, fresh)
                    }
                },
                Lookup::Nothing => match self.run_fresh(request, now, &mut op) {
                    Some(Absent::Answer(outcome)) => Some(outcome),
                    // Migrate these slots once, so that the next threads that look here need not do
                    // it.
                    _ if !is_brought && self.migrate_all(&probe) => {
                        is_brought = true;
                        continue;
                    }
                    // In the first round, take over an abandoned claim before evicting a live key:
                    // its owner may be gone. In later rounds prefer to evict, or threads that
                    // insert keys could take over each other's claims forever.
                    fresh => match self.choose(&probe, now, rounds == 0) {
                        Some(claimable) => self.insert(request, claimable, &mut op, fresh),
                        None if was_full || believes => break,
                        // Check that no other thread has inserted the key. Its slots' labels
                        // suffice for that.
                        None if self.table.has_none_of(&probe_seq) => break,
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
        self.events.count(Event::NoRoom);
        self.unrecorded(request, op, Denied::no_room)
    }

    /// Runs an operation on a slot's word. Returns `None` if the slot has changed.
    fn decide_on<O: Op<A>>(
        &self,
        request: &Request,
        at: SlotIndex,
        held: SlotState,
        op: &mut O,
    ) -> Option<OpResult<A, O>> {
        let hash = request.probe_seq.hash();
        let (of, held_now, word) = match self.plans.overrides_of(held) {
            Some(overrides) => {
                let version = overrides.number_in(held, hash)?;
                (AlgorithmId::new(OVERRIDE, version), held, held.word)
            }
            None => {
                let plan = if O::BANS { held.plan() } else { request.plan };
                // Read after the slot, so the slot's version is no later than this one.
                let version = self.plans.version();
                let held_now = self.plans.migrated(held, version)?;
                let now = request.now;
                let word = self.plans.moved_to_plan(held_now, plan, version, now)?;
                (AlgorithmId::new(plan, version), held_now, word)
            }
        };
        let mut view = Current::new(word, request.now).with_source(source_of(of));
        let said = |algorithm: &A| {
            // A ban lasts while there is no permit.
            let is_banned = held_now.state() == SlotKind::Banned;
            view.is_banned = is_banned && algorithm.available(word, request.now) == 0;
            match op.run(algorithm, view) {
                Err(refusal) if view.is_banned => Err(refusal.by_ban()),
                said => said,
            }
        };
        let step = self.plans.with_in_force(of, hash, said)?;
        let exchange = |next| {
            let is_banned = O::BANS || view.is_banned && !O::GRANTS;
            let next = SlotState::live(held.tag(), at.second, of.plan(), of.version(), next);
            let next = next.protected_if(held.is_protected() || O::TAKES);
            let next = match is_banned {
                true => next.banned_if(true),
                false => next.newcomer_if(held.is_newcomer()),
            };
            self.table.decide(at, held, next)
        };
        let outcome = match step {
            Err(refusal) => Err(refusal),
            Ok(done) => match Attempt::end::<A, _, _>(op, word, done, exchange) {
                Attempt::Unchanged(answer) => Ok(answer),
                attempt => return attempt.answer().map(Ok),
            },
        };
        let is_so = match held == held_now {
            // The answer holds if the slot has not changed since it was read.
            true => self.table.load(at) == held,
            // Store the migrated word, so that a caller that is denied repeatedly does not convert
            // it each time.
            false => self.table.migrate(at, held, held_now).is_ok(),
        };
        is_so.then_some(outcome)
    }

    /// Runs an operation on the word of a key that is not in the table. Returns `None` if its
    /// algorithm changes meanwhile.
    pub(super) fn run_fresh<O: Op<A>>(
        &self,
        request: &Request,
        now: Tick,
        op: &mut O,
    ) -> Option<Absent<A, O>> {
        let of = self.plans.in_force(request.plan, request.probe_seq.hash());
        self.run_fresh_by(of, request, now, op)
    }

    /// Does what [`run_fresh`](Self::run_fresh) does, with this algorithm.
    fn run_fresh_by<O: Op<A>>(
        &self,
        of: AlgorithmId,
        request: &Request,
        now: Tick,
        op: &mut O,
    ) -> Option<Absent<A, O>> {
        let hash = request.probe_seq.hash();
        self.plans.with_in_force(of, hash, |algorithm| {
            let first = first_word(algorithm, now);
            let view = Current::new(first, now).with_source(source_of(of));
            let (word, answer) = match op.run(algorithm, view) {
                // Don't store an unchanged word, with one exception: a key that starts with less
                // than its burst (a first word other than 0) begins to refill with its first
                // request for permits. Never store the word 0: it contains no tick, so a caller
                // with an old tick would count at that tick instead of at the horizon.
                Ok((next, answer))
                    if !O::BANS
                        && ((first, next) == (0, 0)
                            || op.is_unchanged(first, next) && (first == 0 || !O::GRANTS)) =>
                {
                    return Absent::Answer(Ok(answer));
                }
                Err(refusal) if first == 0 => return Absent::Answer(Err(refusal)),
                Ok((next, answer)) => (next, Some(answer)),
                // The stored word will give the same refusal.
                Err(_) => (first, None),
            };
            Absent::Keep { word, of, answer }
        })
    }

    /// Inserts a key into a slot.
    pub(super) fn insert<O: Op<A>>(
        &self,
        request: &Request,
        claimable: Claimable,
        op: &mut O,
        fresh: Option<Absent<A, O>>,
    ) -> Option<OpResult<A, O>> {
        let claimed = self.claim(&request.probe_seq, claimable)?;
        let done = self.establish(
            request,
            claimable.at,
            (claimed, ClaimedBy::Caller),
            op,
            fresh,
        );
        if done.is_none() {
            self.release_claim(claimable.at, claimed);
        }
        done
    }

    /// Turns a claim into the key's live slot, with the word after the operation. Returns `None` if
    /// the operation still has to be done: because the claim could not be established, or because
    /// the algorithm refused the operation and only the key was inserted. `fresh` is the
    /// operation's result at the request's tick.
    fn establish<O: Op<A>>(
        &self,
        request: &Request,
        at: SlotIndex,
        (claimed, by): (SlotState, ClaimedBy),
        op: &mut O,
        fresh: Option<Absent<A, O>>,
    ) -> Option<OpResult<A, O>> {
        let in_force = || {
            let hash = request.probe_seq.hash();
            self.plans.in_force(request.plan, hash)
        };
        let early = inject_fault!(ReadsTheVersionFirst).then(in_force); // FAULT
        let now = self
            .confirm_unique(&request.probe_seq, at, by)?
            .max(request.now);
        // Read after the claim and the fence that follows it. A thread that sweeps this part of the
        // table for this version, or for a later one, therefore finds the claim and releases it. So
        // does a thread that changes the key's override.
        let in_force = early.unwrap_or_else(in_force);
        let fresh = match fresh {
            Some(Absent::Keep { of, .. }) if of == in_force && now == request.now => fresh,
            _ => self.run_fresh_by(in_force, request, now, op),
        };
        let (word, of, answer) = match fresh? {
            Absent::Keep { word, of, answer } => (word, of, answer),
            Absent::Answer(outcome) => {
                self.release_claim(at, claimed);
                return Some(outcome);
            }
        };
        let tag = request.probe_seq.tag();
        let next = SlotState::live(tag, at.second, of.plan(), of.version(), word);
        let next = match O::BANS {
            true => next.banned_if(true),
            false => next.newcomer_if(claimed.has_evicted()),
        };
        self.table.establish(at, claimed, next).ok()?;
        self.events.count(Event::Inserted);
        answer.map(Ok)
    }

    /// Refuses the operation, or answers as for a fresh key without storing anything.
    fn unrecorded<O: Op<A>>(
        &self,
        request: &Request,
        mut op: O,
        why: fn(u64) -> Denied,
    ) -> OpResult<A, O> {
        let plan = self.plans.get(request.plan);
        if self.overflow != Overflow::Admit || O::BANS || plan.is_none() {
            if let Some(refusal) = op.unavailable(why, request.now) {
                return refusal;
            }
        }
        self.now_in_force(request, |algorithm| {
            let word = first_word(algorithm, request.now);
            let view = Current::new(word, request.now).with_source(UNRECORDED);
            op.run(algorithm, view).map(|(_, answer)| answer)
        })
    }

    /// Passes the key's current algorithm to `ask`. If the requested plan does not exist, it passes
    /// that of the first plan.
    fn now_in_force<T>(&self, request: &Request, mut ask: impl FnMut(&A) -> T) -> T {
        let plan = self.plans.get(request.plan).map_or(0, |_| request.plan);
        let hash = request.probe_seq.hash();
        loop {
            // If this version is outdated, a later one exists.
            let of = self.plans.in_force(plan, hash);
            if let Some(said) = self.plans.with_in_force(of, hash, &mut ask) {
                return said;
            }
        }
    }
}

/// Returns the word of a key that is inserted now.
pub(super) fn first_word<A: Algorithm>(algorithm: &A, now: Tick) -> u64 {
    algorithm
        .initial_word(now)
        .min(crate::store::cell::UNSTARTED - 1)
}

/// Returns the number by which a grant identifies the algorithm that made it: the plan, and the
/// last 28 bits of the version.
#[inline(always)]
pub(super) const fn source_of(of: AlgorithmId) -> u32 {
    (of.plan() as u32) << 28 | of.version() as u32 & ((1 << 28) - 1)
}
