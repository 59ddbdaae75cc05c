//! The verbs: those that change the quota, and those of every limiter.

use super::{Adjustable, Keep, retry};
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::quota::{ConfigError, Quota};
use crate::rate_limiter::forms::limiter_verbs;
use crate::snapshot::verbs::snapshot_verbs;
use crate::store::Store;
use crate::store::op::{Op, OpResult};
use crate::store::view::View;
use crate::wait::waits;

impl<A: ChangeQuota + Settings + Clone, C> View<&Adjustable<A, C>> {
    /// [`Adjustable::set_quota`] at this tick.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.bring(keep, |old| {
            // What is in force already goes on as it is.
            let is_other = keep == Keep::Fresh || old.quota() != quota;
            is_other.then(|| old.with_quota(quota)).transpose()
        })
    }

    /// [`Adjustable::set`] at this tick.
    pub fn set(&self, algorithm: A, keep: Keep) {
        let Ok(()) = self.bring(keep, |_| {
            Ok::<_, core::convert::Infallible>(Some(algorithm))
        });
    }

    /// Brings what `next` makes of the algorithm in force, if it makes another one.
    fn bring<E>(&self, keep: Keep, next: impl FnOnce(&A) -> Result<Option<A>, E>) -> Result<(), E> {
        self.store.with_sets(|sets, version| {
            let old = sets.of(version).clone();
            let Some(new) = next(&old)? else {
                return Ok(());
            };
            // Before the version is in force, so that who stops has not left the other one for it.
            *sets.of_mut(version.wrapping_add(1)) = new.clone();
            self.store.ring.bring(&old, &new, keep, self.now);
            Ok(())
        })
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock> Adjustable<A, C> {
    /// Changes the quota, and goes on with what is there as `keep` says. What else the algorithm is
    /// made from, such as how windows are aligned, stays; a tolerance goes with its interval.
    ///
    /// The quota that is in force already changes nothing, unless it is to start afresh.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
    /// use tollgate::{Adjustable, ConfigError, Quota};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let limiter = Adjustable::token_bucket(Quota::per_second(10))?;
    /// limiter.charge(30);
    /// let zero = Quota::per_second(0);
    /// assert_eq!(limiter.set_quota(zero, Keep::Fresh), Err(ConfigError::ZeroPermits));
    /// assert_eq!(limiter.quota(), Quota::per_second(10));
    ///
    /// limiter.set_quota(Quota::per_second(5).burst(8), Keep::Fresh)?;
    /// assert_eq!(limiter.available(), 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.at(self.now()).set_quota(quota, keep)
    }

    /// Changes the algorithm, and goes on with what is there as `keep` says.
    /// [`AnyAlgorithm`](crate::AnyAlgorithm) can so become another one.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
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
    /// A view on which every verb runs at this tick, without reading a clock.
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
    fn try_fast<O: Op<A>>(&self, now: Tick, op: O) -> Option<O::Output> {
        retry::try_fast(&self.ring, now, op)
    }
}
