//! The memory floor: each key has one slot of 16 bytes at a computed place, in an array with as
//! many slots as the table. Nothing is hashed, searched or decided.
//!
//! Memory, prefetch and exchange are the table's own code, compiled into this bench.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use tollgate::clock::{Clock, SystemClock};
use tollgate_versus::AskKey;

use super::limiters::Row;
use super::timing::Kind;

#[path = "../../../../src/sync/fast_pair.rs"]
#[allow(unexpected_cfgs, unused_imports, reason = "the library's features")]
mod fast_pair;
#[path = "../../../../src/sync/memory.rs"]
#[allow(
    unexpected_cfgs,
    dead_code,
    unused_imports,
    reason = "the library's features"
)]
mod memory;

use fast_pair::FastPair;
use memory::{Buckets, SLOTS, prefetch};
use portable_atomic::AtomicU128;

/// An array of slots. The next key's slot is prefetched before the clock is read.
pub(crate) struct Memory {
    buckets: Buckets,
    fast_pair: FastPair,
    kind: Kind,
}

impl Memory {
    /// Returns at least this many slots, after writing each of them once.
    pub(crate) fn new(kind: Kind, slots: usize) -> Self {
        let memory = Self {
            buckets: Buckets::zeroed(slots.div_ceil(SLOTS)).expect("enough memory"),
            fast_pair: FastPair::there().expect("an exchange of 16 bytes"),
            kind,
        };
        for slot in memory.buckets.iter().flat_map(|bucket| &bucket.slots) {
            memory.count(slot);
        }
        memory
    }

    /// Returns a key's slot, and prefetches it.
    #[inline(always)]
    fn fetch(&self, key: u64) -> (usize, usize) {
        let slots = (self.buckets.len() * SLOTS) as u128;
        let place = ((u128::from(key) * slots) >> u64::BITS) as usize;
        prefetch(self.buckets.as_ptr().wrapping_add(place / SLOTS));
        (place / SLOTS, place % SLOTS)
    }

    /// Loads this slot, and exchanges it if the decision writes.
    #[inline(always)]
    fn decide(&self, (bucket, place): (usize, usize)) -> bool {
        let slot = self.buckets.get(bucket).and_then(|b| b.slots.get(place));
        let Some(slot) = slot else { return false };
        match self.kind {
            Kind::Allowed => self.count(slot),
            Kind::Denied => {
                // ORDERING: Relaxed. It publishes nothing.
                let held = self.fast_pair.load_versioned(slot, Ordering::Relaxed);
                black_box(held);
            }
        }
        self.kind == Kind::Allowed
    }

    /// Adds one to the high word.
    #[inline(always)]
    fn count(&self, slot: &AtomicU128) {
        // ORDERING: Relaxed throughout. The counts publish nothing.
        let order = Ordering::Relaxed;
        loop {
            let held = self.fast_pair.load_versioned(slot, order);
            let next = held.wrapping_add(1 << u64::BITS);
            let exchanged = self
                .fast_pair
                .compare_exchange(slot, held, next, order, order);
            if exchanged.is_ok() {
                return;
            }
        }
    }
}

impl AskKey for Memory {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        let place = self.fetch(*key);
        black_box(SystemClock.now());
        self.decide(place)
    }
}

/// The same array, which prefetches the slots of `N` keys before it exchanges the first.
pub(crate) struct MemoryMany<'a, const N: usize>(pub(crate) &'a Memory);

impl<const N: usize> Row for MemoryMany<'_, N> {
    #[inline(never)]
    fn decide(&self, keys: &[u64]) -> u64 {
        let (mut places, mut allowed) = ([(0, 0); N], 0);
        for keys in keys.chunks(N) {
            let memory = black_box(self).0;
            black_box(SystemClock.now());
            for (place, key) in places.iter_mut().zip(keys) {
                *place = memory.fetch(*key);
            }
            for place in places.iter().take(keys.len()) {
                allowed += u64::from(memory.decide(*place));
            }
        }
        allowed
    }
}
