//! The entry of a key, and the protocol by which it leaves.
//!
//! # The word
//!
//! A decision finds its key's entry, reads the word, computes the next one, and exchanges the word.
//! Its thread may be preempted in between, for any time. So before an entry is removed from the
//! map, its word is *retired*: exchanged for all ones, which no algorithm uses. A late decision
//! then reads the retired word, or its exchange fails, and it looks its key up again. **A retired
//! word grants nothing, and a denial or a query uses a word that was current when it was read.** So
//! at most one word at a time grants permits for a key: a new entry can be inserted only after the
//! old one was removed, and the old one was retired before that.
//!
//! ```text
//!   inserted: pending ──first verb──► word ⇄ word ──retired──► all ones, for ever; then removed
//!                                        (if it is idle, the horizon is raised first)
//! ```
//!
//! A thread that finds a retired entry removes it and continues: it does not wait for the thread
//! that retired it.
//!
//! An entry whose algorithm or quota changes is not retired but *moved*: its word is exchanged for
//! another reserved value, and its [successor](super::moving) replaces it in the map. A thread that
//! finds a moved entry inserts the successor itself.
//!
//! # The ticks
//!
//! A key that becomes idle at tick `t` decides like a fresh key from `t` on, but not before. If it
//! leaves, a caller with an older tick would find it fresh too early. So each entry has a *since*
//! tick, and an operation with an older tick runs at the since tick instead. The since tick is no
//! earlier than any tick at which an earlier entry of the key became idle. So all entries of a key
//! together decide like one word, which is replaced by a fresh one only when both decide alike. The
//! bound holds over every interval of [`Granted::at`](crate::Granted::at), whatever the callers'
//! ticks.
//!
//! One tick serves all keys: the [`Horizon`]. It is raised *before* a word is retired. It is read
//! *after* the new entry is in the map, by the first thread that decides on that entry. (A thread
//! that read it earlier could miss that the key was inserted, spent its burst and left in between.)

use super::horizon::Horizon;
use super::latest::{Latest, SharedAlgorithm};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::cell::{AtomicWord, WordCell};
use crate::store::op::{Current, Op, Refusal};
use crate::sync::{AtomicU64, Backoff, Ordering, fence, inject_fault};

/// The word of a retired entry. No algorithm uses it.
pub(super) const RETIRED: u64 = u64::MAX;

/// The word of a moved entry. Every stored word is smaller.
pub(super) const MOVED: u64 = RETIRED - 1;

/// The largest word that is stored for an algorithm.
pub(super) const MAX_WORD: u64 = MOVED - 1;

/// The `since` of a pending entry: no decision has used it yet.
pub(super) const PENDING: u64 = u64::MAX;

/// The `since` of a pending entry that a search for idle keys has seen once.
pub(super) const STILL_PENDING: u64 = PENDING - 1;

/// The bit of `number` for a protected key. The key got a second grant since it was inserted, and
/// is evicted after unprotected keys.
const PROTECTED: u64 = 1 << 62;

/// The bit of `number` for a banned key. It is set when the entry is made, and cleared after the
/// first grant after the ban. It is the highest bit, so one comparison shows whether the fast path
/// applies.
const BANNED: u64 = 1 << 63;

/// The bit of `number` for a key with its own algorithm.
const OWN: u64 = 1 << 61;

/// [`PROTECTED`], in the eight highest bits.
pub(super) const STANDING_PROTECTED: u8 = (PROTECTED >> 56) as u8;

/// The bits of `number` that hold the number itself.
const NUMBER: u64 = OWN - 1;

/// The state of a key.
pub(super) struct MapEntry<A> {
    /// The word, with 0 and the first word swapped. An entry is created with 0, which stands for
    /// its first word before that word is known.
    pub(super) cell: WordCell,
    /// The earliest tick at which operations on the entry run, or [`PENDING`].
    pub(super) since: AtomicU64,
    /// A unique number, with the bits [`BANNED`], [`PROTECTED`] and [`OWN`].
    pub(super) number: AtomicU64,
    algorithm: SharedAlgorithm<A>,
}

