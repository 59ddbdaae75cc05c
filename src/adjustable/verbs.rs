//! The verbs on the limiter's own clock.

use core::time::Duration;

use super::{Adjustable, AdjustableAt, Keep};
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::Forecast;
use crate::algorithm::Gauge;
use crate::algorithm::GiveBack;
use crate::algorithm::Level;
use crate::algorithm::Requota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};

impl<A: Requota + Settings + Clone, C> AdjustableAt<'_, A, C> {
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
        self.gate.with_sets(|sets, version| {
            let old = sets.of(version).clone();
            let Some(new) = next(&old)? else {
                return Ok(());
            };
            // Before the version is in force, so that who stops has not left the other one for it.
            *sets.of_mut(version.wrapping_add(1)) = new.clone();
            self.gate.ring.bring(&old, &new, keep, self.now);
            Ok(())
        })
    }
}

impl<A: Requota + Settings + Clone, C: Clock> Adjustable<A, C> {
    /// Changes the quota, and goes on with what is there as `keep` says. What else the algorithm is made from,
    /// such as how windows are aligned, stays; a tolerance goes with its interval.
    ///
    /// The quota that is in force already changes nothing, unless it is to start afresh.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    ///
    /// ```
    /// use tollgate::{Adjustable, ConfigError, Keep, Quota};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let gate = Adjustable::token_bucket(Quota::per_second(10))?;
    /// gate.charge(30);
    /// let zero = Quota::per_second(0);
    /// assert_eq!(gate.set_quota(zero, Keep::Fresh), Err(ConfigError::ZeroPermits));
    /// assert_eq!(gate.quota(), Quota::per_second(10));
    ///
    /// gate.set_quota(Quota::per_second(5).burst(8), Keep::Fresh)?;
    /// assert_eq!(gate.available(), 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.at(self.now()).set_quota(quota, keep)
    }

    /// Changes the algorithm, and goes on with what is there as `keep` says. [`AnyAlgorithm`](crate::AnyAlgorithm)
    /// can so become another one.
    ///
    /// ```
    /// use tollgate::{Adjustable, AnyAlgorithm, Keep, ManualClock};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket: AnyAlgorithm = "token-bucket 10/s".parse()?;
    /// let gate = Adjustable::with_clock(bucket, ManualClock::new());
    /// gate.try_acquire_n(7)?;
    /// gate.set("sliding-window 100/min".parse()?, Keep::Scaled);
    /// assert_eq!(gate.available(), 30);
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
    pub const fn at(&self, now: Tick) -> AdjustableAt<'_, A, C> {
        AdjustableAt { gate: self, now }
    }

    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    pub fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire()
    }

    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire_n(n)
    }

    /// Forgets everything: the limiter is fresh and full again. It allows one burst more.
    #[inline]
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }
}

impl<A: Algorithm + Settings, C: Clock> Adjustable<A, C> {
    /// What the limiter's clock says.
    #[inline]
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there: then nothing was taken or written.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.at(self.now()).try_acquire()
    }

    /// Takes `n` permits, or none. `n` = 0 succeeds exactly when the limiter is not in debt, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there: then nothing was taken or written.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.at(self.now()).try_acquire_n(n)
    }

    /// Takes as many of `n` permits as there are, which may be none.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.at(self.now()).take_up_to(n)
    }

    /// How many permits there are. Takes none.
    #[inline]
    pub fn available(&self) -> u64 {
        self.at(self.now()).available()
    }
}

impl<A: Forecast + Settings, C: Clock> Adjustable<A, C> {
    /// How long until `n` permits are there, if nobody takes any and the quota stays; `None` if never. Takes none.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        self.at(self.now()).time_until(n)
    }
}

impl<A: Gauge + Settings, C: Clock> Adjustable<A, C> {
    /// How many permits are counted: what is in the bucket, or in the window. Takes none.
    #[inline]
    pub fn level(&self) -> Level {
        self.at(self.now()).level()
    }
}

impl<A: GiveBack + Settings, C: Clock> Adjustable<A, C> {
    /// Gives back exactly this grant, or as much of it as can be given without admitting more than was promised,
    /// as [`Limiter::undo`](crate::Limiter::undo) does. Nothing, if the quota was changed since.
    ///
    /// ```
    /// use tollgate::{Adjustable, Keep, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Adjustable::token_bucket(Quota::per_hour(5))?;
    /// let before = gate.try_acquire_n(3)?;
    /// gate.set_quota(Quota::per_hour(6), Keep::AsIs)?;
    /// let after = gate.try_acquire_n(2)?;
    /// assert_eq!((gate.undo(before), gate.undo(after)), (0, 2));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.at(self.now()).undo(granted)
    }

    /// Gives back `n` permits, never above a full bucket. Returns how many came back, a part of one counted
    /// whole.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.at(self.now()).refund(n)
    }
}

impl<A: Debt + Settings, C: Clock> Adjustable<A, C> {
    /// Takes `n` permits whether they are there or not, into debt.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.at(self.now()).charge(n)
    }
}
