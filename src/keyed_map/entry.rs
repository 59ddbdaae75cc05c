//! The entry of a key, and how it leaves: the protocol.
//!
//! # The word
//!
//! A decision finds its key's entry, reads the word, computes, and exchanges the word. It may stop
//! for any time in between. So before an entry is taken out of the map its word is *retired*:
//! exchanged for all ones, which is no word. A thread that decides on it later finds that, or loses
//! its exchange to it, and looks its key up again. **From a retired word nothing is granted, and a
//! caller that is refused or only looks does so on a word that was in force when it was read.** So
//! at any time one word at most grants permits for a key: a new entry can be inserted only after
//! the old one has been taken out, and that was retired before.
//!
//! ```text
//!   inserted: pending ──first verb──► word ⇄ word ──retired──► all ones, for ever
//!                                       (an idle one: the horizon is raised first)       then it is taken out
//! ```
//!
//! A thread that finds a retired entry takes it out, and goes on: it does not wait for the one that
//! retired it. (But for an entry whose [algorithm is changed](super::KeyedMap::set_algorithm): only
//! the thread that changes it knows what its word was.)
//!
//! # The ticks
//!
//! A key that left as idle at tick `t` was as good as fresh at `t`; at older ticks it was not, but
//! a caller with an older tick would now find it fresh. So each entry counts *since* a tick that is
//! no earlier than any tick at which its key has ever left as idle, and a verb with an older tick
//! is counted at that. The entries of a key, one after the other, then decide as one word would
//! that is replaced by a fresh one when it can't be told from it: the bound holds on the ticks at
//! which permits were counted ([`Granted::at`](crate::Granted::at)), whatever ticks callers have.
//!
//! One tick is kept for this, for all keys together: the [`Horizon`]. It is raised *before* a word
//! is retired; and it is read *after* the new entry is in the map, by the thread that first decides
//! on it. (Read before, it might miss that the key came, had its burst and left in between.)

use super::horizon::Horizon;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::cell::{AtomicWord, WordCell};
use crate::store::op::{Current, Op};
use crate::sync::{AtomicU64, Backoff, Ordering, fence, inject_fault};

/// The word of an entry that is, or will be, taken out. No algorithm uses it.
const RETIRED: u64 = u64::MAX;

/// The tick of an entry that nobody has decided on yet.
const PENDING: u64 = u64::MAX;

/// The same when it has been come across once.
const STILL_PENDING: u64 = PENDING - 1;

/// The bit of an entry's number that says that its key is protected: it was granted something a
/// second time after it came, and is evicted after keys that were not.
const PROTECTED: u64 = 1 << 63;

/// What is kept of a key.
pub(super) struct MapEntry<A> {
    /// As the first word is when it is 0, and the other way round: so an entry is born with its
    /// first word, whenever that will be.
    cell: WordCell,
    /// The tick since which it counts.
    since: AtomicU64,
    /// No other entry has it. It has the bit when the key is [`PROTECTED`].
    number: AtomicU64,
    /// The key's own algorithm, if it has not the one of all.
    pub(super) own: Option<Box<A>>,
}

/// A word that was in force when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) word: u64,
    pub(super) since: Tick,
    first: u64,
}

/// What an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Nobody has decided on it.
    Pending,
    /// Somebody has.
    Live(Live),
    Retired,
}

/// The answer of an operation and its tick; `None` if the entry is retired.
type Decided<A, O> = Option<(Result<<O as Op<A>>::Output, <O as Op<A>>::Refusal>, Tick)>;

/// The word 0 for the first one, and the first one for 0.
#[inline(always)]
const fn swapped(word: u64, first: u64) -> u64 {
    match word {
        0 => first,
        word if word == first => 0,
        word => word,
    }
}

impl<A> MapEntry<A> {
    /// Of a key that nobody has decided on.
    pub(super) fn pending(number: u64) -> Self {
        Self {
            cell: WordCell::new(0),
            since: AtomicU64::new(PENDING),
            number: AtomicU64::new(number),
            own: None,
        }
    }

    /// Of the key of another entry. It goes on with this word, which has counted since that tick.
    pub(super) fn carried_over(
        &self,
        number: u64,
        own: Option<Box<A>>,
        of_all: &A,
        word: u64,
        since: Tick,
    ) -> Self
    where
        A: Algorithm,
    {
        let first = first_word(own.as_deref().unwrap_or(of_all), since);
        Self {
            cell: WordCell::new(swapped(word, first)),
            since: AtomicU64::new(since.as_nanos().min(STILL_PENDING - 1)),
            number: AtomicU64::new(number | if self.is_protected() { PROTECTED } else { 0 }),
            own,
        }
    }

