//! The direct limiter: an algorithm, a word, a clock.

mod at;

use core::fmt;

pub use at::At;

use crate::algorithm::{
    Algorithm, Debt, Forecast, Gauge, Gcra, GiveBack, Level, Requota, TokenBucket,
};
use crate::cell::{Cell, UNSTARTED};
use crate::clock::{Clock, SystemClock, Tick};
use crate::outcome::{Charged, Denied, Granted};
use crate::primitive::const_unless_loom;
use crate::quota::{ConfigError, Quota};
use core::time::Duration;

/// A rate limiter: share it by reference, from a `static` or in an `Arc`, and ask it.
///
/// ```
/// use tollgate::{Denied, Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let gate = Limiter::token_bucket(Quota::per_second(100).burst(20))?;
/// match gate.try_acquire() {
///     Ok(granted) => println!("go, {} left", granted.remaining()),
///     Err(Denied::Later { retry_after, .. }) => println!("come back in {retry_after:?}"),
///     Err(denied) => println!("{denied}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # In a `static`
///
/// The constructors without a clock reading are `const`, so a limit can be a global:
///
/// ```
/// use tollgate::{Limiter, Quota, TokenBucket};
///
/// static LOGINS: Limiter<TokenBucket> = match Limiter::token_bucket(Quota::per_minute(10)) {
///     Ok(gate) => gate,
///     Err(_) => panic!("10 a minute is no quota"), // at compile time, if at all
/// };
///
/// assert!(LOGINS.try_acquire().is_ok());
/// ```
///
/// A `const` constructor can't read a clock. That matters only to a quota with
/// [`initial`](Quota::initial) permits: such a limiter starts, and begins to fill, with the first
/// verb that is called on it, or with [`start`](Self::start). One made by
/// [`with_clock`](Self::with_clock) starts at once.
///
/// # Many threads
///
/// Every verb takes `&self` and is one atomic step; none blocks, and a thread that is stopped in
/// the middle of one stops nobody else. A verb that is refused writes nothing, but that the very
/// first verb on a limiter from a `const` constructor starts it. (The very first reading of the
/// system clock in a process calibrates it, and may make others wait: see [`SystemClock`].)
#[repr(C)]
pub struct Limiter<A, C = SystemClock> {
    // The word first, and next to it the parameters that every decision reads.
    cell: Cell,
    algorithm: A,
    clock: C,
}

impl<A> Limiter<A> {
    const_unless_loom! {
        /// A limiter on the system's clock.
        #[must_use]
        pub fn new(algorithm: A) -> Self {
            Self::unstarted(algorithm, SystemClock)
        }
    }
}

impl Limiter<TokenBucket> {
    const_unless_loom! {
        /// A token bucket on the system's clock.
        ///
        /// # Errors
        ///
        /// [`ConfigError`] if the quota can't be represented.
        pub fn token_bucket(quota: Quota) -> Result<Self, ConfigError> {
            match TokenBucket::new(quota) {
                Ok(bucket) => Ok(Self::new(bucket)),
                Err(error) => Err(error),
            }
        }
    }
}

impl Limiter<Gcra> {
    const_unless_loom! {
        /// GCRA on the system's clock.
        ///
        /// # Errors
        ///
        /// [`ConfigError`] if the quota can't be represented.
        pub fn gcra(quota: Quota) -> Result<Self, ConfigError> {
            match Gcra::new(quota) {
                Ok(gcra) => Ok(Self::new(gcra)),
                Err(error) => Err(error),
            }
        }
    }
}

impl<A, C> Limiter<A, C> {
    const_unless_loom! {
        /// A limiter on a clock of your own that starts with its first use: the `const` form of
        /// [`with_clock`](Self::with_clock).
        #[must_use]
        pub fn unstarted(algorithm: A, clock: C) -> Self {
            Self {
                algorithm,
                clock,
                cell: Cell::new(UNSTARTED),
            }
        }
    }

    /// The algorithm that decides.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<A: Algorithm, C> Limiter<A, C> {
    /// A view on which every verb runs at this tick, without reading a clock.
    ///
    /// A tick past the limiter's horizon, as [`Tick::MAX`] is and those 1 or 2 ns before it are for
    /// any bucket, counts as the horizon: nothing is refilled there (see [`Tick`]).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = Limiter::gcra(Quota::per_second(1))?;
    /// let then = gate.at(Tick::from_nanos(7));
    /// assert!(then.try_acquire().is_ok());
    /// assert!(then.try_acquire().is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn at(&self, now: Tick) -> At<'_, A> {
        At::new(&self.algorithm, &self.cell, now)
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