/// The initial state of an entry that replaces another one.
pub(super) struct Successor<A> {
    pub(super) number: u64,
    pub(super) algorithm: SharedAlgorithm<A>,
    /// Whether the algorithm is the key's own.
    pub(super) is_own: bool,
    pub(super) is_banned: bool,
    pub(super) word: u64,
    pub(super) since: Tick,
}

/// A word that was current when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) word: u64,
    pub(super) since: Tick,
    pub(super) first: u64,
}

/// The state of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// No decision has used it yet.
    Pending,
    /// Decisions use this word.
    Live(Live),
    Retired,
    /// Its successor replaces it in the map, or will.
    Moved,
}

/// The answer of an operation and its tick, or `None` if the entry is retired or moved.
type Decided<A, O> = Option<(Result<<O as Op<A>>::Output, <O as Op<A>>::Refusal>, Tick)>;

/// Swaps 0 and the first word.
#[inline(always)]
pub(super) const fn swapped(word: u64, first: u64) -> u64 {
    match word {
        0 => first,
        word if word == first => 0,
        word => word,
    }
}

impl<A> MapEntry<A> {
    /// Creates the entry of a new key.
    pub(super) fn pending(number: u64, algorithm: SharedAlgorithm<A>) -> Self {
        Self {
            cell: WordCell::new(0),
            since: AtomicU64::new(PENDING),
            number: AtomicU64::new(number & NUMBER),
            algorithm,
        }
    }

    /// Creates the successor of this entry, which was moved.
    pub(super) fn succeeded_by(&self, successor: &Successor<A>) -> Self
    where
        A: Algorithm,
    {
        Self::new(successor, self.is_protected())
    }

    /// Creates an entry that starts with a given word.
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

    /// Returns the key's algorithm.
    #[inline(always)]
    pub(super) fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the key's algorithm, to be shared with another entry.
    pub(super) fn shared(&self) -> &SharedAlgorithm<A> {
        &self.algorithm
    }

    /// Returns whether the algorithm is the key's own, instead of the map's.
    pub(super) fn has_its_own(&self) -> bool {
        self.load_number() & OWN != 0
    }

    /// Returns whether the key was banned and has got no grant since. (It may return true shortly
    /// after a grant, until the granting thread clears the bit.)
    pub(super) fn has_ban(&self) -> bool {
        self.load_number() & BANNED != 0
    }

    /// Returns the entry's unique number.
    pub(super) fn number(&self) -> u64 {
        self.load_number() & NUMBER
    }

    /// Returns whether the entry uses the map's algorithm, but not the latest one.
    pub(super) fn is_behind(&self, latest: &SharedAlgorithm<A>) -> bool {
        !self.has_its_own() && !SharedAlgorithm::ptr_eq(latest, &self.algorithm)
    }

    /// Returns the number with its bits. Its lower half identifies the entry's grants.
    #[inline(always)]
    fn load_number(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing. The number and `OWN` never change. `PROTECTED`
        // is set once, and only `standing` depends on its order, by a fence. `BANNED` is cleared
        // once: a thread that knows of the grant that ended the ban also sees it cleared.
        self.number.load(Ordering::Relaxed)
    }

    /// Returns whether the key got a second grant before its word became the one that the caller
    /// has read. (It may miss this if one thread set the bit and another thread, which saw the bit,
    /// made the second grant. The key is then evicted as an unprotected one.)
    pub(super) fn is_protected(&self) -> bool {
        self.standing() & STANDING_PROTECTED != 0
    }

    /// Returns in the two highest bits whether the key [has a ban](Self::has_ban) and whether it is
    /// [protected](Self::is_protected).
    pub(super) fn standing(&self) -> u8 {
        // ORDERING: Acquire. It publishes nothing, and pairs with the fence of `protect`.
        // Model: keyed_map::a_second_grant_protects_a_key
        fence(Ordering::Acquire); // after the word was read
        ((self.load_number() & (BANNED | PROTECTED)) >> 56) as u8
    }