    /// The key's algorithm.
    pub(super) fn algorithm<'a>(&'a self, of_all: &'a A) -> &'a A {
        self.own.as_deref().unwrap_or(of_all)
    }

    /// The number, by whose lower half its grants are known, and the bit.
    #[inline(always)]
    fn load_number(&self) -> u64 {
        // ORDERING: Relaxed. The number never changes, and the bit is set once. Only `is_protected`
        // draws a conclusion from the bit, and has a fence.
        self.number.load(Ordering::Relaxed)
    }

    /// Whether the key was granted something a second time before its word became what the caller
    /// has read. (Where one thread set the bit and another one, which saw it, made the second
    /// grant, it may be missed: the key then leaves as one that is not protected.)
    pub(super) fn is_protected(&self) -> bool {
        // ORDERING: Acquire, with the fence of `protect`.
        // Model: keyed_map::a_second_grant_protects_a_key
        fence(Ordering::Acquire); // after the word was read
        self.load_number() >= PROTECTED
    }

    /// Protects the key, which is about to be granted something a second time.
    fn protect(&self) {
        // ORDERING: Relaxed, and then the fence, Release: it publishes the bit with the word that
        // the caller exchanges next. It pairs with the fence of `is_protected`.
        // Model: keyed_map::a_second_grant_protects_a_key
        self.number.fetch_or(PROTECTED, Ordering::Relaxed);
        fence(Ordering::Release); // before the second grant
    }

