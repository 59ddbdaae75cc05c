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
//! retired it.
//!
//! An entry whose algorithm or quota is changed is not retired but *moved*: its word is exchanged
//! for another value that is no word, and its [successor](super::moving) takes its place in the
//! map. A thread that finds a moved entry puts the successor there itself.
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
use super::latest::{Latest, SharedAlgorithm};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::cell::{AtomicWord, WordCell};
use crate::store::op::{Current, Op, Refusal};
use crate::sync::{AtomicU64, Backoff, Ordering, fence, inject_fault};

/// The word of an entry that is, or will be, taken out. No algorithm uses it.
pub(super) const RETIRED: u64 = u64::MAX;

/// The word of an entry whose place its successor takes. No word is stored that is as large.
pub(super) const MOVED: u64 = RETIRED - 1;

/// The largest word that an algorithm may have.
pub(super) const MAX_WORD: u64 = MOVED - 1;

/// The tick of an entry that nobody has decided on yet.
pub(super) const PENDING: u64 = u64::MAX;

/// The same when it has been come across once.
pub(super) const STILL_PENDING: u64 = PENDING - 1;

/// The bit of an entry's number that says that its key is protected: it was granted something a
/// second time after it came, and is evicted after keys that were not.
const PROTECTED: u64 = 1 << 62;

/// The bit that says that the key is banned. It is set when the entry is made, and taken away after
/// the first grant, when the ban is over. So it is above all other bits: one comparison tells
/// whether a decision can be quick.
const BANNED: u64 = 1 << 63;

/// The bit that says that the key's algorithm is its own.
const OWN: u64 = 1 << 61;

/// [`PROTECTED`], in the eight highest bits.
pub(super) const STANDING_PROTECTED: u8 = (PROTECTED >> 56) as u8;

/// The number itself.
const NUMBER: u64 = OWN - 1;

/// What is kept of a key.
pub(super) struct MapEntry<A> {
    /// As the first word is when it is 0, and the other way round: so an entry is born with its
    /// first word, whenever that will be.
    pub(super) cell: WordCell,
    /// The tick since which it counts.
    pub(super) since: AtomicU64,
    /// No other entry has it. It has the bits [`BANNED`], [`PROTECTED`] and
    /// [`OWN`].
    pub(super) number: AtomicU64,
    algorithm: SharedAlgorithm<A>,
}

/// What an entry begins with that takes the place of another one.
pub(super) struct Successor<A> {
    pub(super) number: u64,
    pub(super) algorithm: SharedAlgorithm<A>,
    /// Whether the algorithm is the key's own.
    pub(super) is_own: bool,
    pub(super) is_banned: bool,
    pub(super) word: u64,
    pub(super) since: Tick,
}

/// A word that was in force when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) word: u64,
    pub(super) since: Tick,
    pub(super) first: u64,
}

/// What an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Nobody has decided on it.
    Pending,
    /// Somebody has.
    Live(Live),
    Retired,
    /// Its successor is in the map, or will be.
    Moved,
}

/// The answer of an operation and its tick; `None` if nothing is decided on this entry any more.
type Decided<A, O> = Option<(Result<<O as Op<A>>::Output, <O as Op<A>>::Refusal>, Tick)>;

/// The word 0 for the first one, and the first one for 0.
#[inline(always)]
pub(super) const fn swapped(word: u64, first: u64) -> u64 {
    match word {
        0 => first,
        word if word == first => 0,
        word => word,
    }
}

impl<A> MapEntry<A> {
    /// Of a key that nobody has decided on.
    pub(super) fn pending(number: u64, algorithm: SharedAlgorithm<A>) -> Self {
        Self {
            cell: WordCell::new(0),
            since: AtomicU64::new(PENDING),
            number: AtomicU64::new(number & NUMBER),
            algorithm,
        }
    }

    /// Of the key of this entry, which was moved.
    pub(super) fn succeeded_by(&self, successor: &Successor<A>) -> Self
    where
        A: Algorithm,
    {
        Self::new(successor, self.is_protected())
    }

    /// Of a key that has a word.
    pub(super) fn new(successor: &Successor<A>, is_protected: bool) -> Self
    where
        A: Algorithm,
    {
        let first = first_word(&**successor.algorithm, successor.since);
        let own = if successor.is_own { OWN } else { 0 };
        let protected = if is_protected { PROTECTED } else { 0 };
        let banned = if successor.is_banned { BANNED } else { 0 };
        Self {
            cell: WordCell::new(swapped(successor.word.min(MAX_WORD), first)),
            since: AtomicU64::new(successor.since.as_nanos().min(STILL_PENDING - 1)),
            number: AtomicU64::new(successor.number & NUMBER | own | protected | banned),
            algorithm: SharedAlgorithm::clone(&successor.algorithm),
        }
    }

