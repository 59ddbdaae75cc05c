//! The list of verbs. The verbs of a limiter on its own clock, and the limiter's traits, are
//! generated from it.
//!
//! Each group holds verbs that require the same trait of the algorithm. It names that trait, the
//! trait of limiters with these verbs (if there is one), and each verb together with its form that
//! takes a tick. A macro `$then` gets each group after its own `$context`.

/// The verbs of every limiter.
macro_rules! take_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Algorithm] TryAcquire {
            /// Takes `n` permits, or none. With `n` = 0 it changes nothing, and succeeds unless the
            /// limiter is in debt.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they are not all available. In that case nothing is
            /// taken.
            fn try_acquire_n / try_acquire_n_at(n: u64) -> Result<$crate::outcome::Granted, $crate::outcome::Denied>;
            /// Takes up to `n` permits: as many as are available, possibly none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(limiter.take_up_to(3).n(), 3);
            /// assert_eq!(limiter.take_up_to(3).n(), 2);
            /// assert_eq!(limiter.take_up_to(3).n(), 0);
            /// # Ok(())
            /// # }
            /// ```
            #[must_use = "it says how many permits were taken"]
            fn take_up_to / take_up_to_at(n: u64) -> $crate::outcome::Granted;
            /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// limiter.check_n(5)?;
            /// assert!(limiter.check_n(6).is_err_and(|denied| denied.is_permanent()));
            /// assert_eq!(limiter.available(), 5);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// The [`Denied`](crate::Denied) that the request would get.
            fn check_n / check_n_at(n: u64) -> Result<(), $crate::outcome::Denied>;
            /// Returns how many permits are available. Takes none.
            fn available / available_at() -> u64;
        }}
    };
}
pub(crate) use take_verbs;

/// The verbs of every limiter whose state is one word.
macro_rules! idle_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Algorithm] {
            /// Returns whether the limiter is idle: it behaves like a fresh one from now on.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert!(limiter.is_idle());
            /// limiter.charge(1);
            /// assert!(!limiter.is_idle());
            /// # Ok(())
            /// # }
            /// ```
            fn is_idle / is_idle_at() -> bool;
        }}
    };
}
pub(crate) use idle_verbs;

/// The verbs of limiters that know when permits will be available.
macro_rules! forecast_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Forecast] {
            /// Returns how long it takes until `n` permits are available, if no caller takes any.
            /// Returns `None` if they never will be. Takes none.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(limiter.time_until(5), Some(Duration::ZERO));
            /// assert_eq!(limiter.time_until(6), None);
            /// # Ok(())
            /// # }
            /// ```
            fn time_until / time_until_at(n: u64) -> Option<core::time::Duration>;
        }}
    };
}
pub(crate) use forecast_verbs;

/// The verbs of limiters whose count can be read.
macro_rules! gauge_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Gauge] {
            /// Returns how many permits are counted: the level of the bucket, or the count of the
            /// window. Takes none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let window = tollgate::FixedWindow::new(tollgate::Quota::per_day(5))?;
            /// let limiter = tollgate::Limiter::new(window);
            /// limiter.charge(7);
            /// assert_eq!(limiter.level().ceil(), 7);
            /// # Ok(())
            /// # }
            /// ```
            fn level / level_at() -> $crate::algorithm::Level;
        }}
    };
}
pub(crate) use gauge_verbs;

/// The verbs of limiters that take permits back.
macro_rules! give_back_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            /// A limiter that takes permits back.
            [GiveBack] GiveBackLimiter {
            /// Gives back a grant, or the part of it that may still be returned: permits that the
            /// clock has already refilled are not returned a second time. Returns how many permits
            /// were returned, rounded up.
            ///
            /// The limit then holds for the permits granted minus the permits returned. Each counts
            /// from the tick at which it was granted or returned. A bucket never becomes more than
            /// full, in whatever order grants are undone. Give a grant back to the limiter that
            /// made it, and not after a reset: the reset has already returned its permits.
            ///
            /// A [queue](crate::LeakyBucket::queue) returns nothing while others wait behind the
            /// grant.
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// let granted = limiter.try_acquire_n(3)?;
            /// assert_eq!(limiter.undo(granted), 3);
            /// assert_eq!(limiter.available(), 5);
            /// # Ok(())
            /// # }
            /// ```
            fn undo / undo_at(granted: $crate::outcome::Granted) -> u64;
            /// Gives back `n` permits, up to a full bucket. Returns how many permits were returned,
            /// rounded up.
            ///
            /// Use it for permits from another source, such as a quota that was bought. For an
            /// estimate that was too high, use `settle` or `undo`: `refund` does not know when the
            /// permits were taken, so it would return permits that the clock has already refilled,
            /// or credit a grant of yesterday to today.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// limiter.charge(2);
            /// assert_eq!(limiter.refund(100), 2);
            /// assert_eq!(limiter.refund(1), 0);
            /// # Ok(())
            /// # }
            /// ```
            fn refund / refund_at(n: u64) -> u64;
        }}
    };
}
pub(crate) use give_back_verbs;

/// The verbs of limiters that can owe permits.
macro_rules! debt_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            /// A limiter that can owe permits.
            [Debt] DebtLimiter {
            /// Takes `n` permits unconditionally, into debt if they are not available. Use it for
            /// costs that are known only afterwards, such as bytes sent or tokens that a language
            /// model produced. While the limiter is in debt, nothing is granted. A debt of decades
            /// is never paid back: see [`Denied::Stuck`](crate::Denied::Stuck).
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(limiter.charge(7).debt(), 2);
            /// assert!(limiter.try_acquire().is_err());
            /// # Ok(())
            /// # }
            /// ```
            fn charge / charge_at(n: u64) -> $crate::outcome::Charged;
        }}
    };
}
pub(crate) use debt_verbs;

/// Invokes `$then` with each group.
macro_rules! each_group_of_verbs {
    ($then:tt $context:tt) => {
        $crate::traits::verbs::take_verbs!($then $context);
        $crate::traits::verbs::idle_verbs!($then $context);
        $crate::traits::verbs::forecast_verbs!($then $context);
        $crate::traits::verbs::gauge_verbs!($then $context);
        $crate::traits::verbs::give_back_verbs!($then $context);
        $crate::traits::verbs::debt_verbs!($then $context);
    };
}
pub(crate) use each_group_of_verbs;
