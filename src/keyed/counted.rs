//! Tables whose decisions are counted.

use core::borrow::Borrow;
use core::hash::Hash;

use super::hasher::KeyHasher;
use super::key::Key;
use super::limiter::Keyed;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::counted::{Counted, Counters};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};

impl<A, C, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Returns a counted view of one key, as [`Keyed::key`] does.
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Counted::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
    /// let granted = limiter.key("alice").try_acquire_n(3)?;
    /// limiter.key("alice").undo(granted);
    /// let stats = limiter.stats();
    /// assert_eq!((stats.granted, stats.returned), (1, 3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Counted<Key<&Keyed<A, C, H>>, &Counters> {
        Counted {
            limiter: self.limiter.key(key),
            counters: self.counters(),
        }
    }
}

impl<R, S> Counted<Key<R>, S> {
    /// Returns the same counted key under another plan of the table, as [`Key::with_plan`] does.
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [10, 1000].map(|n| TokenBucket::new(Quota::per_hour(n)));
    /// let [free, paid] = plans;
    /// let table = Counted::new(Keyed::with_plans([free?, paid?], 1000, ManualClock::new())?);
    /// table.key("alice").with_plan(1).try_acquire_n(11)?;
    /// assert_eq!(table.stats().granted, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn with_plan(self, plan: usize) -> Self {
        let limiter = self.limiter.with_plan(plan);
        Self { limiter, ..self }
    }
}

impl<A: Algorithm, C: Clock, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Takes one permit of each key, as [`Keyed::try_acquire_batch`] does, and counts each outcome.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire_batch`].
    pub fn try_acquire_batch<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), LimiterError> {
        self.limiter.try_acquire_batch(keys, outcomes)?;
        for outcome in outcomes {
            self.counters().answer(outcome.is_ok(), 1);
        }
        Ok(())
    }
}
