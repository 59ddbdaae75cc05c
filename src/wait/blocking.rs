//! The verbs that reserve and wait.

use crate::clock::{SleepClock, Tick};
use crate::outcome::{Denied, Granted};
use crate::rate_limiter::ReserveLimiter;

/// Takes `n` permits and sleeps until they are there, if that is not after `latest`. A caller that
/// finds them there pays for nothing else.
#[inline(always)]
pub(crate) fn acquire<G>(limiter: &G, n: u64, now: Tick, latest: Tick) -> Result<Granted, Denied>
where
    G: ReserveLimiter<Clock: SleepClock>,
{
    match limiter.reserve_fast_at(n, now) {
        Some(granted) => Ok(granted),
        None => wait(limiter, n, now, latest),
    }
}

#[cold]
#[inline(never)]
fn wait<G>(limiter: &G, n: u64, now: Tick, latest: Tick) -> Result<Granted, Denied>
where
    G: ReserveLimiter<Clock: SleepClock>,
{
    let granted = limiter.reserve_until_at(n, latest, now)?;
    if !granted.is_ready() {
        limiter.clock().sleep_until(granted.due(), now);
    }
    Ok(granted.when_due())
}

/// How a reservation keeps its limiter: `borrowed`, or `copied`, where it is no more than a view.
/// An `owned` one is borrowed, or moved into the reservation.
macro_rules! kept {
    (borrowed) => {
        &Self
    };
    (owned) => {
        &Self
    };
    (copied) => {
        Self
    };
    ($limiter:ident borrowed) => {
        $limiter
    };
    ($limiter:ident owned) => {
        $limiter
    };
    ($limiter:ident copied) => {
        *$limiter
    };
}

/// Reservations that keep their limiter alive.
macro_rules! owned_reservations {
    (copied) => {};
    (borrowed) => {
        /// [`reserve`](Self::reserve), for a reservation that keeps the limiter alive and can be
        /// sent to another thread or task.
        ///
        /// # Errors
        ///
        /// As [`reserve`](Self::reserve).
        ///
        /// ```
        /// use std::sync::Arc;
        /// use tollgate::{Limiter, Quota};
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_second(1000).burst(1))?);
        /// let reservations = [limiter.reserve_owned(1)?, limiter.reserve_owned(1)?];
        /// for reservation in reservations {
        ///     std::thread::spawn(move || reservation.wait()).join().unwrap();
        /// }
        /// # Ok(())
        /// # }
        /// ```
        pub fn reserve_owned(
            self: &std::sync::Arc<Self>,
            n: u64,
        ) -> Result<$crate::wait::Reservation<std::sync::Arc<Self>>, $crate::outcome::Denied> {
            let now = self.now();
            let limiter = std::sync::Arc::clone(self);
            $crate::wait::Reservation::until(limiter, n, $crate::clock::Tick::MAX, now)
        }

        /// [`reserve_within`](Self::reserve_within), for a reservation that keeps the limiter
        /// alive.
        ///
        /// # Errors
        ///
        /// As [`reserve_within`](Self::reserve_within).
        pub fn reserve_within_owned(
            self: &std::sync::Arc<Self>,
            n: u64,
            max_wait: core::time::Duration,
        ) -> Result<$crate::wait::Reservation<std::sync::Arc<Self>>, $crate::outcome::Denied> {
            let now = self.now();
            let limiter = std::sync::Arc::clone(self);
            $crate::wait::Reservation::until(limiter, n, now.saturating_add(max_wait), now)
        }
    };
    (owned) => {
        /// [`reserve`](Self::reserve), for a reservation that keeps the table alive.
        ///
        /// # Errors
        ///
        /// As [`reserve`](Self::reserve).
        pub fn reserve_owned(
            self,
            n: u64,
        ) -> Result<$crate::wait::Reservation<Self>, $crate::outcome::Denied> {
            let now = self.now();
            $crate::wait::Reservation::until(self, n, $crate::clock::Tick::MAX, now)
        }

        /// [`reserve_within`](Self::reserve_within), for a reservation that keeps the table alive.
        ///
        /// # Errors
        ///
        /// As [`reserve_within`](Self::reserve_within).
        pub fn reserve_within_owned(
            self,
            n: u64,
            max_wait: core::time::Duration,
        ) -> Result<$crate::wait::Reservation<Self>, $crate::outcome::Denied> {
            let now = self.now();
            $crate::wait::Reservation::until(self, n, now.saturating_add(max_wait), now)
        }
    };
}