    /// Forgets everything: the limiter is fresh and full again. This allows one burst more, and
    /// callers that wait for reserved permits still go when they were told.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// gate.charge(1_000_000);
    /// gate.reset();
    /// assert_eq!(gate.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn reset(&self) {
        // It needs no tick: a fresh word is fresh at all times.
        self.at(Tick::ZERO).reset();
    }
}

impl<A: Algorithm, C: Clock> Limiter<A, C> {
    /// A limiter on a clock of your own. It starts now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5).initial(0))?;
    /// let gate = Limiter::with_clock(bucket, clock.clone());
    /// clock.advance(Duration::from_secs(2));
    /// assert_eq!(gate.available(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_clock(algorithm: A, clock: C) -> Self {
        let gate = Self::unstarted(algorithm, clock);
        gate.start();
        gate
    }

    /// Starts a limiter that was made by a `const` constructor, if nothing has yet.
    pub fn start(&self) {
        self.at(self.now()).start();
    }

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

    /// Takes `n` permits, or none. `n` = 0 succeeds exactly when the limiter is not in debt, and
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there: then nothing was taken or written.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.at(self.now()).try_acquire_n(n)
    }

    /// Takes as many of `n` permits as there are, which may be none.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// assert_eq!(gate.take_up_to(3).n(), 3);
    /// assert_eq!(gate.take_up_to(3).n(), 2);
    /// assert_eq!(gate.take_up_to(3).n(), 0);
    /// # Ok(())
    /// # }
    /// ```
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

impl<A: Forecast, C: Clock> Limiter<A, C> {
    /// How long until `n` permits are there, if nobody takes any; `None` if never. Takes none.
    ///
    /// ```
    /// use std::time::Duration;
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// assert_eq!(gate.time_until(5), Some(Duration::ZERO));
    /// assert_eq!(gate.time_until(6), None);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        self.at(self.now()).time_until(n)
    }
}

impl<A: Gauge, C: Clock> Limiter<A, C> {
    /// How many permits are counted: what is in the bucket, or in the window. Takes none.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let window = tollgate::FixedWindow::new(tollgate::Quota::per_day(5))?;
    /// let gate = tollgate::Limiter::new(window);
    /// gate.charge(7);
    /// assert_eq!(gate.level().ceil(), 7);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn level(&self) -> Level {
        self.at(self.now()).level()
    }
}

impl<A: GiveBack, C: Clock> Limiter<A, C> {
    /// Gives back exactly this grant, or as much of it as can be given without admitting more than
    /// was promised: what the clock has refilled of it already does not come back a second time.
    /// Returns how many permits came back, a part of one counted whole.
    ///
    /// The bound holds net of what came back, counted when it came back: a bucket is never more
    /// than full, whatever is undone in whatever order. Give a grant back once, and to the limiter
    /// that made it. A reset has given back everything that was granted before it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// let granted = gate.try_acquire_n(3)?;
    /// assert_eq!(gate.undo(granted), 3);
    /// assert_eq!(gate.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.at(self.now()).undo(granted)
    }

    /// Gives back `n` permits, never above a full bucket. Returns how many came back, a part of
    /// one counted whole.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// gate.charge(2);
    /// assert_eq!(gate.refund(100), 2);
    /// assert_eq!(gate.refund(1), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.at(self.now()).refund(n)
    }
}

impl<A: Debt, C: Clock> Limiter<A, C> {
    /// Takes `n` permits whether they are there or not, into debt: for costs that are known only
    /// afterwards, such as bytes sent or tokens a language model produced. While the limiter is
    /// in debt nothing is granted.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
    /// assert_eq!(gate.charge(7).debt(), 2);
    /// assert!(gate.try_acquire().is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.at(self.now()).charge(n)
    }
}

impl<A: Requota, C> Limiter<A, C> {
    /// The quota that the algorithm was made from.
    pub fn quota(&self) -> Quota {
        self.algorithm.quota()
    }
}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for Limiter<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("cell", &self.cell)
            .field("algorithm", &self.algorithm)
            .field("clock", &self.clock)
            .finish()
    }
}
