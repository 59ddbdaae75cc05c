use core::fmt;
use std::sync::PoisonError;

use super::ring::Ring;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, SystemClock, Tick};
use crate::quota::Quota;
use crate::sync::{AtomicU128, Mutex};

/// A [`Limiter`](crate::Limiter) whose quota can be changed while it is in use.
///
/// ```
/// use tollgate::adjustable::Keep;
/// use tollgate::{Adjustable, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Adjustable::token_bucket(Quota::per_hour(100))?;
/// limiter.try_acquire_n(60)?;
/// limiter.set_quota(Quota::per_hour(1000), Keep::AsIs)?;
/// assert_eq!(limiter.available(), 40);
/// limiter.set_quota(Quota::per_hour(10), Keep::AsIs)?;
/// assert_eq!(limiter.available(), 10);
/// # Ok(())
/// # }
/// ```
///
/// Its verbs are those of a [`Limiter`](crate::Limiter). A limit that never changes is better off
/// with that: it fits a `static` by itself (this one needs a `LazyLock`), and its exchange is of
/// one word, which most processors do faster than that of two.
///
/// # What is promised
///
/// **No decision mixes two quotas.** Each is made with one quota and one word, which belong to each
/// other. A grant's were those in force when it was made; a denial's, or a look's, were those of
/// one moment during the call.
///
/// **The bound.** For a change at the tick at which [`set_quota`](Self::set_quota) read the clock
/// (or was told):
///
/// - What was granted under each quota keeps the bound of that quota, by itself, over every
///   interval. So in any interval at most the sum of the bounds of the quotas that were in force in
///   it is granted.
/// - With [`Keep::AsIs`](super::Keep::AsIs) no permit comes from nowhere: right after a change
///   there are at most as many as right before it. So buckets that are only changed so grant, in
///   every interval, at most the burst of the quota that was in force at its beginning, and what
///   each rate makes while it is in force. (Where threads' ticks differ, what the larger rate makes
///   in that difference comes to that with each change.)
/// - [`Keep::Scaled`](super::Keep::Scaled) keeps the part of the burst that is there, and so adds
///   to the permits at hand where it makes the burst larger. [`Keep::Fresh`](super::Keep::Fresh)
///   allows a burst more, as a reset does.
///
/// Windows and greedy intervals whose period stays go on with their counts, which end when they
/// would have ended; what one limit has more than the other counts as taken, until then. Where the
/// period changes, what was counted counts in the new one's current window: so a caller that
/// changes the period more than once a period grants little. A queue keeps its line, whatever it
/// can hold: what it can hold more is room. [`Keep::Scaled`](super::Keep::Scaled) may lose a part
/// of a permit with each change, where whole ones are counted.
///
/// **Undo.** A grant that was made under a quota which has been replaced can't be
/// [undone](Self::undo): nothing comes back of it, and its permits come again with time only. (The
/// word counts in other units now, so whether the clock has refilled them meanwhile is unknown.) A
/// caller that knows may [`refund`](Self::refund). A grant identifies its version by 32 bits: don't
/// keep it for 2^32 changes.
///
/// ```
/// use tollgate::adjustable::Keep;
/// use tollgate::{Adjustable, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Adjustable::token_bucket(Quota::per_hour(5))?;
/// let before = limiter.try_acquire_n(3)?;
/// limiter.set_quota(Quota::per_hour(6), Keep::AsIs)?;
/// let after = limiter.try_acquire_n(2)?;
/// assert_eq!((limiter.undo(before), limiter.undo(after)), (0, 2));
/// # Ok(())
/// # }
/// ```
///
/// **Reservations** keep the tick at which they are due, whatever the quota becomes. What waits
/// counts as debt for later callers. If the rate has risen, a caller that comes after the change
/// may be due before one that came before it. Nothing comes back of a reservation from before the
/// change.
///
/// # Many threads
///
/// Decisions are lock-free where the exchange of two words is
/// ([`is_lock_free`](Self::is_lock_free)): on x86-64 (all processors but the first ones), on
/// aarch64, and on some others. Elsewhere `portable-atomic` takes a lock for each, which is held
/// for a few instructions. Threads that change the quota wait for each other, but no decision ever
/// waits for them, even if they stop in the middle.
pub struct Adjustable<A, C = SystemClock> {
    pub(super) ring: Ring,
    /// The algorithms of the version that is in force and of the one before or after it, where the
    /// slots have their parameters; whoever changes the quota holds it.
    pub(super) sets: Mutex<Sets<A>>,
    pub(super) clock: C,
}

