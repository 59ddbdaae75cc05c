use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use crate::clock::Tick;

/// Permits were there, and are taken.
///
/// It holds what was known at the decision; what is not read is not computed.
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
/// A grant can't be copied, and [`undo`](crate::Limiter::undo) consumes it, so its permits come
/// back once. What it says is a value of its own, which can be kept: [`info`](Self::info).
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
/// It does not know its limiter: undo it on the one that made it. A `Reservation` holds its
/// limiter, so it can't be given to another one.
#[derive(PartialEq, Eq, Hash)]
// Models run every order of their verbs with the same grant.
#[cfg_attr(any(tollgate_loom, tollgate_shuttle), derive(Clone, Copy))]
pub struct Granted {
    n: u64,
    at: Tick,
    mark: u64,
    /// What is left, in the algorithm's own unit, and how much of that a permit is: the division
    /// waits until it is asked for.
    room: u64,
    unit: NonZeroU64,
    /// When the limiter is as good as new, and when the caller may go, on a scale of `speed / 2^60`
    /// units a nanosecond.
    reset: u64,
    ready: u64,
    speed: NonZeroU64,
    /// Which word granted it, of a limiter that has several.
    source: u32,
}

/// What a [`Granted`] says: a copy that can be kept and gives nothing back.
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
    /// What is left, in the algorithm's own unit, and how much of that a permit is: the division
    /// waits until it is asked for.
    room: u64,
    unit: NonZeroU64,
    /// When the limiter is as good as new, and when the caller may go, on a scale of `speed / 2^60`
    /// units a nanosecond.
    reset: u64,
    ready: u64,
    speed: NonZeroU64,
}

/// Permits of several words.
#[cfg(feature = "std")]
pub(crate) const SEVERAL: u32 = u32::MAX;

/// One unit a nanosecond.
const NANOSECONDS: NonZeroU64 = NonZeroU64::MIN.saturating_add((1 << 60) - 1);

impl Granted {
    /// A grant of `n` permits, counted at `at`: what an
    /// [`Algorithm`](crate::algorithm::Algorithm)'s step returns. Nothing remains and nothing is to
    /// be reset unless the following say so.
    #[inline]
    pub const fn new(n: u64, at: Tick) -> Self {
        Self {
            n,
            at,
            mark: 0,
            room: 0,
            unit: NonZeroU64::MIN,
            reset: 0,
            ready: 0,
            speed: NANOSECONDS,
            source: 0,
        }
    }

