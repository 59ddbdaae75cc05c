//! One cell of a sketch: a candidate, and how often other keys came.
//!
//! ```text
//! word:  | candidate: 32 bits | votes: 32 bits |
//! ```
//!
//! A key that is the candidate adds a vote. Another key takes a vote away, or becomes the candidate
//! if there is no vote left (the majority vote of Boyer and Moore). Each vote that was taken away
//! is a pair of different keys, so:
//!
//! - the candidate came at least `votes` times, and at most `votes + cancelled` times;
//! - each other key came at most `cancelled` times.

use super::sync::{AtomicU64, Ordering};

/// A candidate with its votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) candidate: u32,
    pub(super) votes: u32,
}

impl Word {
    pub(super) const fn unpack(word: u64) -> Self {
        Self {
            candidate: (word >> 32) as u32,
            votes: word as u32,
        }
    }

    pub(super) const fn pack(self) -> u64 {
        (self.candidate as u64) << 32 | self.votes as u64
    }

    /// Returns whether this key would take a vote away.
    pub(super) const fn is_against(self, key: u32) -> bool {
        self.votes > 0 && self.candidate != key
    }

    /// Returns the word after a key came.
    pub(super) const fn after(self, key: u32) -> Self {
        let votes = match (self.votes, self.candidate == key) {
            (0, _) => {
                return Self {
                    candidate: key,
                    votes: 1,
                };
            }
            (votes, true) => votes.saturating_add(1),
            (votes, false) => votes - 1,
        };
        Self { votes, ..self }
    }
}

/// What a cell knows at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) word: Word,
    pub(super) cancelled: u64,
}

impl Seen {
    /// Returns how often a key of this cell came, at least and at most.
    pub(super) fn bounds(&self, key: u32) -> (u64, u64) {
        let votes = u64::from(self.word.votes);
        match self.word.candidate == key && votes > 0 {
            true => (votes, votes.saturating_add(self.cancelled)),
            false => (0, self.cancelled),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Cell {
    word: AtomicU64,
    cancelled: AtomicU64,
}

impl Cell {
    /// Adds a key. Returns the word before it, and the word after it.
    pub(super) fn add(&self, key: u32) -> (Word, Word) {
        let mut is_noted = false;
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let before = Word::unpack(seen);
            if before.is_against(key) && !is_noted {
                // ORDERING: the exchange below publishes this. A reader that sees a vote less also
                // sees one more here, so what is at most never is too little. If another key comes
                // between, this may be one too many.
                self.cancelled.fetch_add(1, Ordering::Relaxed);
                is_noted = true;
            }
            let after = before.after(key);
            // ORDERING: Release pairs with the load of `get`.
            let exchanged = self.word.compare_exchange_weak(
                seen,
                after.pack(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return (before, after),
                Err(now) => seen = now,
            }
        }
    }

    pub(super) fn get(&self) -> Seen {
        // ORDERING: Acquire pairs with the exchange of `add`.
        let word = Word::unpack(self.word.load(Ordering::Acquire));
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        Seen { word, cancelled }
    }

    pub(super) fn clear(&self) {
        self.word.swap(0, Ordering::Relaxed);
        self.cancelled.swap(0, Ordering::Relaxed);
    }
}