/// Where the algorithms of even and odd versions are.
#[derive(Debug)]
pub(super) struct Sets<A> {
    even: A,
    odd: A,
}

impl<A> Sets<A> {
    pub(super) const fn of(&self, version: u64) -> &A {
        match version % 2 {
            0 => &self.even,
            _ => &self.odd,
        }
    }

    pub(super) const fn of_mut(&mut self, version: u64) -> &mut A {
        match version % 2 {
            0 => &mut self.even,
            _ => &mut self.odd,
        }
    }
}

impl<A: Algorithm + Settings + Clone> Adjustable<A> {
    /// A limiter on the system's clock. It starts now.
    #[must_use]
    pub fn new(algorithm: A) -> Self {
        Self::with_clock(algorithm, SystemClock)
    }
}

impl<A: Algorithm + Settings + Clone, C: Clock> Adjustable<A, C> {
    /// A limiter on a clock of your own. It starts now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::adjustable::Keep;
    /// use tollgate::{Adjustable, FixedWindow, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let window = FixedWindow::new(Quota::per_minute(10))?;
    /// let limiter = Adjustable::with_clock(window, clock.clone());
    /// limiter.try_acquire_n(7)?;
    /// limiter.set_quota(Quota::per_minute(5), Keep::AsIs)?;
    /// assert_eq!(limiter.available(), 3);
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(limiter.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_clock(algorithm: A, clock: C) -> Self {
        let now = clock.now();
        Self::starting_at(algorithm, clock, now)
    }
}

impl<A: Algorithm + Settings + Clone, C> Adjustable<A, C> {
    /// A limiter that starts at this tick, on a clock that need not be one that can be read.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
    /// use tollgate::clock::NoClock;
    /// use tollgate::{Adjustable, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(3))?;
    /// let limiter = Adjustable::starting_at(bucket, NoClock, Tick::ZERO);
    /// let now = Tick::from_nanos(5);
    /// limiter.at(now).set_quota(Quota::per_second(2), Keep::AsIs)?;
    /// assert_eq!(limiter.at(now).available(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn starting_at(algorithm: A, clock: C, now: Tick) -> Self {
        Self {
            ring: Ring::new(&algorithm, algorithm.initial_word(now)),
            sets: Mutex::new(Sets {
                even: algorithm.clone(),
                odd: algorithm,
            }),
            clock,
        }
    }
}

impl<A, C> Adjustable<A, C> {
    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// How often the quota has been changed.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
    /// use tollgate::{Adjustable, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let limiter = Adjustable::gcra(Quota::per_second(10))?;
    /// assert!(limiter.set_quota(Quota::per_second(10).burst(0), Keep::AsIs).is_err());
    /// assert_eq!(limiter.version(), 0);
    /// limiter.set_quota(Quota::per_second(20), Keep::AsIs)?;
    /// assert_eq!(limiter.version(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn version(&self) -> u64 {
        self.ring.load().version
    }

    /// Whether this processor exchanges two words in one step. Where it does not, a lock is taken
    /// for a few instructions, and a thread that is preempted there blocks the others.
    #[must_use]
    pub fn is_lock_free() -> bool {
        AtomicU128::is_lock_free()
    }

    /// What `ask` says of the algorithm that is in force, and of its place. Nobody changes it
    /// meanwhile.
    pub(super) fn with_sets<T>(&self, ask: impl FnOnce(&mut Sets<A>, u64) -> T) -> T {
        // Somebody who panicked with it has left the algorithm of the version in force as it was.
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version();
        ask(&mut sets, version)
    }
}

impl<A: ChangeQuota + Settings + Clone, C> Adjustable<A, C> {
    /// The algorithm that is in force. While somebody is changing it, it waits for that.
    pub fn algorithm(&self) -> A {
        self.with_sets(|sets, version| sets.of(version).clone())
    }

    /// The quota that is in force. While somebody is changing it, it waits for that.
    pub fn quota(&self) -> Quota {
        self.with_sets(|sets, version| sets.of(version).quota())
    }
}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for Adjustable<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // While this is locked the version stays.
        let sets = self.sets.try_lock();
        let pair = self.ring.load();
        let mut shown = f.debug_struct("Adjustable");
        match &sets {
            Ok(sets) => shown.field("algorithm", sets.of(pair.version)),
            Err(_) => shown.field("algorithm", &format_args!("<locked>")),
        }
        .field("version", &pair.version)
        .field("word", &pair.word)
        .field("clock", &self.clock)
        .finish()
    }
}
