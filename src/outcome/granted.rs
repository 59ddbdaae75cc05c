use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use crate::clock::Tick;

/// A granted request: the permits were available, and are taken.
///
/// It stores the state at the decision. Each method computes its answer when it is called.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_second(10))?, ManualClock::new());
/// let granted = limiter.try_acquire_n(3)?;
/// assert_eq!(granted.n(), 3);
/// assert_eq!(granted.remaining(), 7);
/// assert_eq!(granted.reset_after(), Duration::from_millis(300));
/// # Ok(())
/// # }
/// ```
///
/// # Spent once
///
/// A grant can't be copied, and [`undo`](crate::Limiter::undo) consumes it, so its permits are
/// returned only once. To keep its numbers, use [`info`](Self::info).
///
/// ```compile_fail,E0382
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
/// let granted = limiter.try_acquire_n(3)?;
/// limiter.undo(granted);
/// limiter.undo(granted); // error: use of moved value
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0599
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
/// let copy = limiter.try_acquire_n(3)?.clone(); // error: no method named `clone`
/// # Ok(())
/// # }
/// ```
///
/// A grant does not know its limiter: undo it on the one that made it. A `Reservation` holds its
/// limiter, so it can't be given back to another one.
#[derive(PartialEq, Eq, Hash)]
// Models of loom and shuttle reuse one grant in every order of operations.
#[cfg_attr(any(tollgate_loom, tollgate_shuttle), derive(Clone, Copy))]
pub struct Granted {
    n: u64,
    at: Tick,
    mark: u64,
    /// What remains, in the algorithm's own unit, and how many of these units are one permit. The
    /// division is made only when a caller asks.
    left: u64,
    permit: NonZeroU64,
    /// When the limiter will be idle, and when the caller may go, in units that accrue at
    /// `speed / 2^60` per nanosecond.
    idle_at: u64,
    ready: u64,
    speed: NonZeroU64,
    /// Which word of the limiter, or which version and plan, made the grant, if there are several.
    source: u32,
}

/// The numbers of a [`Granted`], as a copy that can be kept but not undone.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
/// let granted = limiter.try_acquire_n(3)?;
/// let info = granted.info();
/// assert_eq!(limiter.undo(granted), 3);
/// assert_eq!((info.n(), info.remaining()), (3, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrantInfo {
    n: u64,
    at: Tick,
    /// See [`Granted`].
    left: u64,
    permit: NonZeroU64,
    /// See [`Granted`].
    idle_at: u64,
    ready: u64,
    speed: NonZeroU64,
}

/// The source of a grant from several words.
#[cfg(feature = "std")]
pub(crate) const SEVERAL: u32 = u32::MAX;

/// The speed of one unit per nanosecond.
const NANOSECONDS: NonZeroU64 = NonZeroU64::MIN.saturating_add((1 << 60) - 1);

impl Granted {
    /// Creates a grant of `n` permits, counted at `at`, for an
    /// [`Algorithm`](crate::algorithm::Algorithm) to return. It says that nothing remains and that
    /// the limiter is idle; the `with_` methods change that.
    #[inline]
    pub const fn new(n: u64, at: Tick) -> Self {
        Self {
            n,
            at,
            mark: 0,
            left: 0,
            permit: NonZeroU64::MIN,
            idle_at: 0,
            ready: 0,
            speed: NANOSECONDS,
            source: 0,
        }
    }