    /// A copy, for code that gives out one of the two.
    #[inline]
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }

    /// Says which word granted it.
    #[inline]
    pub(crate) const fn with_source(self, source: u32) -> Self {
        Self { source, ..self }
    }

    /// The same of so many permits.
    #[inline]
    pub(crate) const fn with_n(self, n: u64) -> Self {
        Self { n, ..self }
    }

    /// The same of `n` permits, each of which is so many of those that the algorithm counted.
    #[inline(always)]
    #[cfg(feature = "std")]
    pub(crate) const fn of_permits(self, n: u64, permit: u64) -> Self {
        let unit = match NonZeroU64::new(permit) {
            Some(permit) => self.unit.saturating_mul(permit),
            None => self.unit,
        };
        Self { n, unit, ..self }
    }

    /// What remains, in the algorithm's own unit.
    #[inline]
    #[cfg(feature = "std")]
    pub(crate) const fn room(&self) -> u64 {
        self.room
    }

    /// Which word granted it.
    #[inline]
    pub(crate) const fn source(&self) -> u32 {
        self.source
    }

    /// One grant of both, from different words. There is no mark by which one of them would know
    /// it.
    #[cfg(feature = "std")]
    pub(crate) fn and(self, other: Self) -> Self {
        let (one, other) = (self.info(), other.info());
        let tick = |grant: &GrantInfo, units| grant.tick_of(units);
        let room = one.remaining().saturating_add(other.remaining());
        let reset = tick(&one, one.reset).max(tick(&other, other.reset));
        let ready = tick(&one, one.ready).max(tick(&other, other.ready));
        Self::new(one.n.saturating_add(other.n), one.at.max(other.at))
            .with_room(room, NonZeroU64::MIN)
            .with_reset_at(reset)
            .with_ready_at(ready)
            .with_source(SEVERAL)
    }

    /// Says that `room` units remain, of which a permit takes `unit`.
    #[inline]
    pub const fn with_room(self, room: u64, unit: NonZeroU64) -> Self {
        Self { room, unit, ..self }
    }

    /// Says when the limiter will be as good as new.
    #[inline]
    pub const fn with_reset_at(self, tick: Tick) -> Self {
        Self {
            reset: tick.as_nanos(),
            ready: self.info().tick_of(self.ready).as_nanos(),
            speed: NANOSECONDS,
            ..self
        }
    }

    /// Says from when on the caller may go; at once, if nothing is said.
    #[inline]
    pub const fn with_ready_at(self, tick: Tick) -> Self {
        Self {
            reset: self.info().tick_of(self.reset).as_nanos(),
            ready: tick.as_nanos(),
            speed: NANOSECONDS,
            ..self
        }
    }

    /// Says the same in units of which the clock makes `speed / 2^60` a nanosecond.
    #[inline]
    pub(crate) const fn with_reset_units(self, reset: u64, speed: NonZeroU64) -> Self {
        Self {
            reset,
            ready: 0,
            speed,
            ..self
        }
    }

    /// Says from when on the caller may go, in the units of
    /// [`with_reset_units`](Self::with_reset_units), which came before.
    #[inline]
    pub(crate) const fn with_ready_units(self, ready: u64) -> Self {
        Self { ready, ..self }
    }

    /// Leaves a mark by which the algorithm knows the grant again when it is to be undone; the
    /// word after the grant, as a rule.
    #[inline]
    pub const fn with_mark(self, mark: u64) -> Self {
        Self { mark, ..self }
    }

    /// The mark that the algorithm left: see [`with_mark`](Self::with_mark).
    #[inline]
    pub const fn mark(&self) -> u64 {
        self.mark
    }

    /// What it says, to be kept.
    #[inline]
    pub const fn info(&self) -> GrantInfo {
        GrantInfo {
            n: self.n,
            at: self.at,
            room: self.room,
            unit: self.unit,
            reset: self.reset,
            ready: self.ready,
            speed: self.speed,
        }
    }

    /// Whether the caller may go at once, unless that takes looking up.
    #[inline(always)]
    pub(crate) const fn is_ready(&self) -> bool {
        self.ready == 0
    }

    /// The same grant when its permits are there, or were: it counts then, and there is nothing to
    /// wait for.
    #[inline]
    pub const fn when_due(self) -> Self {
        Self {
            at: self.due(),
            ready: 0,
            ..self
        }
    }
}

/// The readers, of a grant and of what it says.
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
    /// How many permits were taken.
    fn n(self) -> u64 {
        self.n
    }

    /// The tick at which the limiter counted them: the caller's own, or a later one if the limiter
    /// has seen a later one and its algorithm counts by it. (Where a period begins with the first
    /// permit, its beginning is rounded up to a quantum, and a caller within that quantum is
    /// counted at the beginning.)
    fn at(self) -> Tick {
        self.at
    }

    /// How many more there were at that tick.
    fn remaining(self) -> u64 {
        self.room / self.unit.get()
    }

    /// How long after that tick the limiter is as good as new, if nobody takes more.
    fn reset_after(self) -> Duration {
        self.tick_of(self.reset).saturating_since(self.at)
    }

    /// How long the caller must wait before it uses them: nothing, unless the algorithm shapes as a
    /// [`LeakyBucket::queue`](crate::LeakyBucket::queue) does. A rate is kept only by those who
    /// wait.
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
        self.tick_of(self.ready).saturating_since(self.at)
    }

    /// When the caller may go: [`delay`](Self::delay) after the tick at which the permits were
    /// counted.
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
    /// The first tick at which the clock has made so many units.
    #[inline]
    const fn tick_of(&self, units: u64) -> Tick {
        let tick = ((units as u128) << 60).div_ceil(self.speed.get() as u128);
        // The speed is at least 2^60, so the tick fits.
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