    /// Protects the key, just before its second grant.
    fn protect(&self) {
        // ORDERING: Relaxed, then a Release fence. It publishes the bit with the word that the
        // caller exchanges next, and pairs with the fence of `standing`.
        // Model: keyed_map::a_second_grant_protects_a_key
        self.number.fetch_or(PROTECTED, Ordering::Relaxed);
        fence(Ordering::Release); // before the second grant
    }

    /// Returns the entry's since tick, which the first call sets. Returns `None` if the map's
    /// algorithm was replaced before that. The entry is then retired.
    #[inline(always)]
    pub(super) fn since(&self, latest: &Latest<A>, now: Tick, horizon: &Horizon) -> Option<Tick> {
        // ORDERING: Relaxed. It publishes nothing. The tick is written once, and nothing else
        // depends on it.
        // Model: keyed_map::a_late_tick_gets_no_second_burst
        match self.since.load(Ordering::Relaxed) {
            STILL_PENDING.. => self.begin(latest, now, horizon),
            since => Some(Tick::from_nanos(since)),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, latest: &Latest<A>, now: Tick, horizon: &Horizon) -> Option<Tick> {
        // ORDERING: SeqCst. It publishes nothing, and pairs with two fences. First, that of
        // `retire`: if the key had an earlier entry, the horizon was raised and that entry retired
        // before it was removed. Only then could this entry be inserted, and this thread has found
        // it in the map. So the horizon that is read below is no earlier. Second, that of
        // `bring_all_to`: either this thread reads the new algorithm, or the thread that sets the
        // quota finds this entry in the map and moves it.
        // Models: keyed_map::a_late_tick_gets_no_second_burst,
        // keyed_map_quota::a_quota_is_set_for_all_keys
        fence(Ordering::SeqCst); // after it was found
        // The entry's algorithm was the latest one when the entry was created, which may be some
        // time ago.
        if !latest.is(&self.algorithm) && !inject_fault!(TrustsItsBirth) {
            // If this fails, another thread has decided; the caller looks again.
            let _ = self.retire_pending();
            return None;
        }
        let since = inject_fault!(CountsAtOwnTick => now, else now.max(horizon.tick()));
        let since = since.as_nanos().min(STILL_PENDING - 1);
        // ORDERING: Relaxed, as in `since`. The first thread sets the tick, and all threads use it.
        Some(Tick::from_nanos(self.say(since)))
    }

    /// Sets the since tick, unless it is set already. Returns the tick that is set.
    fn say(&self, since: u64) -> u64 {
        // ORDERING: Relaxed, here and below. The tick publishes nothing else, and is written once.
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

    /// Runs an operation, and returns its answer and tick. Returns `None` if the entry is retired
    /// or moved.
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
            // This answer is the same for a banned key.
            Ok((next, answer)) if op.is_unchanged(word, next) => Some((Ok(answer), at)),
            // A grant to an unprotected or banned key also changes its bits, out of line.
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

    /// Makes the attempts after the first one, runs long operations, and makes grants to
    /// unprotected or banned keys.
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
            // An algorithm may return a larger word for a debt that takes longer than any clock
            // runs. That word would mean that the entry was moved.
            let next = next.min(MAX_WORD);
            // Before the exchange: a thread that reads the word of a second grant then also sees
            // that the key is protected.
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

    /// Makes attempts on a key that was banned and has got no grant since.
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

    /// Ends the ban, after the grant's exchange: while the ban lasts, no permits may be returned.
    fn end_ban(&self) {
        // ORDERING: Relaxed. The bit publishes nothing and is cleared once: a new ban creates a new
        // entry.
        self.number.fetch_and(!BANNED, Ordering::Relaxed);
    }
}

/// Returns the word with which an entry starts.
#[inline(always)]
pub(super) fn first_word<A: Algorithm>(algorithm: &A, since: Tick) -> u64 {
    algorithm.initial_word(since).min(MAX_WORD)
}