    /// The key's algorithm.
    #[inline(always)]
    pub(super) fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The same, to be shared with another entry.
    pub(super) fn shared(&self) -> &SharedAlgorithm<A> {
        &self.algorithm
    }

    /// Whether the algorithm is the key's own, and not that of all.
    pub(super) fn has_its_own(&self) -> bool {
        self.load_number() & OWN != 0
    }

    /// Whether the key was banned, and not granted anything since. (It may say so shortly after a
    /// grant, while the thread that made it is about to take the bit away.)
    pub(super) fn has_ban(&self) -> bool {
        self.load_number() & BANNED != 0
    }

    /// What no other entry has.
    pub(super) fn number(&self) -> u64 {
        self.load_number() & NUMBER
    }

    /// Whether it has the algorithm of all, but not this one.
    pub(super) fn is_behind(&self, latest: &SharedAlgorithm<A>) -> bool {
        !self.has_its_own() && !SharedAlgorithm::ptr_eq(latest, &self.algorithm)
    }

    /// The number, by whose lower half its grants are known, and the bit.
    #[inline(always)]
    fn load_number(&self) -> u64 {
        // ORDERING: Relaxed. The number and `OWN` never change. `PROTECTED` is set once: only
        // `is_protected` draws a conclusion from it, and has a fence. `BANNED` is taken away once:
        // a thread that is told of the grant that ended the ban finds it gone.
        self.number.load(Ordering::Relaxed)
    }

    /// Whether the key was granted something a second time before its word became what the caller
    /// has read. (Where one thread set the bit and another one, which saw it, made the second
    /// grant, it may be missed: the key then leaves as one that is not protected.)
    pub(super) fn is_protected(&self) -> bool {
        self.standing() & STANDING_PROTECTED != 0
    }

    /// Whether the key [has a ban](Self::has_ban), and whether it is
    /// [protected](Self::is_protected), in the two highest bits.
    pub(super) fn standing(&self) -> u8 {
        // ORDERING: Acquire, with the fence of `protect`.
        // Model: keyed_map::a_second_grant_protects_a_key
        fence(Ordering::Acquire); // after the word was read
        ((self.load_number() & (BANNED | PROTECTED)) >> 56) as u8
    }

    /// Protects the key, which is about to be granted something a second time.
    fn protect(&self) {
        // ORDERING: Relaxed, and then the fence, Release: it publishes the bit with the word that
        // the caller exchanges next. It pairs with the fence of `standing`.
        // Model: keyed_map::a_second_grant_protects_a_key
        self.number.fetch_or(PROTECTED, Ordering::Relaxed);
        fence(Ordering::Release); // before the second grant
    }

