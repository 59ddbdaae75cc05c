//! The list of verbs. Each verb of a limiter on its own clock, and each limiter's traits, are made
//! from it.
//!
//! A group has the verbs that need the same of the algorithm: what that is, the trait of limiters
//! that have them (if there is one), and each verb with its name where it takes a tick.

/// Every limiter has these.
macro_rules! take_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Algorithm] RateLimiter {
            /// Takes `n` permits, or none. `n` = 0 succeeds exactly when the limiter is not in
            /// debt, and changes nothing.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they were not all there: then nothing was taken.
            fn try_acquire_n / try_acquire_n_at(n: u64) -> Result<$crate::outcome::Granted, $crate::outcome::Denied>;
            /// Takes as many of `n` permits as there are, which may be none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(limiter.take_up_to(3).n(), 3);
            /// assert_eq!(limiter.take_up_to(3).n(), 2);
            /// assert_eq!(limiter.take_up_to(3).n(), 0);
            /// # Ok(())
            /// # }
            /// ```
            #[must_use = "it says how many were there"]
            fn take_up_to / take_up_to_at(n: u64) -> $crate::outcome::Granted;
            /// How many permits there are. Takes none.
            fn available / available_at() -> u64;
        }}
    };
}
pub(crate) use take_verbs;

/// Every limiter whose state is one word has these.
macro_rules! idle_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Algorithm] {
            /// Whether the limiter can no longer be told from a fresh one.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
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

/// Limiters that can tell when permits will be there.
macro_rules! forecast_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Forecast] {
            /// How long until `n` permits are there, if nobody takes any; `None` if never. Takes
            /// none.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), tollgate::ConfigError> {
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

/// Limiters whose count can be read.
macro_rules! gauge_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            [Gauge] {
            /// How many permits are counted: what is in the bucket, or in the window. Takes none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
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

/// Limiters that take permits back.
macro_rules! give_back_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            /// A limiter that takes permits back.
            [GiveBack] GiveBackLimiter {
            /// Gives back exactly this grant, or as much of it as can be given without admitting
            /// more than was promised: what the clock has refilled of it already does not come back
            /// a second time. Returns how many permits came back, a part of one counted whole.
            ///
            /// The bound holds net of what came back, counted when it came back: a bucket is never
            /// more than full, whatever is undone in whatever order. Give a grant back to the
            /// limiter that made it. A reset has given back everything that was granted before it.
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
            /// Gives back `n` permits, never above a full bucket. Returns how many came back, a
            /// part of one counted whole.
            ///
            /// It does not know when these permits were taken. So it is wrong for an estimate that
            /// turns out too high: what the clock has refilled meanwhile comes back a second time,
            /// and a grant of yesterday is credited to today. Use `settle` or `undo` there. It is right
            /// for permits of another source, such as a quota that was bought.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
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

/// Limiters that can owe permits.
macro_rules! debt_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context
            /// A limiter that can owe permits.
            [Debt] DebtLimiter {
            /// Takes `n` permits whether they are there or not, into debt: for costs that are known
            /// only afterwards, such as bytes sent or tokens a language model produced. While the
            /// limiter is in debt nothing is granted.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
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

/// All groups. Invokes `$then` with each.
macro_rules! each_group_of_verbs {
    ($then:tt $context:tt) => {
        $crate::rate_limiter::verbs::take_verbs!($then $context);
        $crate::rate_limiter::verbs::idle_verbs!($then $context);
        $crate::rate_limiter::verbs::forecast_verbs!($then $context);
        $crate::rate_limiter::verbs::gauge_verbs!($then $context);
        $crate::rate_limiter::verbs::give_back_verbs!($then $context);
        $crate::rate_limiter::verbs::debt_verbs!($then $context);
    };
}
pub(crate) use each_group_of_verbs;
