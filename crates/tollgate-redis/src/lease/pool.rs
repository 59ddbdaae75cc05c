//! The word that many threads spend from, and that one task fills.
//!
//! Each change is one exchange of the word, and the word holds all that a spender reads, so no
//! access needs an order: see `docs/dev/ORDERINGS.md`.

use super::held::Held;
use super::sync::{AtomicU64, Ordering};

/// What a node holds of a key.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    word: AtomicU64,
}

impl Pool {
    pub(crate) fn held(&self) -> Held {
        Held(self.word.load(Ordering::Relaxed))
    }

    /// Takes `n` permits, if they are there. Returns how many are left, and whether the caller must
    /// tell the holder to draw. A miss writes nothing.
    pub(crate) fn spend(&self, now_ns: u64, n: u64) -> Option<(u64, bool)> {
        self.change(|held| {
            let spent = held.spend(now_ns, n)?;
            Some((spent.held, (spent.held.permits(now_ns), spent.asks)))
        })
    }

    /// Takes out all permits but some, before a message is sent: returns how many stay, how many
    /// were taken out, and how many had lapsed.
    pub(crate) fn withdraw(&self, now_ns: u64, keep: u64) -> (u64, u64, u64) {
        let withdrawn = self.change(|held| {
            let lapsed = held.lapsed(now_ns, 0);
            let (held, keeps, returns) = held.withdraw(now_ns, keep);
            Some((held, (keeps, returns, lapsed)))
        });
        withdrawn.unwrap_or_default()
    }

    /// Takes the permits of an answer in: see [`Held::answered`]. Returns how many there are, and
    /// how many had lapsed.
    pub(crate) fn answered(
        &self,
        now_ns: u64,
        lost: u64,
        more: u64,
        until_ns: u64,
        mark: u64,
    ) -> (u64, u64) {
        let answered = self.change(|held| {
            let lapsed = held.lapsed(now_ns, lost);
            let held = held.answered(now_ns, lost, more, until_ns, mark);
            Some((held, (held.permits(now_ns), lapsed)))
        });
        answered.unwrap_or_default()
    }

    /// Puts back permits that were not used after all.
    pub(crate) fn put_back(&self, now_ns: u64, n: u64) {
        let _ = self.change(|held| Some((held.returned(now_ns, n), ())));
    }

    /// Changes the word, or leaves it as it is.
    fn change<T>(&self, change: impl Fn(Held) -> Option<(Held, T)>) -> Option<T> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, result) = change(Held(word))?;
            let exchanged =
                self.word
                    .compare_exchange_weak(word, next.0, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(result),
                Err(seen) => word = seen,
            }
        }
    }
}
