//! The keys that a node has leases of, and how a key gets one.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use papaya::HashMap;

use crate::lease::holder::Brought;
use crate::lease::pool::Pool;
use crate::lease::terms::Terms;

/// A key that has a lease, or is to get one.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) user: Box<[u8]>,
    /// The key on the server.
    pub(crate) name: Vec<u8>,
    pub(crate) pool: Pool,
    /// The number of the latest message, after which grants are made. A spender reads it without
    /// the lock, and before it spends.
    latest: AtomicU64,
    /// Locked while a message is made, and while permits are put back.
    asking: Mutex<()>,
    /// Whether the task is told already.
    is_queued: AtomicBool,
    /// Whether the latest message has failed. Then the server, or the fallback, decides what the
    /// process can't.
    has_failed: AtomicBool,
    /// How many permits were asked for and not there, since the task looked.
    pub(crate) missed: AtomicU64,
    /// Until then the server has nothing for anyone, as it said.
    pub(crate) none_until_ns: AtomicU64,
    /// The task asks nothing before this.
    pause_until_ns: AtomicU64,
    /// When the server may have permits again, for those who are denied.
    pub(crate) due_ns: AtomicU64,
}

/// What a process says to a request without asking the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The permits are granted, and `left` remain. The grant was made after this message.
    Granted { left: u64, message: u64 },
    /// Nothing is left before this.
    Denied { wait: Duration },
    /// The server decides.
    Ask,
}