    /// Returns a copy. The caller must hand out only one of the two.
    #[inline]
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }

    /// Sets which word made the grant.
    #[inline]
    pub(crate) const fn with_source(self, source: u32) -> Self {
        Self { source, ..self }
    }

    /// Returns the same grant with `n` permits.
    #[inline]
    pub(crate) const fn with_n(self, n: u64) -> Self {
        Self { n, ..self }
    }

    /// Returns the same grant in larger permits: `n` of them, each worth `permit` of the
    /// algorithm's permits.
    #[inline(always)]
    #[cfg(feature = "std")]
    pub(crate) const fn of_permits(self, n: u64, permit: u64) -> Self {
        let permit = match NonZeroU64::new(permit) {
            Some(permit) => self.permit.saturating_mul(permit),
            None => self.permit,
        };
        Self { n, permit, ..self }
    }

    /// Returns what remains, in the algorithm's own unit.
    #[inline]
    #[cfg(feature = "std")]
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// Returns which word made the grant.
    #[inline]
    pub(crate) const fn source(&self) -> u32 {
        self.source
    }

    /// Combines two grants from different words into one. It has no mark, because no single word
    /// could recognize it.
    #[cfg(feature = "std")]
    pub(crate) fn and(self, other: Self) -> Self {
        let (one, other) = (self.info(), other.info());
        let tick = |grant: &GrantInfo, units| grant.tick_of(units);
        let left = one.remaining().saturating_add(other.remaining());
        let idle_at = tick(&one, one.idle_at).max(tick(&other, other.idle_at));
        let ready = tick(&one, one.ready).max(tick(&other, other.ready));
        Self::new(one.n.saturating_add(other.n), one.at.max(other.at))
            .with_remaining(left, NonZeroU64::MIN)
            .with_reset_at(idle_at)
            .with_ready_at(ready)
            .with_source(SEVERAL)
    }

    /// Sets what remains: `left` units. One permit is `permit` units.
    #[inline]
    pub const fn with_remaining(self, left: u64, permit: NonZeroU64) -> Self {
        let granted = Self { permit, ..self };
        Self { left, ..granted }
    }

    /// Returns the same grant as if the limiter had no limit: nothing is used up, and the caller
    /// may go at once. It can still be undone.
    #[cfg(feature = "std")]
    pub(crate) const fn unlimited(self) -> Self {
        Self {
            left: u64::MAX,
            permit: NonZeroU64::MIN,
            idle_at: 0,
            ready: 0,
            ..self
        }
    }

    /// Sets when the limiter will be idle.
    #[inline]
    pub const fn with_reset_at(self, tick: Tick) -> Self {
        Self {
            idle_at: tick.as_nanos(),
            ready: self.info().tick_of(self.ready).as_nanos(),
            speed: NANOSECONDS,
            ..self
        }
    }

    /// Sets when the caller may go. Without this the caller may go at once.
    #[inline]
    pub const fn with_ready_at(self, tick: Tick) -> Self {
        Self {
            idle_at: self.info().tick_of(self.idle_at).as_nanos(),
            ready: tick.as_nanos(),
            speed: NANOSECONDS,
            ..self
        }
    }

    /// Sets when the limiter will be idle, in units that accrue at `speed / 2^60` per nanosecond.
    #[inline]
    pub(crate) const fn with_idle_at_units(self, idle_at: u64, speed: NonZeroU64) -> Self {
        Self {
            idle_at,
            ready: 0,
            speed,
            ..self
        }
    }

    /// Sets when the caller may go, in the units of an earlier
    /// [`with_idle_at_units`](Self::with_idle_at_units).
    #[inline]
    pub(crate) const fn with_ready_units(self, ready: u64) -> Self {
        Self { ready, ..self }
    }

    /// Sets the mark by which the algorithm recognizes the grant when it is undone: usually the
    /// word after the grant.
    #[inline]
    pub const fn with_mark(self, mark: u64) -> Self {
        Self { mark, ..self }
    }

    /// Returns the mark that the algorithm set: see [`with_mark`](Self::with_mark).
    #[inline]
    pub const fn mark(&self) -> u64 {
        self.mark
    }

    /// Sets the words before and after the grant, for a bucket whose word says when it is idle.
    /// The mark is then the word before it, and not the one by which the grant is undone.
    #[inline]
    pub(crate) const fn with_words(self, before: u64, after: u64) -> Self {
        Self {
            mark: before,
            idle_at: after,
            ..self
        }
    }

    /// Returns the words that [`with_words`](Self::with_words) set.
    #[inline]
    pub(crate) const fn words(&self) -> (u64, u64) {
        (self.mark, self.idle_at)
    }

    /// Sets the mark to the word after the grant, so that the grant can be undone.
    #[inline]
    pub(crate) const fn with_mark_after(self) -> Self {
        let mark = self.idle_at;
        Self { mark, ..self }
    }

    /// Returns the grant's numbers as a value that can be kept.
    #[inline]
    pub const fn info(&self) -> GrantInfo {
        GrantInfo {
            n: self.n,
            at: self.at,
            left: self.left,
            permit: self.permit,
            idle_at: self.idle_at,
            ready: self.ready,
            speed: self.speed,
        }
    }

    /// Returns whether the caller may go at once. It computes no tick, so `false` only means that
    /// the caller may have to wait.
    #[inline(always)]
    pub(crate) const fn is_ready(&self) -> bool {
        self.ready == 0
    }

    /// Returns the same grant as if it were made at its due tick: its permits count then, and the
    /// delay is zero.
    #[inline]
    pub const fn when_due(self) -> Self {
        Self {
            at: self.due(),
            ready: 0,
            ..self
        }
    }
}

