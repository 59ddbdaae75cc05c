//! The keys that a node has leases of, and how a key gets one.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::SeedableRandomState;
use papaya::HashMap;
use tokio::sync::Notify;

use crate::lease::holder::Brought;
use crate::lease::permits::Permits;
use crate::lease::slot_pool::SlotPool;
use crate::lease::terms::Terms;

/// A key that has a lease, or is to get one.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) user: Box<[u8]>,
    /// The key on the server.
    pub(crate) name: Vec<u8>,
    /// Of a rate.
    pub(crate) permits: Permits,
    /// Of a limit on concurrency, which has no permits.
    slots: Option<Box<Slots>>,
    /// Whether the task is told already.
    is_queued: AtomicBool,
    /// Whether the latest message has failed. Then the fallback decides what the process can't.
    has_failed: AtomicBool,
    /// How many permits were asked for and not there, since the task looked.
    pub(crate) missed: AtomicU64,
    /// The most of them that one request asked for.
    pub(crate) largest: AtomicU64,
    /// Until then the server has nothing for anyone, as it said.
    pub(crate) none_until_ns: AtomicU64,
    /// The task asks nothing before this.
    pause_until_ns: AtomicU64,
    /// When the server may have permits again, for those who are denied.
    pub(crate) due_ns: AtomicU64,
    /// The key is banned before this, says the latest answer.
    pub(crate) banned_until_ns: AtomicU64,
}

/// The slots of a key.
#[derive(Debug)]
pub(crate) struct Slots {
    /// A number that no other key has, also none before it of the same name: grants name it.
    id: u64,
    pub(crate) pool: SlotPool,
    /// Wakes guards when their slots are lost.
    pub(crate) lost: Notify,
}

impl Slots {
    /// Gives up all slots that are in use.
    pub(crate) fn lose(&self) {
        self.pool.lose();
        self.lost.notify_waiters();
    }

    /// Returns whether slots that were in use are lost: see [`SlotPool::is_lost`].
    pub(crate) fn is_lost(&self, now_ns: u64) -> bool {
        let is_lost = self.pool.is_lost(now_ns);
        if is_lost {
            self.lost.notify_waiters();
        }
        is_lost
    }
}

/// What a process holds of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Permits, or idle slots.
    pub(crate) permits: u64,
    /// Slots in use.
    pub(crate) in_use: u64,
    pub(crate) until_ns: u64,
}

/// What finds a lease's grant when it is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct GrantedAfter {
    /// The message after which the grant was made; for slots, the number of what holds them.
    pub(crate) message: u64,
    /// Of slots, when the grant was made or renewed.
    pub(crate) generation: u64,
}

/// What a process says to a request without asking the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The permits are granted, and `left` remain.
    Granted { left: u64, after: GrantedAfter },
    /// Nothing is left before this.
    Denied { wait: Duration, is_banned: bool },
    /// The server decides.
    Ask,
    /// The server has not answered the latest message, so the fallback decides.
    Fall,
}

