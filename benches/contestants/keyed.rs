//! A limit for each of many keys in one table, for programs that build tollgate with the feature
//! `keyed`. Every thread walks over all keys, each from its own starting place.

use tollgate::clock::{NoClock, SystemClock};
use tollgate::error::LimiterError;
use tollgate::keyed::Overflow;
use tollgate::sync::{AtomicU64, Ordering};
use tollgate::{Keyed, Quota, Tick, TokenBucket};

use super::contestants::timing::{Handle, Handled, Kind, PerThread};
use super::contestants::{Entry, Source};

/// The number of keys in a table, a power of two.
///
/// The keys exceed most cores' private caches, so on one thread as on many, most keys come from the
/// shared cache. In a small table every key's cache line would move from core to core, which is
/// rare in a service with many keys.
///
/// Builds without optimization use fewer keys. Their figures mean nothing, and tests need not wait
/// for full tables.
pub(crate) const KEYS: u64 = if cfg!(debug_assertions) {
    1 << 10
} else {
    1 << 16
};

/// 2^64 over the golden ratio. Multiples of it keep the threads' starting places apart.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

/// A limiter that decides about keys.
pub(crate) trait ByKey: Sync {
    /// Returns whether this key is granted a permit, at this tick if the limiter has no clock.
    fn is_allowed(&self, key: u64, now: Tick) -> bool;
}

/// A limit for each key, and a counter for the threads' starting places.
pub(crate) struct Walked<L> {
    limiter: L,
    dealt: AtomicU64,
}

impl<L: ByKey> Walked<L> {
    /// Inserts all keys. Keys for denied decisions take their only permit.
    pub(crate) fn new(limiter: L) -> Self {
        for key in 0..KEYS {
            limiter.is_allowed(key, Tick::ZERO);
        }
        Self {
            limiter,
            dealt: AtomicU64::new(0),
        }
    }
}

impl<L: ByKey> Handled for Walked<L> {
    type Handle<'a>
        = Walk<'a, L>
    where
        L: 'a;

    fn handle(&self, _threads: usize) -> Walk<'_, L> {
        // ORDERING: Relaxed. The count publishes nothing.
        let number = self.dealt.fetch_add(1, Ordering::Relaxed);
        Walk {
            limiter: &self.limiter,
            first: number.wrapping_mul(APART) >> (u64::BITS - KEYS.ilog2()),
        }
    }
}

/// A thread's walk over the keys.
pub(crate) struct Walk<'a, L> {
    limiter: &'a L,
    first: u64,
}

impl<L: ByKey> Handle for Walk<'_, L> {
    #[inline(always)]
    fn decide(&mut self, turn: u64) -> bool {
        let key = self.first.wrapping_add(turn) % KEYS;
        self.limiter.is_allowed(key, Tick::from_nanos(turn))
    }
}

/// Returns a table with a slot for each key. A key has either more permits than a measurement
/// requests, or one permit a day.
fn table<C>(kind: Kind, clock: C) -> Result<Keyed<TokenBucket, C>, LimiterError> {
    let quota = match kind {
        Kind::Allowed => Quota::per_second(1).burst(1 << 28),
        Kind::Denied => Quota::per_day(1),
    };
    let table = Keyed::with_clock(TokenBucket::new(quota)?, 2 * KEYS as usize, clock)?;
    Ok(match kind {
        Kind::Allowed => table,
        Kind::Denied => table.with_overflow(Overflow::Deny),
    })
}

impl ByKey for Keyed<TokenBucket> {
    #[inline(always)]
    fn is_allowed(&self, key: u64, _now: Tick) -> bool {
        self.try_acquire(&key).is_ok()
    }
}

impl ByKey for Keyed<TokenBucket, NoClock> {
    #[inline(always)]
    fn is_allowed(&self, key: u64, now: Tick) -> bool {
        self.key(&key).at(now).try_acquire().is_ok()
    }
}

/// Returns a table with the system clock, and a table that takes ticks.
pub(crate) fn entries(kind: Kind) -> Result<[Entry; 2], LimiterError> {
    let system = Walked::new(table(kind, SystemClock)?);
    let told = Walked::new(table(kind, NoClock)?);
    let entry = |name, source, runner| Entry {
        name,
        subject: "keyed",
        source,
        kind,
        runner,
    };
    Ok([
        entry("keyed_system", Source::System, Box::new(PerThread(system))),
        entry("keyed_tick", Source::Tick, Box::new(PerThread(told))),
    ])
}
