//! The part that decides: runs an operation on a key's word, which is the state of the key's limit.
//!
//! [`Request`] is all that the table's methods see of it. A request makes one attempt after the
//! other, each for one case, until an attempt has decided:
//!
//! | attempt | the key | file |
//! |---|---|---|
//! | `known` | is protected, in a primary bucket, under its first quota: nearly all | `known.rs` |
//! | `known_changed` | the same, after a quota was changed | |
//! | `by_labels` | was granted once, has an override, or is new in a new table | `labels.rs` |
//! | `present` | has a slot, whatever it holds | `present.rs` |
//! | `establish`, `insert` | is claimed; is new | `absent.rs` |
//!
//! The first attempt is inlined. All others are out of line, and the last two are repeated while
//! other threads change the slots.

mod absent;
mod known;
mod labels;
mod present;

use self::absent::Absent;
use self::known::Retry;
use super::admit::{Claim, Keys};
use super::find::{Lookup, ProbeSeq};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::store::op::{Attempt, Op, OpResult, Step};
use crate::sync::{Backoff, inject_fault};

/// How often a thread tries to insert a key while other threads take the slots that it chose. After
/// that it reports that there is no room.
const ROUNDS: usize = 32;

/// A key of a table, the plan under which it is requested, and the tick.
pub(crate) struct Request<'k, A> {
    keys: &'k Keys<A>,
    probe_seq: ProbeSeq,
    plan: u8,
    now: Tick,
}

impl<'k, A> Request<'k, A> {
    #[inline(always)]
    pub(crate) const fn new(keys: &'k Keys<A>, probe_seq: ProbeSeq, plan: u8, now: Tick) -> Self {
        Self {
            keys,
            probe_seq,
            plan,
            now,
        }
    }
}

impl<A: Algorithm> Request<'_, A> {
    /// Runs an operation on the key's word.
    #[inline(always)]
    pub(crate) fn run<O: Op<A>>(self, mut op: O) -> OpResult<A, O> {
        match self.known(&mut op) {
            Ok(outcome) => outcome,
            Err(why) => {
                // Pass the parts separately, so that they stay in registers.
                let (hash, plan, now) = (self.probe_seq.hash(), self.plan, self.now);
                Self::retry(self.keys, hash, plan, now, op, why)
            }
        }
    }

    /// Runs an operation if the first attempt suffices.
    #[inline(always)]
    pub(crate) fn try_fast<O: Op<A>>(self, mut op: O) -> Option<OpResult<A, O>> {
        self.known(&mut op).ok()
    }

    /// Makes all other attempts.
    #[cold]
    #[inline(never)]
    fn retry<O: Op<A>>(
        keys: &Keys<A>,
        hash: u64,
        plan: u8,
        now: Tick,
        mut op: O,
        why: Retry,
    ) -> OpResult<A, O> {
        let table = keys.table();
        let request = Request::new(keys, table.probe_seq(hash), plan, now);
        table.prefetch_neighbors(&request.probe_seq);
        let done = match why {
            Retry::WasDisturbed => request.known_again(&mut op),
            Retry::IsLong => None,
        };
        if let Some(outcome) = done {
            return outcome;
        }
        if keys.plans().get(plan).is_none() {
            return request.unrecorded(op, Denied::no_such_plan);
        }
        let version = keys.plans().version();
        if let Some(outcome) = request.known_changed(version, &mut op) {
            return outcome;
        }
        let looks = !inject_fault!(BelievesTheFirstLook); // FAULT
        if looks {
            if let Some(outcome) = request.by_labels(version, &mut op) {
                return outcome;
            }
        }
        request.in_rounds(op)
    }

    /// Looks at all slots where the key may be, and decides on what is there, in rounds.
    fn in_rounds<O: Op<A>>(&self, mut op: O) -> OpResult<A, O> {
        let (table, probe_seq, now) = (self.keys.table(), &self.probe_seq, self.now);
        let (mut rounds, mut is_full, mut is_migrated) = (0, false, false);
        let mut backoff = Backoff::new();
        while rounds < ROUNDS {
            // If the last round found no room, look for the key once more: another thread may have
            // taken the last slot for this very key.
            let was_full = core::mem::take(&mut is_full);
            let probe = table.look(probe_seq);
            let done = match probe.find(probe_seq.tag()) {
                Lookup::Live(at, held) => match self.present(at, held, &mut op) {
                    None => {
                        // The slot changed after this thread found it.
                        backoff.wait();
                        continue;
                    }
                    done => done,
                },
                Lookup::Pending(..) if inject_fault!(WaitsForClaims) => None, // FAULT
                Lookup::Pending(at, held) => match self.run_fresh(self.in_force(), now, &mut op) {
                    Some(Absent::Answer(outcome)) => Some(outcome),
                    fresh => self.establish(&Claim::found(at, held), &mut op, fresh),
                },
                Lookup::Nothing => match self.run_fresh(self.in_force(), now, &mut op) {
                    Some(Absent::Answer(outcome)) => Some(outcome),
                    // Migrate these slots once, so that the next threads that look here need not do
                    // it.
                    _ if !is_migrated && self.keys.migrate_all(&probe) => {
                        is_migrated = true;
                        continue;
                    }
                    // In the first round, take over an abandoned claim before evicting a live key:
                    // its owner may be gone. In later rounds prefer to evict, or threads that
                    // insert keys could take over each other's claims forever.
                    fresh => match self.keys.choose(&probe, now, rounds == 0) {
                        Some(slot) => self.insert(&slot, &mut op, fresh),
                        None if was_full || inject_fault!(BelievesTheFirstLook) => break, // FAULT
                        // Check that no other thread has inserted the key. Its slots' labels
                        // suffice for that.
                        None if table.has_none_of(probe_seq) => break,
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
        self.keys.count_no_room();
        self.unrecorded(op, Denied::no_room)
    }
}

/// Ends an attempt on a slot whose word was `word`. If the operation must write a word, `exchange`
/// does so. Otherwise its answer counts if the slot still `holds` what was read. Returns `None` if
/// the slot has changed.
#[inline(always)]
fn end<A, O: Op<A>, E>(
    op: &O,
    word: u64,
    step: Step<A, O>,
    exchange: impl FnOnce(u64) -> Result<(), E>,
    holds: impl Fn() -> bool,
) -> Option<OpResult<A, O>> {
    let done = match step {
        Ok(done) => done,
        Err(refusal) if holds() => return Some(Err(refusal)),
        Err(_) => return None,
    };
    match Attempt::end::<A, _, _>(op, word, done, exchange) {
        Attempt::Unchanged(answer) if holds() => Some(Ok(answer)),
        Attempt::Written(answer) => Some(Ok(answer)),
        _ => None,
    }
}