/// The verbs of a limiter whose permits can be had before they are there. Either its algorithm `A`
/// has these bounds, and it has these other parameters; or these are its parameters for all verbs,
/// for those that read a clock, and for those that sleep.
macro_rules! waits {
    ([$($bound:tt)*] [$($parameters:tt)*] $kept:ident $limiter:ty) => {
        $crate::wait::waits!(
            [A: $crate::algorithm::Reserve $($bound)*, C, $($parameters)*]
            [A: $crate::algorithm::Reserve $($bound)*, C: $crate::clock::Clock, $($parameters)*]
            [A: $crate::algorithm::Reserve $($bound)*, C: $crate::clock::SleepClock, $($parameters)*]
            $kept $limiter
        );
    };
    ([$($all:tt)*] [$($clock:tt)*] [$($sleep:tt)*] $kept:ident $limiter:ty) => {
        impl<$($all)*> $limiter {
            /// [`reserve`](Self::reserve) at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they will never be there.
            #[inline]
            pub fn reserve_at(
                &self,
                n: u64,
                now: $crate::clock::Tick,
            ) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                $crate::wait::Reservation::until($crate::wait::blocking::kept!(self $kept), n, $crate::clock::Tick::MAX, now)
            }

            /// [`reserve_within`](Self::reserve_within) at this tick.
            ///
            /// # Errors
            ///
            /// As [`reserve_within`](Self::reserve_within).
            #[inline]
            pub fn reserve_within_at(
                &self,
                n: u64,
                max_wait: core::time::Duration,
                now: $crate::clock::Tick,
            ) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                $crate::wait::Reservation::until($crate::wait::blocking::kept!(self $kept), n, now.saturating_add(max_wait), now)
            }
        }

        #[cfg(feature = "wait")]
        impl<$($clock)*> $limiter {
            /// The same limiter for callers that wait in futures: see
            /// [`AsyncLimiter`](crate::AsyncLimiter).
            #[inline]
            pub fn with_timer<T: $crate::clock::Timer>(
                &self,
                timer: T,
            ) -> $crate::wait::AsyncLimiter<$crate::wait::blocking::kept!($kept), T> {
                $crate::wait::AsyncLimiter::new($crate::wait::blocking::kept!(self $kept), timer)
            }
        }

        impl<$($clock)*> $limiter {
            /// Takes `n` permits, now or when they will be there: the reservation says when it is
            /// [due](crate::Reservation::due). It is one exchange, however many wait; reservations
            /// are due in order of arrival.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they will never be there, at once.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(60).burst(2))?;
            /// assert!(limiter.reserve(2)?.is_due());
            /// assert!(limiter.reserve(1)?.time_left() > Duration::from_secs(59));
            /// assert!(limiter.reserve(3).unwrap_err().is_permanent());
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn reserve(&self, n: u64) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                self.reserve_at(n, self.now())
            }

            /// The same if they are due within `max_wait`; else nothing is taken.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they are due later: `retry_after` says how much later.
            /// [`Denied::Never`](crate::Denied::Never) if `n` permits can't all be due within
            /// `max_wait` even when nothing else waits (they leave a queue one by one), or if `n`
            /// is more than the burst.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(60).burst(1))?;
            /// assert!(limiter.reserve_within(1, Duration::ZERO)?.is_due());
            /// assert!(limiter.reserve_within(1, Duration::from_secs(50)).is_err());
            /// assert!(limiter.reserve_within(1, Duration::from_secs(60)).is_ok());
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn reserve_within(
                &self,
                n: u64,
                max_wait: core::time::Duration,
            ) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                self.reserve_within_at(n, max_wait, self.now())
            }

            $crate::wait::blocking::owned_reservations!($kept);
        }

        impl<$($sleep)*> $limiter {
            /// Takes one permit, and blocks this thread until it is there. It computes when that
            /// is, and sleeps once: it may wake late, never early. Callers are served in order of
            /// arrival.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it will never be there.
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_second(1000).burst(1))?;
            /// let first = limiter.acquire()?;
            /// let second = limiter.acquire()?;
            /// assert!((second.at().saturating_since(first.at())).as_millis() >= 1);
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.acquire_n(1)
            }

            /// The same of `n` permits at once.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they will never be there.
            #[inline(always)]
            pub fn acquire_n(&self, n: u64) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                $crate::wait::acquire(self, n, self.now(), $crate::clock::Tick::MAX)
            }

            /// The same if that takes no longer than `timeout`; else nothing is taken, and it
            /// returns at once. A timeout of zero is a try.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they will not be there in that time.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1))?;
            /// limiter.acquire_timeout(1, Duration::ZERO)?;
            /// let denied = limiter.acquire_timeout(1, Duration::from_secs(1)).unwrap_err();
            /// assert!(denied.retry_after().unwrap() > Duration::from_secs(3000));
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn acquire_timeout(&self, n: u64, timeout: core::time::Duration) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                let now = self.now();
                $crate::wait::acquire(self, n, now, now.saturating_add(timeout))
            }
        }
    };
}

pub(crate) use waits;

pub(crate) use kept;

pub(crate) use owned_reservations;