/// Defines the same readers for a grant and for its info.
macro_rules! readers {
    ($($(#[$meta:meta])* fn $reader:ident($self:ident) -> $type:ty $body:block)*) => {
        impl GrantInfo {$(
            $(#[$meta])*
            #[inline]
            pub const fn $reader(&$self) -> $type $body
        )*}

        impl Granted {$(
            $(#[$meta])*
            #[inline]
            pub const fn $reader(&self) -> $type {
                self.info().$reader()
            }
        )*}
    };
}

readers! {
    /// Returns how many permits were taken.
    fn n(self) -> u64 {
        self.n
    }

    /// Returns the tick at which the limiter counted the permits. This is the caller's own tick,
    /// with two exceptions. If the limiter has seen a later tick, some algorithms count at that
    /// tick. If a period begins with its first permit, its beginning is rounded up to a quantum,
    /// and permits that are taken before this beginning count at the beginning.
    fn at(self) -> Tick {
        self.at
    }

    /// Returns how many permits were left right after the grant.
    fn remaining(self) -> u64 {
        self.left / self.permit.get()
    }

    /// Returns how long after [`at`](Self::at) the limiter is idle again, if no caller takes more.
    fn reset_after(self) -> Duration {
        self.tick_of(self.idle_at).saturating_since(self.at)
    }

    /// Returns how long the caller must wait before it uses the permits. This is zero, unless the
    /// permits are reserved or come from a [`LeakyBucket::queue`](crate::LeakyBucket::queue). The
    /// rate is kept only if callers wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{LeakyBucket, Limiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = LeakyBucket::queue(Quota::per_second(10).burst(3))?;
    /// let limiter = Limiter::with_clock(queue, ManualClock::new());
    /// assert_eq!(limiter.try_acquire()?.delay(), Duration::ZERO);
    /// assert_eq!(limiter.try_acquire()?.delay(), Duration::from_millis(100));
    /// assert_eq!(limiter.try_acquire()?.delay(), Duration::from_millis(200));
    /// assert!(limiter.try_acquire().is_err()); // the queue is full
    /// # Ok(())
    /// # }
    /// ```
    fn delay(self) -> Duration {
        if self.ready == 0 {
            return Duration::ZERO;
        }
        self.tick_of(self.ready).saturating_since(self.at)
    }

    /// Returns when the caller may go: [`delay`](Self::delay) after the tick at which the permits
    /// were counted.
    fn due(self) -> Tick {
        let ready = self.tick_of(self.ready);
        if ready.as_nanos() > self.at.as_nanos() {
            ready
        } else {
            self.at
        }
    }
}

impl GrantInfo {
    /// Returns the first tick at which this many units have accrued.
    #[inline]
    const fn tick_of(&self, units: u64) -> Tick {
        let tick = ((units as u128) << 60).div_ceil(self.speed.get() as u128);
        // The tick fits, because the speed is at least 2^60.
        Tick::from_nanos(tick as u64)
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().written("Granted", f)
    }
}

impl fmt::Debug for GrantInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written("GrantInfo", f)
    }
}

impl GrantInfo {
    fn written(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("n", &self.n)
            .field("at", &self.at)
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .finish()
    }
}
