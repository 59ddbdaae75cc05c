//! Limits that a program registers: algorithms and stores of its own.

use std::fmt;

use tollgate::Keyed;
use tollgate::algorithm::{Algorithm, Debt, GiveBack};
use tollgate::clock::Clock;
use tollgate::compose::Member;

use super::hash::{Hashed, KeyHash};

/// A key of a rule: its bytes, and a hash of them.
///
/// The parts of a key are encoded so that different keys have different bytes. The hash is the same
/// for all rules of a policy.
#[derive(Clone, Copy)]
pub struct KeyRef<'k> {
    pub(crate) bytes: &'k [u8],
    pub(crate) hash: u64,
}

impl<'k> KeyRef<'k> {
    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// Returns the hash. It depends on the policy's seed, which is random.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Debug for KeyRef<'_> {
    /// Does not show the bytes: they have what a client sent, such as its API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRef")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// A limit for many keys, as a trait object: see [`OwnLimit::with_key`].
pub type DynLimit<'l, C> = dyn Member<C> + Send + Sync + 'l;

/// A limit of a rule that is decided in this process by an algorithm or a store that the program
/// registered.
///
/// `C` is the policy's clock. `Keyed` tables implement it.
pub trait OwnLimit<C>: fmt::Debug + Send + Sync {
    /// Calls `visit` once with the limit of this key under this plan.
    ///
    /// The limit's [place](tollgate::compose::Member::place) must be the same each time.
    fn with_key(&self, key: KeyRef<'_>, plan: usize, visit: &mut dyn FnMut(&DynLimit<'_, C>));
}

impl<A, C> OwnLimit<C> for Keyed<A, C, Hashed>
where
    A: Algorithm + GiveBack + Debt + fmt::Debug + Send + Sync,
    C: Clock + fmt::Debug + Send + Sync,
{
    fn with_key(&self, key: KeyRef<'_>, plan: usize, visit: &mut dyn FnMut(&DynLimit<'_, C>)) {
        visit(&self.key(&KeyHash(key.hash)).with_plan(plan));
    }
}
