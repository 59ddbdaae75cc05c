//! One key of a concurrency limit, as a member of a composition.

use ::core::fmt;
use ::core::hash::Hash;
use ::core::ops::Deref;
use std::sync::Arc;

use super::concurrency::KeyedConcurrency;
use super::hasher::KeyHasher;
use super::key::Key;
use super::limiter::Keyed;
use super::places::Places;
use crate::clock::{NoClock, Tick};
use crate::outcome::Denied;

/// One key of a [`KeyedConcurrency`], as a member of a composition such as
/// [`All`](crate::compose::All). [`KeyedConcurrency::key`] returns it.
///
/// A caller is inside until its grant of the composition is dropped, undone or settled. A key has
/// no queue: if it is busy, a [`Line`](crate::compose::Line) returns its denial instead of waiting.
///
/// `R` is the reference to the limiter: `&KeyedConcurrency`, or an `Arc` of it.
#[derive(Clone, Copy)]
pub struct ConcurrencyKey<R> {
    pub(super) limiter: R,
    pub(super) hash: u64,
}

impl<S: KeyHasher> KeyedConcurrency<S> {
    /// Returns one key, as a member of a composition: a tenant's rate and its concurrency, both or
    /// neither.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::keyed::KeyedConcurrency;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rates = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
    /// let calls = KeyedConcurrency::new(1, 1000)?;
    /// let acme = All::new((rates.key("acme"), calls.key("acme")))?;
    /// let granted = acme.try_acquire()?;
    /// assert_eq!(acme.try_acquire().unwrap_err().member(), Some(1)); // busy
    /// assert_eq!(rates.key("acme").available(), 99); // the denied request took nothing
    /// drop(granted);
    /// assert_eq!(calls.inside("acme"), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn key<K: Hash + ?Sized>(&self, key: &K) -> ConcurrencyKey<&Self> {
        ConcurrencyKey {
            limiter: self,
            hash: self.table.hasher.hash_key(key),
        }
    }

    /// Returns one [key](Self::key) that keeps the limiter alive.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::compose::All;
    /// use tollgate::keyed::KeyedConcurrency;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let calls = Arc::new(KeyedConcurrency::new(1, 1000)?);
    /// let rate = Limiter::token_bucket(Quota::per_hour(100))?;
    /// let acme = Arc::new(All::new((rate, calls.key_owned("acme")))?);
    /// let granted = acme.try_acquire_owned()?;
    /// std::thread::spawn(move || drop(granted)).join().unwrap();
    /// assert_eq!(calls.inside("acme"), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_owned<K: Hash + ?Sized>(self: &Arc<Self>, key: &K) -> ConcurrencyKey<Arc<Self>> {
        ConcurrencyKey {
            limiter: Arc::clone(self),
            hash: self.table.hasher.hash_key(key),
        }
    }
}

impl<S, R: Deref<Target = KeyedConcurrency<S>>> ConcurrencyKey<R> {
    #[inline]
    pub(crate) fn key(&self) -> Key<&Keyed<Places, NoClock, S>> {
        self.limiter.table.key_of(self.hash)
    }

    /// Returns the weight that there is room for now.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.key().at(Tick::ZERO).available()
    }

    #[inline]
    pub(crate) fn enter(&self, n: u64) -> Result<(), Denied> {
        self.limiter.enter(self.hash, n)
    }

    /// Takes `n` off the weight inside. The caller holds a weight of `n`.
    #[inline]
    pub(crate) fn leave(&self, n: u64) {
        self.limiter.leave(self.hash, n);
    }
}

impl<S, R: Deref<Target = KeyedConcurrency<S>>> fmt::Debug for ConcurrencyKey<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyKey")
            .field("limit", &self.limiter.limit())
            .field(
                "inside",
                &(self.limiter.limit().saturating_sub(self.free())),
            )
            .finish()
    }
}