    /// The tick since which it counts, which the first thread that asks says. `None` if its
    /// algorithm was replaced before any thread asked: then it is retired.
    #[inline(always)]
    pub(super) fn since(&self, latest: &Latest<A>, now: Tick, horizon: &Horizon) -> Option<Tick> {
        // ORDERING: Relaxed. It is said once, and publishes nothing: nobody draws a conclusion from
        // it but this tick. Model: keyed_map::a_late_tick_gets_no_second_burst
        match self.since.load(Ordering::Relaxed) {
            STILL_PENDING.. => self.begin(latest, now, horizon),
            since => Some(Tick::from_nanos(since)),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, latest: &Latest<A>, now: Tick, horizon: &Horizon) -> Option<Tick> {
        // ORDERING: SeqCst, with the fence of `retire`. A thread that is here has found this entry
        // in the map. An entry that this key had before was retired, and its tick brought to the
        // horizon, before it was taken out and this one could be inserted: so what is read now is
        // no earlier. Also with the fence of `set_quota`: either this thread reads the new
        // algorithm, or the thread that sets the quota finds this entry in the map, and moves it.
        // Models: keyed_map::a_late_tick_gets_no_second_burst, a_quota_is_set_for_all_keys
        fence(Ordering::SeqCst); // after it was found
        // It was inserted with the algorithm that was the latest one a while before.
        if !latest.is(&self.algorithm) && !inject_fault!(TrustsItsBirth) {
            // If it fails, another thread has decided; the caller looks again.
            let _ = self.retire_pending();
            return None;
        }
        let since = inject_fault!(CountsAtOwnTick => now, else now.max(horizon.tick()));
        let since = since.as_nanos().min(STILL_PENDING - 1);
        // ORDERING: Relaxed, as in `since`: the first thread that says it is right, and all use
        // what it said.
        Some(Tick::from_nanos(self.say(since)))
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

    /// Runs an operation, and says at which tick; `None` if nothing is decided on this entry any
    /// more.
    #[inline(always)]
    pub(super) fn decide<O: Op<A>>(
        &self,
        latest: &Latest<A>,
        now: Tick,
        horizon: &Horizon,
        op: &mut O,
    ) -> Decided<A, O>
    where
        A: Algorithm,
    {
        let algorithm = self.algorithm();
        let since = self.since(latest, now, horizon)?;
        let at = now.max(since);
        let first = first_word(algorithm, since);
        let stored = self.cell.load();
        if stored >= MOVED {
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
            Err(refusal) if !self.has_ban() => Some((Err(refusal), at)),
            // As for a banned key.
            Ok((next, answer)) if op.is_unchanged(word, next) => Some((Ok(answer), at)),
            // A key that is not protected yet may have to be, and a ban to be ended: out of line.
            Ok((next, answer))
                if number.wrapping_sub(PROTECTED) < BANNED - PROTECTED
                    && next <= MAX_WORD
                    && self.exchange(stored, swapped(next, first)) =>
            {
                Some((Ok(answer), at))
            }
            _ => self.retry(algorithm, stored, first, at, op),
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
    ) -> Decided<A, O>
    where
        A: Algorithm,
    {
        let mut backoff = Backoff::new();
        let mut stored = backoff.wait_if_changed(stored, || self.cell.load());
        while stored < MOVED {
            let word = swapped(stored, first);
            let number = self.load_number();
            if number >= BANNED {
                return self.retry_banned(algorithm, stored, first, at, op);
            }
            let current = Current::new(word, at).with_source(number as u32);
            let (next, answer) = match op.run(algorithm, current) {
                Ok(done) => done,
                Err(refusal) => return Some((Err(refusal), at)),
            };
            if op.is_unchanged(word, next) {
                return Some((Ok(answer), at));
            }
            // An algorithm can come to a word that says that the entry was moved, by more debt than
            // any clock runs.
            let next = next.min(MAX_WORD);
            // Before the exchange: a thread that finds the word of a second grant does not take the
            // key for one that was granted something once.
            let protects = O::TAKES && stored != 0 && number & PROTECTED == 0;
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

    /// The turns on a key that was banned, and was not granted anything since.
    #[cold]
    #[inline(never)]
    fn retry_banned<O: Op<A>>(
        &self,
        algorithm: &A,
        mut stored: u64,
        first: u64,
        at: Tick,
        op: &mut O,
    ) -> Decided<A, O>
    where
        A: Algorithm,
    {
        while stored < MOVED {
            let word = swapped(stored, first);
            let number = self.load_number();
            let mut current = Current::new(word, at).with_source(number as u32);
            current.is_banned = number >= BANNED && algorithm.available(word, at) == 0;
            let (next, answer) = match op.run(algorithm, current) {
                Ok(done) => done,
                Err(refusal) if current.is_banned => return Some((Err(refusal.by_ban()), at)),
                Err(refusal) => return Some((Err(refusal), at)),
            };
            if op.is_unchanged(word, next) {
                return Some((Ok(answer), at));
            }
            if O::TAKES && stored != 0 && number & PROTECTED == 0 {
                self.protect();
            }
            let ends_ban = O::GRANTS || !current.is_banned;
            if ends_ban && inject_fault!(EndsTheBanFirst) {
                self.end_ban();
            }
            if self.exchange(stored, swapped(next.min(MAX_WORD), first)) {
                if ends_ban {
                    self.end_ban();
                }
                return Some((Ok(answer), at));
            }
            stored = self.cell.load();
        }
        None
    }

    /// Says that the ban is over. After the word was changed: while it is in force, nothing may be
    /// given back.
    fn end_ban(&self) {
        // ORDERING: Relaxed. The bit publishes nothing, and is taken away once: a new ban has an
        // entry of its own.
        self.number.fetch_and(!BANNED, Ordering::Relaxed);
    }
}

/// The word with which an entry begins.
#[inline(always)]
pub(super) fn first_word<A: Algorithm>(algorithm: &A, since: Tick) -> u64 {
    algorithm.initial_word(since).min(MAX_WORD)
}
