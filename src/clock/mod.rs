//! Time: [`Tick`], the [`Clock`] trait and the clocks.
//!
//! | clock | a reading costs | for |
//! |---|---|---|
//! | [`SystemClock`] | a read of the processor's counter and a multiplication | everything |
//! | [`CoarseClock`] | one relaxed load | loops that read the time once per iteration |
//! | `ManualClock` (feature `std`) | one relaxed load | tests and simulations |
//! | `TokioClock` (feature `tokio`) | a system call for the monotonic clock | tests with tokio's paused time |
//! | [`NoClock`] | has no readings | callers that always pass the time |

mod coarse;
#[cfg(feature = "std")]
pub(crate) mod manual;
#[cfg(feature = "std")]
mod sleep_clock;
#[cfg(feature = "std")]
mod sleepers;
mod system;
pub(crate) mod tick;
mod timer;
#[cfg(feature = "tokio")]
mod tokio;
mod utc;

pub use coarse::CoarseClock;
#[cfg(feature = "std")]
pub use coarse::Upkeep;
#[cfg(feature = "std")]
pub(crate) use manual::ManualClock;
#[cfg(feature = "std")]
pub use sleep_clock::SleepClock;
#[cfg(feature = "std")]
pub use sleepers::ManualSleep;
pub use system::SystemClock;
#[cfg(feature = "std")]
pub(crate) use system::unix_origin;
pub(crate) use tick::Tick;
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use tokio::TokioClock;
pub use utc::UtcClock;

/// A source of the current time.
///
/// A clock should not go back. If it does, nothing breaks: with an older tick, a limiter answers
/// conservatively and never exceeds its bound.
///
/// ```
/// use tollgate::clock::Clock;
/// use tollgate::Tick;
///
/// /// Counts the frames of a game as milliseconds.
/// #[derive(Debug)]
/// struct Frames(u64);
///
/// impl Clock for Frames {
///     fn now(&self) -> Tick {
///         Tick::from_nanos(self.0 * 16_000_000)
///     }
/// }
/// assert_eq!(Frames(2).now().as_nanos(), 32_000_000);
/// ```
pub trait Clock {
    /// Returns the current time, counted from this clock's start.
    fn now(&self) -> Tick;

    /// Returns a number that differs between clocks of this type that tell different times. The
    /// default is 0: all clocks of the type agree. Limits can only be
    /// [composed](crate::compose::All) if their clocks agree. The numbers of different types may be
    /// equal. So if the clocks of limits are `dyn Clock`, compose only limits that share one.
    ///
    /// ```
    /// use tollgate::ManualClock;
    /// use tollgate::clock::Clock;
    ///
    /// let clock = ManualClock::new();
    /// assert_eq!(clock.identity(), clock.clone().identity()); // a clone shares the time
    /// assert_ne!(clock.identity(), ManualClock::new().identity());
    /// ```
    #[inline]
    fn identity(&self) -> usize {
        0
    }
}

/// Implements a trait for pointers to what implements it.
macro_rules! behind_pointers {
    ($(fn $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        #[inline(always)]
        fn $method(&self $(, $argument: $type)*) -> $answer {
            (**self).$method($($argument),*)
        }
    )*};
    ($trait:ident $methods:tt) => {
        $crate::clock::behind_pointers!(&T, $trait $methods);
        #[cfg(feature = "std")]
        $crate::clock::behind_pointers!(std::boxed::Box<T>, $trait $methods);
        #[cfg(feature = "std")]
        $crate::clock::behind_pointers!(std::sync::Arc<T>, $trait $methods);
    };
    ($pointer:ty, $trait:ident {$($methods:tt)*}) => {
        impl<T: $trait + ?Sized> $trait for $pointer {
            $crate::clock::behind_pointers!($($methods)*);
        }
    };
}
pub(crate) use behind_pointers;

behind_pointers!(Clock {
    fn now() -> Tick;
    fn identity() -> usize;
});

/// No clock: the limiter has only the methods that take the time as an argument.
///
/// ```
/// use tollgate::clock::NoClock;
/// use tollgate::{Gcra, Limiter, Quota, Tick};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::unstarted(Gcra::new(Quota::per_second(10))?, NoClock);
/// assert!(limiter.at(Tick::from_nanos(7)).try_acquire().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoClock;
