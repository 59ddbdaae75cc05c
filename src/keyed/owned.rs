//! A key that keeps its table alive.

use core::fmt;
use core::hash::Hash;
use std::sync::Arc;

use super::hasher::{KeyHasher, SeededHasher};
use super::key::Key;
use super::limiter::Keyed;
use super::probe_seq::ProbeSeq;
use crate::clock::{SystemClock, Tick};
use crate::store::view::View;
use crate::traits::forms::limiter_verbs;
use crate::wait::waits;

/// A view of one key that keeps its [`Keyed`] table alive, made by [`Keyed::key_owned`]. It has the
/// methods of a [`Key`], and can move to another thread or task.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Keyed, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
/// # runtime.block_on(async {
/// let limiter = Arc::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
/// let alice = limiter.key_owned("alice");
/// let task = tokio::spawn(async move { alice.try_acquire_n(3).is_ok() });
/// assert!(task.await?);
/// assert_eq!(limiter.key("alice").available(), 2);
/// # Ok(())
/// # })
/// # }
/// ```
pub struct OwnedKey<A, C = SystemClock, S = SeededHasher> {
    table: Arc<Keyed<A, C, S>>,
    probe_seq: ProbeSeq,
    plan: u8,
}

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// Returns a view of one key that keeps the table alive: see [`key`](Self::key).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Arc::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
    /// let alice = limiter.key_owned("alice");
    /// let reservation = std::thread::spawn(move || alice.reserve_owned(3)).join().unwrap()?;
    /// assert!(reservation.is_due());
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_owned<Q: Hash + ?Sized>(self: &Arc<Self>, key: &Q) -> OwnedKey<A, C, S> {
        OwnedKey {
            table: Arc::clone(self),
            probe_seq: self.core.table.probe_seq(self.hasher.hash_key(key)),
            plan: 0,
        }
    }
}

impl<A, C, S: KeyHasher> OwnedKey<A, C, S> {
    /// Returns the same key under another [plan](Keyed::plan).
    #[must_use]
    pub fn with_plan(self, plan: usize) -> Self {
        let plan = self.table.plan(plan).index();
        Self { plan, ..self }
    }

    /// Returns the same key under the [plan with this name](Keyed::plan_named), or `None` if there
    /// is none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = |n| TokenBucket::new(Quota::per_hour(n));
    /// let plans = [("free", bucket(10)?), ("paid", bucket(1000)?)];
    /// let table = Arc::new(Keyed::with_named_plans(plans, 1000, ManualClock::new())?);
    /// let alice = table.key_owned("alice").with_plan_named("paid").ok_or("no such plan")?;
    /// let left = std::thread::spawn(move || alice.available());
    /// assert_eq!(left.join().unwrap(), 1000);
    /// assert!(table.key_owned("alice").with_plan_named("trial").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_plan_named(self, name: &str) -> Option<Self> {
        let plan = self.table.plan_named(name)?.index();
        Some(Self { plan, ..self })
    }
}

impl<A, C, S> OwnedKey<A, C, S> {
    /// Returns the key, borrowed from this one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Arc::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
    /// let mallory = limiter.key_owned("mallory");
    /// mallory.key().ban_for(Duration::from_secs(60))?;
    /// assert!(mallory.key().banned_until().is_some());
    /// assert!(mallory.key().remove());
    /// assert!(mallory.key().banned_until().is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn key(&self) -> Key<'_, A, C> {
        Key::new(
            &self.table.core,
            &self.table.clock,
            self.probe_seq,
            self.plan,
        )
    }

    /// Returns a view whose methods run at this tick and read no clock.
    #[inline]
    pub fn at(&self, now: Tick) -> View<Key<'_, A, C>> {
        self.key().at(now)
    }

    /// Returns the table's clock.
    #[inline]
    pub fn clock(&self) -> &C {
        self.table.clock()
    }

    /// Returns the table.
    pub const fn table(&self) -> &Arc<Keyed<A, C, S>> {
        &self.table
    }
}

limiter_verbs!([] [S] OwnedKey<A, C, S>);
waits!([] [S] owned OwnedKey<A, C, S>);

impl<A, C, S> Clone for OwnedKey<A, C, S> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            ..*self
        }
    }
}

impl<A, C, S> fmt::Debug for OwnedKey<A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedKey")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