    /// The tick since which it counts, which the first to ask says.
    #[inline(always)]
    pub(super) fn since(&self, now: Tick, horizon: &Horizon) -> Tick {
        // ORDERING: Relaxed. It is said once, and publishes nothing: nobody draws a conclusion from
        // it but this tick. Model: keyed_map::a_late_tick_gets_no_second_burst
        match self.since.load(Ordering::Relaxed) {
            STILL_PENDING.. => self.begin(now, horizon),
            since => Tick::from_nanos(since),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, now: Tick, horizon: &Horizon) -> Tick {
        // ORDERING: SeqCst, with the fence of `retire`. A thread that is here has found this entry
        // in the map. An entry that this key had before was retired, and its tick brought to the
        // horizon, before it was taken out and this one could be inserted: so what is read now is
        // no earlier. Model: keyed_map::a_late_tick_gets_no_second_burst
        fence(Ordering::SeqCst); // after it was found
        let since = inject_fault!(CountsAtOwnTick => now, else now.max(horizon.tick()));
        let since = since.as_nanos().min(STILL_PENDING - 1);
        // ORDERING: Relaxed, as in `since`: the first thread that says it is right, and all use
        // what it said.
        Tick::from_nanos(self.say(since))
    }

    /// Says since when it counts, unless somebody has. What was said.
    fn say(&self, since: u64) -> u64 {
        // ORDERING: Relaxed, all of them: the tick is all there is to know, and it is said once.
        // Model: keyed_map::a_late_tick_gets_no_second_burst
        let mut seen = self.since.load(Ordering::Relaxed);
        while seen >= STILL_PENDING {
            match self.since.compare_exchange_weak(
                seen,
                since,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return since,
                Err(now) => seen = now,
            }
        }
        seen
    }

    /// Comes across an entry that nobody has decided on. Whether it is for the second time: then
    /// the thread that brought it in has perhaps gone.
    pub(super) fn mark_seen(&self) -> bool {
        // ORDERING: Relaxed, as above.
        let first = self.since.compare_exchange(
            PENDING,
            STILL_PENDING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        first == Err(STILL_PENDING)
    }

    /// Runs an operation, and says at which tick; `None` if the entry is retired.
    #[inline(always)]
    pub(super) fn decide<O: Op<A>>(
        &self,
        of_all: &A,
        now: Tick,
        horizon: &Horizon,
        op: &mut O,
    ) -> Decided<A, O>
    where
        A: Algorithm,
    {
        let algorithm = self.algorithm(of_all);
        let since = self.since(now, horizon);
        let at = now.max(since);
        let first = first_word(algorithm, since);
        let stored = self.cell.load();
        if stored == RETIRED {
            return None;
        }
        let word = swapped(stored, first);
        let number = self.load_number();
        let current = Current::new(word, at).with_source(number as u32);
        let outcome = match op.run_fast(algorithm, current) {
            Some(outcome) => outcome,
            None => return self.retry(algorithm, stored, first, at, op),
        };
        match outcome {
            Err(refusal) => Some((Err(refusal), at)),
            Ok((next, answer)) if op.is_unchanged(word, next) => Some((Ok(answer), at)),
            // A key that is not protected yet may have to be: out of line.
            Ok((next, answer))
                if number >= PROTECTED && self.exchange(stored, swapped(next, first)) =>
            {
                Some((Ok(answer), at))
            }
            Ok(_) => self.retry(algorithm, stored, first, at, op),
        }
    }

    #[inline(always)]
    fn exchange(&self, stored: u64, next: u64) -> bool {
        self.cell.compare_exchange(stored, next).is_ok()
    }

    /// The turns after the first one, long ones, and those on keys that are not protected.
    #[cold]
    #[inline(never)]
    fn retry<O: Op<A>>(
        &self,
        algorithm: &A,
        stored: u64,
        first: u64,
        at: Tick,
        op: &mut O,
    ) -> Decided<A, O> {
        let mut backoff = Backoff::new();
        let mut stored = backoff.wait_if_changed(stored, || self.cell.load());
        while stored != RETIRED {
            let word = swapped(stored, first);
            let number = self.load_number();
            let current = Current::new(word, at).with_source(number as u32);
            let (next, answer) = match op.run(algorithm, current) {
                Ok(done) => done,
                Err(refusal) => return Some((Err(refusal), at)),
            };
            if op.is_unchanged(word, next) {
                return Some((Ok(answer), at));
            }
            // Before the exchange: a thread that finds the word of a second grant does not take the
            // key for one that was granted something once.
            let protects = O::TAKES && stored != 0 && number < PROTECTED;
            let afterwards = inject_fault!(ProtectsAfterwards);
            if protects && !afterwards {
                self.protect();
            }
            let is_done = self.exchange(stored, swapped(next, first));
            if protects && afterwards {
                self.protect();
            }
            if is_done {
                return Some((Ok(answer), at));
            }
            stored = backoff.wait_if_changed(stored, || self.cell.load());
        }
        None
    }

    /// What it is in now.
    pub(super) fn state(&self, of_all: &A) -> EntryState
    where
        A: Algorithm,
    {
        let stored = self.cell.load();
        // ORDERING: Relaxed, as in `since`.
        let since = self.since.load(Ordering::Relaxed);
        match (stored, since) {
            (RETIRED, _) => EntryState::Retired,
            (_, STILL_PENDING..) => EntryState::Pending,
            (stored, since) => {
                let since = Tick::from_nanos(since);
                let first = first_word(self.algorithm(of_all), since);
                let word = swapped(stored, first);
                EntryState::Live(Live { word, since, first })
            }
        }
    }

    /// Retires this word, if it still stands there. From then on nothing is decided on it. (It may
    /// fail without a reason.)
    #[must_use]
    pub(super) fn retire(&self, live: &Live) -> bool {
        // ORDERING: SeqCst, with the fences of `begin` and of a thread that finds it retired: what
        // was done before, such as raising the horizon, is seen by a thread that finds this, or
        // finds that the entry is gone. Models: keyed_map::a_late_tick_gets_no_second_burst,
        // an_algorithm_is_changed
        fence(Ordering::SeqCst); // before it is retired
        inject_fault!(RemovesUnretired)
            || (self.cell)
                .compare_exchange(swapped(live.word, live.first), RETIRED)
                .is_ok()
    }

    /// Retires an entry that nobody has decided on.
    #[must_use]
    pub(super) fn retire_pending(&self) -> bool {
        // ORDERING: SeqCst, as in `retire`.
        fence(Ordering::SeqCst); // as in `retire`
        let retired = self.cell.compare_exchange(0, RETIRED).is_ok();
        if !retired {
            // Another thread has decided: by an exchange, so that a thread that looks again sees
            // it.
            self.mark_seen();
        }
        retired
    }

    /// Puts back what was retired, by the thread that alone may say what becomes of it.
    pub(super) fn reinstate(&self, state: &EntryState) {
        match state {
            EntryState::Retired => {}
            EntryState::Pending => drop(self.cell.swap(0)),
            EntryState::Live(live) => drop(self.cell.swap(swapped(live.word, live.first))),
        }
    }
}

/// The word with which an entry begins.
#[inline(always)]
pub(super) fn first_word<A: Algorithm>(algorithm: &A, since: Tick) -> u64 {
    algorithm.initial_word(since).min(RETIRED - 1)
}
