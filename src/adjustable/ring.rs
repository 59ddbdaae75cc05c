//! The protocol of [`Adjustable`](super::Adjustable): a pair of words, and two sets of parameters.
//! `docs/dev/ORDERINGS.md` describes it in full.
//!
//! ```text
//!  pair                                 slots
//! ┌──────────────┬──────────────┐      ┌─────────────────────────┬────────────────────────────┐
//! │ version (64) │ word (64)    │      │ 0: of an even version   │ parameters: up to 15 words │
//! └──────┬───────┴──────────────┘      ├─────────────────────────┼────────────────────────────┤
//!        └── version % 2 ────────────► │ 1: of an odd version    │                            │
//!                                      └─────────────────────────┴────────────────────────────┘
//! ```
//!
//! A decision loads the pair, reads the parameters of its version, checks that the slot still
//! belongs to that version, runs the step, and exchanges the pair. Versions never repeat. So an
//! exchange that succeeds proves that the parameters and the word were still current. For a denial,
//! both were current when the pair was loaded.
//!
//! A change writes the parameters of the next version into the other slot, whose version is no
//! longer current. Then it exchanges the pair for the next version and the carried-over word. Until
//! that exchange, only a thread that still uses an older version reads that slot, and its check
//! fails. Wherever a thread stops in a change, the parameters of the current version are complete.

use crossbeam_utils::CachePadded;

use super::keep::Keep;
use crate::algorithm::{ChangeQuota, MAX_SETTINGS, Settings, Visit};
use crate::clock::Tick;
use crate::seq_lock::SeqLock;
use crate::sync::{AtomicU128, FastPair, Ordering, compiler_fence};

/// A version and a word, both read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) version: u64,
    pub(super) word: u64,
}

impl Pair {
    #[inline(always)]
    const fn of_bits(bits: u128) -> Self {
        Self {
            version: (bits >> 64) as u64,
            word: bits as u64,
        }
    }

    #[inline(always)]
    const fn bits(self) -> u128 {
        (self.version as u128) << 64 | self.word as u128
    }

    #[inline(always)]
    pub(super) const fn with_word(self, word: u64) -> Self {
        Self { word, ..self }
    }
}

/// The pair in memory, and how to exchange it.
#[derive(Debug)]
struct PairCell {
    bits: AtomicU128,
    fast_pair: Option<FastPair>,
}

/// The pair, and the parameters of its version and of one other.
#[derive(Debug)]
pub(super) struct Ring {
    pair: CachePadded<PairCell>,
    slots: [SeqLock<MAX_SETTINGS>; 2],
}

impl Ring {
    /// Creates version 0, with this algorithm.
    pub(super) fn new<A: Settings>(algorithm: &A, word: u64) -> Self {
        const { MAX_SETTINGS - A::WORDS };
        let slots = [SeqLock::new(), SeqLock::new()];
        let [first, _] = &slots;
        first.write(0, algorithm);
        let pair = Pair { version: 0, word };
        Self {
            pair: CachePadded::new(PairCell {
                bits: AtomicU128::new(pair.bits()),
                fast_pair: FastPair::there(),
            }),
            slots,
        }
    }

    /// Returns the one-instruction exchange of the pair, if this processor has it.
    #[inline(always)]
    pub(super) fn fast_pair(&self) -> Option<FastPair> {
        self.pair.fast_pair
    }

    pub(super) fn load(&self) -> Pair {
        self.load_with(self.fast_pair())
    }

    #[inline(always)]
    pub(super) fn load_with(&self, fast_pair: Option<FastPair>) -> Pair {
        let bits = &self.pair.bits;
        // ORDERING: Acquire. It pairs with the exchange that made the version current: the slot's
        // words are then of that version or a later one. Exchanges by decisions in between continue
        // that release.
        // Model: adjust::a_decision_is_of_one_version
        let order = Ordering::Acquire;
        Pair::of_bits(match fast_pair {
            Some(fast_pair) => fast_pair.load_versioned(bits, order),
            None => bits.load(order),
        })
    }

    /// Runs `then` on the parameters of this pair's version. Returns `None` if the slot now belongs
    /// to another version.
    #[inline(always)]
    pub(super) fn read<A: Settings, T: Visit<A>>(&self, pair: Pair, then: T) -> Option<T::Output> {
        self.slot(pair.version).read(pair.version, then)
    }

    /// Returns the slot of this version. It uses a branch, not an index: a processor that predicts
    /// the branch reads the parameters while it still loads the version.
    #[inline(always)]
    fn slot(&self, version: u64) -> &SeqLock<MAX_SETTINGS> {
        let [even, odd] = &self.slots;
        match version % 2 {
            0 => even,
            _ => {
                // ORDERING: SeqCst, for the compiler only: it publishes nothing and orders no
                // accesses. It keeps the compiler from turning the branch into an index.
                compiler_fence(Ordering::SeqCst);
                odd
            }
        }
    }

    /// Replaces the word of the pair, if the pair is unchanged. Otherwise returns the current pair,
    /// which may equal `pair` if the exchange failed spuriously.
    pub(super) fn exchange(&self, pair: Pair, word: u64) -> Result<(), Pair> {
        self.exchange_with(self.fast_pair(), pair, word)
    }

    /// Replaces the word of the pair as [`exchange`](Self::exchange) does, with
    /// [`fast_pair`](Self::fast_pair) already read.
    #[inline(always)]
    pub(super) fn exchange_with(
        &self,
        fast_pair: Option<FastPair>,
        pair: Pair,
        word: u64,
    ) -> Result<(), Pair> {
        let (cell, old, new) = (&self.pair.bits, pair.bits(), pair.with_word(word).bits());
        // ORDERING: Relaxed. It publishes nothing. A thread that loads the new pair still
        // synchronizes with the exchange that made the version current. On failure Acquire, as in
        // `load`.
        // Model: adjust::a_decision_is_of_one_version
        let (success, failure) = (Ordering::Relaxed, Ordering::Acquire);
        let exchanged = match fast_pair {
            Some(fast_pair) => fast_pair.compare_exchange(cell, old, new, success, failure),
            None => cell.compare_exchange_weak(old, new, success, failure),
        };
        exchanged.map(|_| ()).map_err(Pair::of_bits)
    }

    /// Makes `new` the next version, after `old`. The caller ensures that no other thread does so
    /// at the same time.
    pub(super) fn bring<A: ChangeQuota + Settings>(&self, old: &A, new: &A, keep: Keep, now: Tick) {
        let mut pair = self.load();
        // The version does not repeat: 2^64 changes take centuries.
        let version = pair.version.wrapping_add(1);
        self.slot(version).write(version, new);
        loop {
            let word = keep.carry()(old, pair.word, now, new);
            match self.exchange_version(pair, Pair { version, word }) {
                Ok(()) => return,
                Err(seen) => pair = seen,
            }
        }
    }

    fn exchange_version(&self, pair: Pair, next: Pair) -> Result<(), Pair> {
        // ORDERING: Release. It publishes the parameters of the new version: a thread that loads
        // this version, also from a later exchange by a decision, reads no older parameters. On
        // failure Relaxed: only the word is used.
        // Model: adjust::a_decision_is_of_one_version
        let (old, new) = (pair.bits(), next.bits());
        let cell = &self.pair.bits;
        let exchanged = cell.compare_exchange_weak(old, new, Ordering::Release, Ordering::Relaxed);
        exchanged.map(|_| ()).map_err(Pair::of_bits)
    }
}