impl Hot {
    pub(crate) fn pause_until_ns(&self) -> u64 {
        self.pause_until_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn pause_until(&self, until_ns: u64) {
        self.pause_until_ns.store(until_ns, Ordering::Relaxed);
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

    /// Puts back permits of a grant that were not used, unless a message has said since that they
    /// are spent. Returns how many.
    pub(crate) fn put_back(&self, now_ns: u64, n: u64, message: u64) -> u64 {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = self.latest.load(Ordering::Relaxed) != message;
        if is_told || now_ns >= self.pool.held().until_ns() {
            return 0;
        }
        self.pool.put_back(now_ns, n);
        n
    }

    /// Forgets that the server had nothing.
    pub(crate) fn forget(&self) {
        for until in [&self.none_until_ns, &self.pause_until_ns, &self.due_ns] {
            until.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the permits of an answer in: see [`Pool::answered`]. If some were lost, no earlier
    /// grant is put back: `message` is the number of none.
    pub(crate) fn answered(
        &self,
        now_ns: u64,
        brought: &Brought,
        until_ns: u64,
        mark: u64,
        message: u64,
    ) -> (u64, u64) {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let Brought { lost, granted, .. } = *brought;
        let answered = self.pool.answered(now_ns, lost, granted, until_ns, mark);
        if lost > 0 {
            self.latest.store(message, Ordering::Release);
        }
        answered
    }

    pub(crate) fn set_failed(&self, has_failed: bool) {
        self.has_failed.store(has_failed, Ordering::Relaxed);
    }

    /// Decides a request from what the process holds. Also returns whether the task must be told to
    /// look at the key.
    pub(crate) fn decide(
        &self,
        now_ns: u64,
        n: u64,
        terms: &Terms,
        asks_at_the_edge: bool,
    ) -> (Said, bool) {
        // ORDERING: Acquire. It pairs with the stores of `withdraw` and `answered`: a grant that
        // names a message was spent after it.
        let message = self.latest.load(Ordering::Acquire);
        if let Some((left, tells)) = self.pool.spend(now_ns, n) {
            return (Said::Granted { left, message }, tells);
        }
        if n > terms.most || n == 0 {
            return (Said::Ask, false);
        }
        let tells = self.missed.fetch_add(n, Ordering::Relaxed) == 0;
        let none_until_ns = self.none_until_ns.load(Ordering::Relaxed);
        let has_lease = now_ns < self.pool.held().until_ns();
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        let said = match has_lease || now_ns < due_ns {
            false => Said::Ask,
            true if self.has_failed.load(Ordering::Relaxed) => Said::Ask,
            true if asks_at_the_edge && now_ns >= none_until_ns => Said::Ask,
            true => {
                let wait_ns = due_ns.max(none_until_ns).saturating_sub(now_ns);
                // The server knows when there is one permit.
                let more_ns = terms.cost_ns.saturating_mul(n.saturating_sub(1));
                let wait_ns = wait_ns.max(1_000_000).saturating_add(more_ns);
                Said::Denied {
                    wait: Duration::from_nanos(wait_ns),
                }
            }
        };
        (said, tells)
    }
}

/// The keys of a node.
#[derive(Debug)]
pub(crate) struct HotKeys {
    most: usize,
    keys: HashMap<Box<[u8]>, Arc<Hot>, RandomState>,
    /// How often keys were asked for in this second, by hash.
    cold: Box<[AtomicU32]>,
    hasher: RandomState,
    /// The number of the latest message. The numbers of a node grow.
    number: AtomicU64,
    /// Keys that the task is to look at.
    queue: Mutex<Vec<Arc<Hot>>>,
}

/// A key that was asked for this often in a second gets a lease.
const HOT_AFTER: u32 = 8;

/// Keys share this many counts, so that a key can get a lease a little early.
const COUNTS: usize = 4096;

impl HotKeys {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            keys: HashMap::with_hasher(RandomState::default()),
            cold: (0..COUNTS).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::default(),
            number: AtomicU64::new(0),
            queue: Mutex::default(),
        }
    }

    /// Calls a function with a key, if it has a lease or is to get one.
    pub(crate) fn with<T>(&self, user: &[u8], call: impl FnOnce(&Arc<Hot>) -> T) -> Option<T> {
        self.keys.pin().get(user).map(call)
    }

    /// Returns whether this is what requests of its key find.
    pub(crate) fn has(&self, hot: &Arc<Hot>) -> bool {
        self.with(&hot.user, |found| Arc::ptr_eq(found, hot))
            .unwrap_or(false)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns how many permits the process may still spend.
    pub(crate) fn held(&self, now_ns: u64) -> u64 {
        let keys = self.keys.pin();
        let held = keys.values().map(|hot| hot.pool.held().permits(now_ns));
        held.fold(0, u64::saturating_add)
    }

    /// Notes that a key without a lease is asked for. Returns whether it is to get one now.
    pub(crate) fn is_getting_hot(&self, user: &[u8]) -> bool {
        let hash = usize::try_from(self.hasher.hash_one(user) % COUNTS as u64).unwrap_or_default();
        let Some(count) = self.cold.get(hash) else {
            return false;
        };
        let before = count.fetch_add(1, Ordering::Relaxed);
        before >= HOT_AFTER && self.keys.len() < self.most
    }

    /// Begins to count the next second.
    pub(crate) fn cool(&self) {
        for count in &self.cold {
            if count.load(Ordering::Relaxed) > 0 {
                count.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns a number for a message that no other one has.
    pub(crate) fn next_number(&self) -> u64 {
        self.number
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1)
    }

    /// Adds a key, for which the task is to get a lease.
    pub(crate) fn add(&self, user: &[u8], name: Vec<u8>) -> Arc<Hot> {
        let hot = Arc::new(Hot {
            user: user.into(),
            name,
            pool: Pool::default(),
            latest: AtomicU64::new(0),
            asking: Mutex::default(),
            is_queued: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            missed: AtomicU64::new(1),
            none_until_ns: AtomicU64::new(0),
            pause_until_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
        });
        let keys = self.keys.pin();
        Arc::clone(keys.get_or_insert(user.into(), hot))
    }

    /// Removes all keys. What was held counts as spent.
    pub(crate) fn clear(&self) {
        let _ = self.told();
        self.keys.pin().clear();
        self.cool();
    }

    pub(crate) fn remove(&self, hot: &Hot) {
        let _ = self.keys.pin().remove(&hot.user);
    }

    /// Tells the task to look at a key.
    pub(crate) fn tell(&self, hot: &Arc<Hot>) {
        if !hot.is_queued.swap(true, Ordering::Relaxed) {
            self.queue().push(Arc::clone(hot));
        }
    }

    /// Returns the keys that the task is to look at.
    pub(crate) fn told(&self) -> Vec<Arc<Hot>> {
        let told = std::mem::take(&mut *self.queue());
        for hot in &told {
            hot.is_queued.store(false, Ordering::Relaxed);
        }
        told
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Hot>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
