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
/// use tollgate::Keep;
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
/// It has the verbs of a [`Limiter`](crate::Limiter). For a limit that never changes, prefer a
/// [`Limiter`](crate::Limiter). It needs no `LazyLock` in a `static`, and most processors exchange
/// its one word faster than two.
///
/// # Guarantees
///
/// **No decision mixes two quotas.** Each decision uses one quota and the word that belongs to it.
/// For a grant, both were current when it was made. For a denial or a query, both were current at
/// one moment during the call.
///
/// **The bound.** A change takes effect at the tick at which [`set_quota`](Self::set_quota) read
/// the clock, or at the tick of the view.
///
/// - The grants under each quota keep that quota's bound over every interval. So the grants in any
///   interval are at most the sum of the bounds of all quotas that were current in it.
/// - [`Keep::AsIs`](super::Keep::AsIs) never makes more permits available. So if every change of a
///   bucket uses it, any interval grants at most the burst of the quota at its beginning, plus what
///   each rate refills while it is current. (If the ticks of threads differ, each change may add
///   what the larger rate refills in that difference.)
/// - [`Keep::Used`](super::Keep::Used) adds the difference of the bursts. So if every change of a
///   bucket uses it, any interval grants at most the largest burst, plus what each rate refills
///   while it is current.
/// - [`Keep::Scaled`](super::Keep::Scaled) keeps the available fraction of the burst, so a larger
///   burst adds permits. [`Keep::Fresh`](super::Keep::Fresh) allows one more burst, as a reset
///   does.
///
/// If the period stays the same, windows and greedy intervals keep their counts until the period
/// ends. Until then, the difference between a larger new limit and the old one counts as taken,
/// unless the change keeps what was used. If the period changes, all counts move to the current
/// window of the new period, so if it changes more than once per period, few permits are granted.
/// The requests that wait in a queue stay in it, and a larger queue has more room. If an algorithm
/// counts whole permits, [`Keep::Scaled`](super::Keep::Scaled) may lose a fraction of a permit with
/// each change.
///
/// **Undo.** [Undoing](Self::undo) a grant under a replaced quota returns nothing, and only time
/// restores its permits: the word counts in other units now, and does not show how many of these
/// permits are already refilled. A caller that knows the number can [`refund`](Self::refund) them.
/// A grant identifies its version by 32 bits, so don't keep it for 2^32 changes.
///
/// ```
/// use tollgate::Keep;
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
/// **Reservations** stay due at the same tick when the quota changes. Reserved permits count as
/// debt for later callers. If the rate rises, a caller that reserves after the change may be due
/// before an earlier one. Cancelling a reservation from before the change returns no permits.
///
/// # Many threads
///
/// Decisions are lock-free if the processor exchanges two words in one step
/// ([`is_lock_free`](Self::is_lock_free)): on x86-64 (all but the earliest processors), on aarch64,
/// and on some others. On the rest `portable-atomic` takes a lock for a few instructions. Threads
/// that change the quota wait for each other. No decision waits for them, even if one of them stops
/// halfway through a change.
pub struct Adjustable<A, C = SystemClock> {
    pub(super) ring: Ring,
    /// The algorithms of the current version and of an adjacent one, in the same order as the
    /// parameters in the slots. A thread that changes the quota holds this lock.
    pub(super) sets: Mutex<Sets<A>>,
    pub(super) clock: C,
}

/// The algorithms of the last even and of the last odd version.
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
    /// Creates a limiter on the system clock. It starts now.
    #[must_use]
    pub fn new(algorithm: A) -> Self {
        Self::with_clock(algorithm, SystemClock)
    }
}

impl<A: Algorithm + Settings + Clone, C: Clock> Adjustable<A, C> {
    /// Creates a limiter on your own clock. It starts now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Keep;
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
    /// Creates a limiter that starts at this tick. The clock may be one that can't be read, such as
    /// [`NoClock`](crate::clock::NoClock).
    ///
    /// ```
    /// use tollgate::Keep;
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
    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns how many times the quota was changed.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Adjustable, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
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

    /// Returns whether this processor exchanges two words in one step. If not, each exchange takes
    /// a lock for a few instructions, and a thread that is preempted there blocks the others.
    #[must_use]
    pub fn is_lock_free() -> bool {
        AtomicU128::is_lock_free()
    }

    /// Calls `ask` with the algorithms and the current version, while it holds the lock that
    /// changes take.
    pub(super) fn with_sets<T>(&self, ask: impl FnOnce(&mut Sets<A>, u64) -> T) -> T {
        // A thread that panicked under this lock left the algorithm of the current version
        // unchanged.
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version();
        ask(&mut sets, version)
    }
}

impl<A: ChangeQuota + Settings + Clone, C> Adjustable<A, C> {
    /// Returns the current algorithm. It waits while another thread changes it.
    pub fn algorithm(&self) -> A {
        self.with_sets(|sets, version| sets.of(version).clone())
    }

    /// Returns the current quota. It waits while another thread changes it.
    pub fn quota(&self) -> Quota {
        self.with_sets(|sets, version| sets.of(version).quota())
    }
}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for Adjustable<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Under this lock the version does not change.
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
