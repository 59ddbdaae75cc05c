//! Denials that a process remembers, so that a flood of denied requests makes no calls.
//!
//! A server has one table of them, [`Denials`], and each limit that remembers has a [`Memory`] in
//! it. A table's key is the user, the permits that were asked for, and the *epoch* of the memory.
//! No two memories ever have the same epoch. What may free permits moves the epoch, so that all
//! denials of the limit are forgotten. The epoch of a denial is read before its call is sent. So a
//! denial that the server made before permits came back, and whose answer comes later, is not
//! found.

#![expect(clippy::disallowed_types, reason = "no model runs this crate")]

mod word;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::error::LimiterError;
use tollgate::{Denied, Keyed, Tick};

use word::{Remember, word_of};

/// How many denials a server's table has room for, of all its limits.
pub(crate) const ROOM: usize = 65_536;

/// The remembered denials of the limits of a server.
pub(crate) struct Denials {
    table: Keyed<Remember, ()>,
    next_epoch: AtomicU64,
    answered: Counter,
}

impl Denials {
    pub(crate) fn new(room: usize) -> Result<Self, LimiterError> {
        Ok(Self {
            table: Keyed::with_clock(Remember, room, ())?,
            next_epoch: AtomicU64::new(0),
            answered: Counter::default(),
        })
    }

    /// Returns how many decisions remembered denials have answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.sum()
    }

    fn new_epoch(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing: epochs need only be distinct.
        self.next_epoch.fetch_add(1, Ordering::Relaxed)
    }
}

/// The denials of one limit that are remembered.
pub(crate) struct Memory {
    denials: Arc<Denials>,
    epoch: AtomicU64,
}

/// A denial that is remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recalled {
    pub(crate) wait: Duration,
    is_ban: bool,
}

impl Recalled {
    #[inline]
    pub(crate) const fn denied(self, n: u64) -> Denied {
        match self.is_ban {
            true => Denied::banned(n, Some(self.wait)),
            false => Denied::later(n, self.wait),
        }
    }
}

/// A call that may be denied: when it is sent, and in which epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    epoch: u64,
    at: Tick,
}

impl Memory {
    pub(crate) fn new(denials: &Arc<Denials>) -> Self {
        Self {
            denials: Arc::clone(denials),
            epoch: AtomicU64::new(denials.new_epoch()),
        }
    }

    /// Returns the denial of `n` permits that is remembered.
    #[inline]
    pub(crate) fn recall(&self, user: &[u8], n: u64, now: Tick) -> Option<Recalled> {
        let key = (user, n, self.epoch());
        // It takes nothing, so it writes nothing.
        let denied = self
            .denials
            .table
            .key(&key)
            .at(now)
            .try_acquire_n(0)
            .err()?;
        Some(Recalled {
            wait: denied.retry_after()?,
            is_ban: matches!(denied, Denied::Banned { .. }),
        })
    }

    /// Counts a decision that a remembered denial has answered.
    pub(crate) fn count(&self) {
        self.denials.answered.add();
    }

    /// Notes that a call is sent now.
    pub(crate) fn sent(&self, at: Tick) -> Sent {
        let epoch = self.epoch();
        Sent { epoch, at }
    }

    /// Remembers a denial that was received now.
    pub(crate) fn remember(&self, user: &[u8], n: u64, denied: &Denied, sent: Sent, now: Tick) {
        if let Some(word) = word_of(denied, sent.at, now) {
            // Another call may have remembered one, or there may be no room.
            let key = self.denials.table.key(&(user, n, sent.epoch));
            let _ = key.at(now).try_acquire_n(word);
        }
    }

    /// Forgets all denials of the limit.
    fn forget(&self) {
        let epoch = self.denials.new_epoch();
        // ORDERING: Release. A caller that reads this epoch sends its calls after permits have come
        // back. If two threads forget at once, either epoch is new.
        self.epoch.store(epoch, Ordering::Release);
    }

    #[inline]
    fn epoch(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the store of `forget`.
        self.epoch.load(Ordering::Acquire)
    }
}

/// Forgets the denials of a limit when it is dropped: when a call that may free permits has ended,
/// whether it was answered or not.
pub(crate) struct Forgets<'a>(pub(crate) Option<&'a Memory>);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            memory.forget();
        }
    }
}

impl fmt::Debug for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denials").finish_non_exhaustive()
    }
}

/// A count that many threads add to. The first threads of the process have a part each, in cache
/// lines of its own, and the others share the last one.
struct Counter([Part; PARTS]);

const PARTS: usize = 64;

#[derive(Default)]
#[repr(align(128))]
struct Part(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Part::default()))
    }
}

impl Counter {
    fn add(&self) {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            // ORDERING: Relaxed, here and below. A count publishes nothing.
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let [own @ .., Part(shared)] = &self.0;
        // A thread that ends has no number any more.
        match THREAD.try_with(|thread| own.get(*thread)) {
            // No other thread writes it, so this needs no exchange, which costs as much as a clock.
            Ok(Some(Part(count))) => {
                let next = count.load(Ordering::Relaxed).wrapping_add(1);
                count.store(next, Ordering::Relaxed);
            }
            _ => _ = shared.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn sum(&self) -> u64 {
        let counts = self
            .0
            .iter()
            .map(|Part(count)| count.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
#[path = "../../tests/remembered/mod.rs"]
mod tests;
