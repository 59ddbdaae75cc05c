//! The verbs that change the quota, and the verbs of every limiter.

use super::{Adjustable, Keep, retry};
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::quota::{Quota, QuotaError};
use crate::snapshot::verbs::snapshot_verbs;
use crate::store::Store;
use crate::store::op::{Op, OpResult};
use crate::store::view::View;
use crate::traits::forms::limiter_verbs;
use crate::wait::waits;

impl<A: ChangeQuota + Settings + Clone, C> View<&Adjustable<A, C>> {
    /// Changes the quota at this tick.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota can't be represented; nothing changes then.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), QuotaError> {
        self.bring(keep, |old| {
            // The current quota continues as it is.
            let is_other = keep == Keep::Fresh || old.quota() != quota;
            is_other.then(|| old.with_quota(quota)).transpose()
        })
    }

    /// Changes the algorithm at this tick.
    pub fn set(&self, algorithm: A, keep: Keep) {
        let Ok(()) = self.bring(keep, |_| {
            Ok::<_, core::convert::Infallible>(Some(algorithm))
        });
    }

    /// Replaces the current algorithm by the one that `next` returns, if it returns one.
    fn bring<E>(&self, keep: Keep, next: impl FnOnce(&A) -> Result<Option<A>, E>) -> Result<(), E> {
        self.store.with_sets(|sets, version| {
            let old = sets.of(version).clone();
            let Some(new) = next(&old)? else {
                return Ok(());
            };
            // Store it before the version becomes current. If this thread panics in between, the
            // algorithm of the current version is right either way.
            *sets.of_mut(version.wrapping_add(1)) = new.clone();
            self.store.ring.bring(&old, &new, keep, self.now);
            Ok(())
        })
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock> Adjustable<A, C> {
    /// Changes the quota; `keep` decides what happens to the available permits. The algorithm's
    /// other settings, such as the alignment of windows, stay. A tolerance from
    /// [`Gcra::from_interval`](crate::Gcra::from_interval) is replaced by the new quota's burst.
    ///
    /// Setting the current quota again changes nothing, except with [`Keep::Fresh`].
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota can't be represented; nothing changes then.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::error::QuotaError;
    /// use tollgate::{Adjustable, Quota};
    ///
    /// # fn main() -> Result<(), QuotaError> {
    /// let limiter = Adjustable::token_bucket(Quota::per_second(10))?;
    /// limiter.charge(30);
    /// let zero = Quota::per_second(0);
    /// assert_eq!(limiter.set_quota(zero, Keep::Fresh), Err(QuotaError::ZeroPermits));
    /// assert_eq!(limiter.quota(), Quota::per_second(10));
    ///
    /// limiter.set_quota(Quota::per_second(5).burst(8), Keep::Fresh)?;
    /// assert_eq!(limiter.available(), 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), QuotaError> {
        self.at(self.now()).set_quota(quota, keep)
    }

    /// Changes the algorithm; `keep` decides what happens to the available permits. This can turn
    /// an [`AnyAlgorithm`](crate::AnyAlgorithm) into another algorithm.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Adjustable, AnyAlgorithm, ManualClock};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket: AnyAlgorithm = "token-bucket 10/s".parse()?;
    /// let limiter = Adjustable::with_clock(bucket, ManualClock::new());
    /// limiter.try_acquire_n(7)?;
    /// limiter.set("sliding-window 100/min".parse()?, Keep::Scaled);
    /// assert_eq!(limiter.available(), 30);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&self, algorithm: A, keep: Keep) {
        self.at(self.now()).set(algorithm, keep);
    }
}

impl<A: Algorithm + Settings, C> Adjustable<A, C> {
    /// Returns a view whose methods use this tick and read no clock.
    #[inline]
    pub const fn at(&self, now: Tick) -> View<&Self> {
        View::new(self, now)
    }
}

limiter_verbs!([+ Settings] [] Adjustable<A, C>);
snapshot_verbs!(['a, C] &'a Adjustable<A, C>, [] Adjustable<A, C>);
waits!([+ Settings] [] borrowed Adjustable<A, C>);

impl<A: Algorithm + Settings, C> Store for &Adjustable<A, C> {
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> OpResult<A, O> {
        retry::apply(&self.ring, now, op)
    }

    #[inline(always)]
    fn try_fast<O: Op<A>>(&self, now: Tick, op: O) -> Option<OpResult<A, O>> {
        retry::try_fast(&self.ring, now, op)
    }
}
