//! The permits that a node holds of a key, and which grants may be put back: those that were made
//! after the latest message. What the node no longer keeps, the message says is spent.

use std::sync::PoisonError;

use super::pool::Pool;
use super::sync::{AtomicU64, Mutex, Ordering};

#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) pool: Pool,
    /// The number of the latest message, after which grants are made. A spender reads it without
    /// the lock, and before it spends.
    latest: AtomicU64,
    /// Locked while a message is made, and while permits are put back.
    asking: Mutex<()>,
}

impl Permits {
    pub(crate) fn new() -> Self {
        Self {
            pool: Pool::default(),
            latest: AtomicU64::new(0),
            asking: Mutex::new(()),
        }
    }

    /// Takes permits: see [`Pool::spend`]. Also returns the message after which they are taken.
    #[inline]
    pub(crate) fn spend(&self, now_ns: u64, n: u64) -> Option<(u64, u64, bool)> {
        // ORDERING: Acquire. It pairs with the stores of `withdraw` and `answered`: a grant that
        // names a message was spent after it.
        let message = self.latest.load(Ordering::Acquire);
        let (left, tells) = self.pool.spend(now_ns, n)?;
        Some((left, message, tells))
    }

    /// Takes out all permits but some, for a message: see [`Pool::withdraw`].
    pub(crate) fn withdraw(&self, now_ns: u64, keep: u64, message: u64) -> (u64, u64, u64) {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let withdrawn = self.pool.withdraw(now_ns, keep);
        // ORDERING: Release. Who reads this message spends after it, or spent before and names an
        // earlier one.
        self.latest.store(message, Ordering::Release);
        withdrawn
    }

    /// Puts back permits of a grant that were not used, if it was made after the latest message.
    /// Returns how many.
    pub(crate) fn put_back(&self, now_ns: u64, n: u64, after: u64) -> u64 {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = self.latest.load(Ordering::Relaxed) != after;
        if is_told || now_ns >= self.pool.held().until_ns() {
            return 0;
        }
        self.pool.put_back(now_ns, n);
        n
    }

    /// Takes the permits of an answer in: see [`Pool::answered`]. If some were lost, no earlier
    /// grant is put back: `message` is the number of none.
    pub(crate) fn answered(
        &self,
        now_ns: u64,
        [lost, granted]: [u64; 2],
        until_ns: u64,
        mark: u64,
        message: u64,
    ) -> (u64, u64) {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = self.pool.answered(now_ns, lost, granted, until_ns, mark);
        if lost > 0 {
            self.latest.store(message, Ordering::Release);
        }
        answered
    }
}
