//! Methods that reserve permits or block until they are available.

use crate::clock::{SleepClock, Tick};
use crate::outcome::{Denied, Granted};
use crate::traits::ReserveLimiter;

/// Takes `n` permits and sleeps until they are due, if they are due at `latest` or sooner. If they
/// are available now, only the fast path runs.
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

/// The way in which a reservation holds its limiter: `borrowed` by reference; `copied` by value,
/// for a limiter that is only a view; `owned` by reference, and by value in the `_owned` methods.
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

/// Implements reserving methods whose reservations keep their limiter alive.
macro_rules! owned_reservations {
    (copied) => {};
    (borrowed) => {
        $crate::wait::blocking::owned_reservations!(
            self: &std::sync::Arc<Self>, std::sync::Arc::clone(self) => std::sync::Arc<Self>
        );
    };
    (owned) => {
        $crate::wait::blocking::owned_reservations!(self: Self, self => Self);
    };
    ($self:ident: $receiver:ty, $limiter:expr => $kept:ty) => {
        /// Like [`reserve`](Self::reserve), but the reservation keeps the limiter alive and can be
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
            $self: $receiver,
            n: u64,
        ) -> Result<$crate::wait::Reservation<$kept>, $crate::outcome::Denied> {
            let now = $self.now();
            $crate::wait::Reservation::until($limiter, n, $crate::clock::Tick::MAX, now)
        }

        /// Like [`reserve_within`](Self::reserve_within), but the reservation keeps the limiter
        /// alive.
        ///
        /// # Errors
        ///
        /// As [`reserve_within`](Self::reserve_within).
        pub fn reserve_within_owned(
            $self: $receiver,
            n: u64,
            max_wait: core::time::Duration,
        ) -> Result<$crate::wait::Reservation<$kept>, $crate::outcome::Denied> {
            let now = $self.now();
            $crate::wait::Reservation::until($limiter, n, now.saturating_add(max_wait), now)
        }
    };
}

/// Implements the reserving and waiting methods of a limiter whose algorithm can
/// [`Reserve`](crate::algorithm::Reserve).
///
/// The short form takes extra bounds on the algorithm `A` and the remaining generic parameters. The
/// long form takes three complete parameter lists: for all methods, for methods that read a clock,
/// and for methods that sleep.
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
            /// [`reserve`](Self::reserve) at the tick `now`.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if the permits will never be available.
            #[inline]
            pub fn reserve_at(
                &self,
                n: u64,
                now: $crate::clock::Tick,
            ) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                $crate::wait::Reservation::until($crate::wait::blocking::kept!(self $kept), n, $crate::clock::Tick::MAX, now)
            }

            /// [`reserve_within`](Self::reserve_within) at the tick `now`.
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
            /// Returns this limiter for callers that wait in futures: see
            /// [`AsyncLimiter`](crate::wait::AsyncLimiter).
            #[inline]
            pub fn with_timer<T: $crate::clock::Timer>(
                &self,
                timer: T,
            ) -> $crate::wait::AsyncLimiter<$crate::wait::blocking::kept!($kept), T> {
                $crate::wait::AsyncLimiter::new($crate::wait::blocking::kept!(self $kept), timer)
            }
        }

        impl<$($clock)*> $limiter {
            /// Takes `n` permits, which may be used when the reservation is
            /// [due](crate::Reservation::due): now, or as soon as they are available. This is one
            /// atomic exchange, however many callers wait. Reservations are due in order of
            /// arrival.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied), at once, if the permits will never be available.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(60).burst(2))?;
            /// assert!(limiter.reserve(2)?.is_due());
            /// assert!(limiter.reserve(1)?.time_left() > Duration::from_secs(50));
            /// assert!(limiter.reserve(3).unwrap_err().is_permanent());
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn reserve(&self, n: u64) -> Result<$crate::wait::Reservation<$crate::wait::blocking::kept!($kept)>, $crate::outcome::Denied> {
                self.reserve_at(n, self.now())
            }

            /// Takes `n` permits if they are due within `max_wait`. Otherwise takes nothing.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if the permits are due later: `retry_after` says how much
            /// later. [`Denied::Never`](crate::Denied::Never) if `n` is more than the burst, or if
            /// `n` permits cannot all be due within `max_wait` even when no other caller waits (a
            /// leaky-bucket queue releases them one by one).
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
            /// Takes one permit, and blocks this thread until it is available. The thread computes
            /// when that is and sleeps once; it may wake late, never early. Callers are served in
            /// order of arrival.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if the permit will never be available.
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_second(1000).burst(1))?;
            /// let first = limiter.blocking_acquire()?;
            /// let second = limiter.blocking_acquire()?;
            /// assert!((second.at().saturating_since(first.at())).as_millis() >= 1);
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn blocking_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.blocking_acquire_n(1)
            }

            /// Takes `n` permits together, and blocks this thread until they are available.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if the permits will never be available.
            #[inline(always)]
            pub fn blocking_acquire_n(&self, n: u64) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                $crate::wait::acquire(self, n, self.now(), $crate::clock::Tick::MAX)
            }

            /// Takes `n` permits, blocking this thread for at most `timeout`. If they would be
            /// available only later, takes nothing and returns at once. With a timeout of zero it
            /// never blocks.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if the permits will not be available in time.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1))?;
            /// limiter.blocking_acquire_timeout(1, Duration::ZERO)?;
            /// let denied = limiter.blocking_acquire_timeout(1, Duration::from_secs(1)).unwrap_err();
            /// assert!(denied.retry_after().unwrap() > Duration::from_secs(3000));
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn blocking_acquire_timeout(&self, n: u64, timeout: core::time::Duration) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                let now = self.now();
                $crate::wait::acquire(self, n, now, now.saturating_add(timeout))
            }
        }
    };
}

pub(crate) use waits;

pub(crate) use kept;

pub(crate) use owned_reservations;
