//! The compared limiters. Each has a limit for every key, and contains all keys.

use std::hint::black_box;
use std::time::Duration;

use tollgate::clock::{Clock, SystemClock};
use tollgate::keyed::Overflow;
use tollgate::{Denied, Granted, Keyed, Quota, TokenBucket};
use tollgate_versus::peers::Limit;
use tollgate_versus::{AskKey, DAY};

use super::timing::Kind;

/// The time for one permit to return, so long that no key becomes idle in a measurement.
const PERIOD: Duration = Duration::from_secs(10);

/// Returns a key's limit: more than the most frequent key requests, or two permits that are taken
/// in advance. A table protects a key from its second grant on, and known keys have had two.
pub(crate) const fn limit(kind: Kind) -> Limit {
    let (burst, period) = match kind {
        Kind::Allowed => (1 << 26, PERIOD),
        Kind::Denied => (2, DAY),
    };
    Limit { burst, period }
}

/// Runs a series of decisions in a loop without virtual calls.
pub(crate) trait Row: Sync {
    /// Makes one decision for each of these keys. Returns how many were allowed.
    fn decide(&self, keys: &[u64]) -> u64;
}

impl<L: AskKey> Row for L {
    #[inline(never)]
    fn decide(&self, keys: &[u64]) -> u64 {
        let mut allowed = 0;
        for key in keys {
            allowed += u64::from(black_box(self).is_key_allowed(key));
        }
        allowed
    }
}

/// The work that all contestants share: reading the clock and the next key.
pub(crate) struct Floor(pub(crate) Kind);

impl AskKey for Floor {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        black_box((SystemClock.now(), key));
        self.0 == Kind::Allowed
    }
}

/// tollgate's table.
pub(crate) type Table = Keyed<TokenBucket>;

/// Returns a table with this capacity, which is then filled.
pub(crate) fn table(kind: Kind, keys: u64) -> Table {
    let Limit { burst, period } = limit(kind);
    let quota = Quota::per(1, period).burst(burst);
    let bucket = TokenBucket::new(quota).expect("a quota that can be represented");
    let table = Keyed::new(bucket, keys as usize).expect("a valid capacity");
    match kind {
        Kind::Allowed => table,
        // A key without a slot is then denied like the others, and does not evict one of them.
        Kind::Denied => table.with_overflow(Overflow::Deny),
    }
}

/// The same table, `N` keys in one call.
pub(crate) struct Many<'a, const N: usize>(pub(crate) &'a Table);

impl<const N: usize> Row for Many<'_, N> {
    #[inline(never)]
    fn decide(&self, keys: &[u64]) -> u64 {
        let mut outcomes: [Result<Granted, Denied>; N] =
            std::array::from_fn(|_| Err(Denied::never(1, 0)));
        let mut allowed = 0;
        for keys in keys.chunks(N) {
            let outcomes = outcomes.get_mut(..keys.len()).unwrap_or_default();
            let checked = black_box(self).0.try_acquire_batch(keys, outcomes);
            checked.expect("as many outcomes as keys");
            allowed += outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        }
        allowed
    }
}