impl Hot {
    pub(crate) fn pause_until_ns(&self) -> u64 {
        self.pause_until_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn pause_until(&self, until_ns: u64) {
        self.pause_until_ns.store(until_ns, Ordering::Relaxed);
    }

    pub(crate) fn slots(&self) -> Option<&Slots> {
        self.slots.as_deref()
    }

    /// Returns whether the key's slots are lost, so that nothing comes of it any more.
    pub(crate) fn is_lost(&self, now_ns: u64) -> bool {
        self.slots().is_some_and(|slots| slots.is_lost(now_ns))
    }

    /// Returns what the process holds.
    pub(crate) fn holding(&self, now_ns: u64) -> Holding {
        let Some(slots) = self.slots() else {
            let held = self.permits.pool.held();
            return Holding {
                permits: held.permits(now_ns),
                in_use: 0,
                until_ns: held.until_ns(),
            };
        };
        let held = slots.pool.held();
        let (in_use, permits) = held.at(now_ns);
        Holding {
            permits,
            in_use,
            until_ns: held.until_ns(),
        }
    }

    /// Takes out all permits but some, for a message: see [`Permits::withdraw`].
    pub(crate) fn withdraw(&self, now_ns: u64, keep: u64, message: u64) -> (u64, u64, u64) {
        if let Some(slots) = self.slots() {
            let (keeps, returns) = slots.pool.withdraw(now_ns, keep);
            return (keeps, returns, 0);
        }
        self.permits.withdraw(now_ns, keep, message)
    }

    /// Puts back permits of a grant that were not used, unless a message has said since that they
    /// are spent. Puts back slots while the grant has them. Returns how many.
    pub(crate) fn put_back(&self, now_ns: u64, n: u64, after: GrantedAfter) -> u64 {
        if let Some(slots) = self.slots_of(after) {
            return slots.pool.give(now_ns, after.generation, n);
        }
        if self.slots.is_some() {
            return 0;
        }
        self.permits.put_back(now_ns, n, after.message)
    }

    /// Returns the slots of which a grant is.
    pub(crate) fn slots_of(&self, after: GrantedAfter) -> Option<&Slots> {
        self.slots().filter(|slots| slots.id == after.message)
    }

    /// Forgets that the server had nothing, or that the key is banned.
    pub(crate) fn forget(&self) {
        for until in [
            &self.none_until_ns,
            &self.pause_until_ns,
            &self.due_ns,
            &self.banned_until_ns,
        ] {
            until.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the permits of an answer in: see [`Permits::answered`].
    pub(crate) fn answered(
        &self,
        now_ns: u64,
        brought: &Brought,
        until_ns: u64,
        mark: u64,
        message: u64,
    ) -> (u64, u64) {
        let Brought { lost, granted, .. } = *brought;
        if let Some(slots) = self.slots() {
            let answered = slots.pool.answered(now_ns, lost, granted, until_ns, mark);
            return (answered, 0);
        }
        let counts = [lost, granted];
        self.permits
            .answered(now_ns, counts, until_ns, mark, message)
    }

    pub(crate) fn set_failed(&self, has_failed: bool) {
        self.has_failed.store(has_failed, Ordering::Relaxed);
    }

    /// Takes permits that the process holds. Returns how many are left, what finds the grant, and
    /// whether the task must be told to look at the key.
    #[inline]
    pub(crate) fn spend(&self, now_ns: u64, n: u64) -> Option<(u64, GrantedAfter, bool)> {
        if let Some(slots) = self.slots() {
            let entered = slots.pool.enter(now_ns, n)?;
            let after = GrantedAfter {
                message: slots.id,
                generation: entered.generation,
            };
            return Some((entered.idle, after, entered.tells));
        }
        let (left, message, tells) = self.permits.spend(now_ns, n)?;
        let after = GrantedAfter {
            message,
            generation: 0,
        };
        Some((left, after, tells))
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
        if let Some((left, after, tells)) = self.spend(now_ns, n) {
            return (Said::Granted { left, after }, tells);
        }
        if n > terms.most || n == 0 {
            return (Said::Ask, false);
        }
        let tells = self.missed.fetch_add(n, Ordering::Relaxed) == 0;
        if n > self.largest.load(Ordering::Relaxed) {
            self.largest.store(n, Ordering::Relaxed);
        }
        let none_until_ns = self.none_until_ns.load(Ordering::Relaxed);
        let has_lease = now_ns < self.holding(now_ns).until_ns;
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        let has_failed = self.has_failed.load(Ordering::Relaxed);
        let said = match has_lease || now_ns < due_ns {
            _ if has_failed && !asks_at_the_edge => Said::Fall,
            false => Said::Ask,
            true if has_failed || asks_at_the_edge && now_ns >= none_until_ns => Said::Ask,
            true => {
                let wait_ns = due_ns.max(none_until_ns).saturating_sub(now_ns);
                // The server knows when there is one permit.
                let more_ns = terms.cost_ns.saturating_mul(n.saturating_sub(1));
                let wait_ns = wait_ns.max(1_000_000).saturating_add(more_ns);
                let ban_ns = self.banned_until_ns.load(Ordering::Relaxed);
                let ban_ns = ban_ns.saturating_sub(now_ns);
                Said::Denied {
                    wait: Duration::from_nanos(wait_ns.max(ban_ns)),
                    is_banned: ban_ns > 0,
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
    /// How long a slot is held that is not given back, if the limit has slots.
    slots_ns: Option<u64>,
    keys: HashMap<Box<[u8]>, Arc<Hot>, SeedableRandomState>,
    /// How often keys were asked for in this second: for each group of keys, a part of the hash of
    /// one, and how much more often it was asked for than the others.
    cold: Box<[AtomicU32]>,
    hasher: SeedableRandomState,
    /// The number of the latest message. The numbers of a node grow.
    number: AtomicU64,
    /// Keys that the task is to look at.
    queue: Mutex<Vec<Arc<Hot>>>,
}

/// A key that was asked for this often in a second gets a lease.
const HOT_AFTER: u32 = 8;

/// A denied request counts as much as this many, so that a scarce key soon gets a lease: nodes with
/// leases get turns.
const DENIED: u32 = 4;

/// Into how many groups keys are divided. Each key is in two of them.
const GROUPS: usize = 16_384;

/// The bits of a count. The others are of a hash.
const COUNT: u32 = 0xff;

impl HotKeys {
    pub(crate) fn new(most: usize, hasher: SeedableRandomState) -> Self {
        Self {
            most,
            slots_ns: None,
            keys: HashMap::with_hasher(hasher.clone()),
            cold: (0..GROUPS).map(|_| AtomicU32::new(0)).collect(),
            hasher,
            number: AtomicU64::new(0),
            queue: Mutex::default(),
        }
    }

    /// Makes the keys those of a limit on concurrency, if its slots have a lease.
    pub(crate) fn with_slots(self, slots_ns: Option<u64>) -> Self {
        Self { slots_ns, ..self }
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
        let held = keys.values().map(|hot| hot.holding(now_ns).permits);
        held.fold(0, u64::saturating_add)
    }

    pub(crate) fn hash(&self, of: &impl Hash) -> u64 {
        self.hasher.hash_one(of)
    }

    /// Notes that a key without a lease is asked for, or that the server has denied it. Returns
    /// whether it is to get one now.
    pub(crate) fn is_getting_hot(&self, user: &[u8], is_denied: bool) -> bool {
        let hash = self.hash(&user);
        let tag = u32::try_from(hash >> 32).unwrap_or_default() & !COUNT;
        let weight = if is_denied { DENIED } else { 1 };
        // Keys of equal demand keep each other down in a group that they share.
        let [one, other] = [hash, hash >> 16].map(|hash| self.counts(hash, tag, weight));
        (one || other) && self.keys.len() < self.most
    }

    /// Counts a key in a group. Returns whether it was asked for often already.
    fn counts(&self, hash: u64, tag: u32, weight: u32) -> bool {
        let group = usize::try_from(hash % GROUPS as u64).unwrap_or_default();
        let Some(cold) = self.cold.get(group) else {
            return false;
        };
        let word = cold.load(Ordering::Relaxed);
        let (seen, before) = (word & !COUNT, word & COUNT);
        // Others may change the word in between, so some requests are not counted.
        let next = match before.checked_sub(weight) {
            _ if seen == tag => tag | before.saturating_add(weight).min(COUNT),
            Some(less) => seen | less,
            None => tag | weight,
        };
        cold.store(next, Ordering::Relaxed);
        seen == tag && before >= HOT_AFTER
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
            permits: Permits::new(),
            slots: self.slots_ns.map(|lease_ns| {
                Box::new(Slots {
                    id: self.next_number(),
                    pool: SlotPool::new(lease_ns),
                    lost: Notify::new(),
                })
            }),
            is_queued: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            missed: AtomicU64::new(1),
            largest: AtomicU64::new(1),
            none_until_ns: AtomicU64::new(0),
            pause_until_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
            banned_until_ns: AtomicU64::new(0),
        });
        let keys = self.keys.pin();
        Arc::clone(keys.get_or_insert(user.into(), hot))
    }

    /// Removes all keys. What was held counts as spent, and slots that are in use are lost.
    pub(crate) fn clear(&self) {
        let _ = self.told();
        let keys = self.keys.pin();
        // First, because the next lease of a key begins with nothing.
        for slots in keys.values().filter_map(|hot| hot.slots()) {
            slots.lose();
        }
        keys.clear();
        drop(keys);
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
