use super::ConcurrencyGuard;
use super::enter_future::EnterFuture;
use super::word::MAX_CONCURRENCY;
use core::fmt;
use std::sync::Arc;

use super::queue::WaitQueue;
use super::word::Occupancy;
use crate::counted::{Counters, LimiterStats};
use crate::limiter_error::LimiterError;
use crate::outcome::Denied;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, Backoff, Mutex, inject_fault};

/// Limits how many callers are inside at once.
///
/// A caller that enters gets a [`ConcurrencyGuard`], and leaves when the guard is dropped: at the
/// end of its scope, in a panic, or with the future that holds it. A guard has a weight, usually 1,
/// and the limit is on the total weight. There is no clock: a denied caller stays denied until
/// others leave ([`Denied::Busy`]).
///
/// ```
/// use tollgate::{Concurrency, Denied};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Concurrency::new(3)?;
/// let one = limiter.try_enter()?;
/// let two = limiter.try_enter_n(2)?;
/// assert!(matches!(limiter.try_enter(), Err(Denied::Busy { .. })));
/// drop(two);
/// assert_eq!((limiter.inside(), limiter.peak(), limiter.limit()), (1, 3, 3));
/// # drop(one);
/// # Ok(())
/// # }
/// ```
///
/// # Waiting
///
/// [`enter`](Self::enter) waits: `limiter.enter().await` on any runtime, or
/// `limiter.enter().wait()` in a thread. Tasks and threads share one line. Waiters enter **in the
/// order in which they began to wait**, whatever their weight: a light waiter does not pass a heavy
/// one before it, and `try_enter` passes no waiter. (To pass all waiters, use
/// [`try_enter_ahead`](Self::try_enter_ahead).) A caller that leaves gives its room to the first
/// waiter, and then wakes that waiter. If a waiter gives up, the room that it was given goes to the
/// next.
///
/// While no caller waits, there is no lock and no allocation. Entering exchanges one word, which
/// shows whether there is room and whether a caller waits; leaving subtracts from it. The line of
/// waiters has a lock, which is held for a few steps, and never while a waker runs.
///
/// # Caveats
///
/// A caller that leaves wakes the waiters that it lets in. Some executors run a task inside the
/// call that wakes it. If that task leaves at once, it wakes the next task inside the same call,
/// and so on, so a long line of such tasks needs a deep stack.
///
/// A guard that is leaked, by [`core::mem::forget`] or in a cycle, keeps its place forever. A guard
/// is not tied to its thread and may be sent to another.
///
/// # In a `static`
///
/// ```
/// use std::sync::LazyLock;
/// use tollgate::Concurrency;
///
/// static UPLOADS: LazyLock<Concurrency> =
///     LazyLock::new(|| Concurrency::new(8).expect("8 is from 1 to MAX_LIMIT"));
/// assert!(UPLOADS.try_enter().is_ok());
/// assert_eq!(UPLOADS.inside(), 0);
/// ```
pub struct Concurrency {
    pub(super) word: AtomicU64,
    /// The highest weight that was inside.
    pub(super) peak: AtomicU64,
    pub(super) line: Mutex<WaitQueue>,
    /// The most permits that can wait in line.
    pub(super) max_waiting_permits: u64,
    counters: Option<Counters>,
}

/// Returns the limit if it is valid.
pub(crate) fn checked(limit: u64) -> Result<u64, LimiterError> {
    match limit {
        0 => Err(LimiterError::ZeroConcurrency),
        1..=MAX_CONCURRENCY => Ok(limit),
        _ => Err(LimiterError::ConcurrencyTooLarge {
            limit,
            max: MAX_CONCURRENCY,
        }),
    }
}

impl Concurrency {
    /// The largest limit, and so the largest weight.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// assert!(Concurrency::new(Concurrency::MAX_LIMIT).is_ok());
    /// let error = Concurrency::new(Concurrency::MAX_LIMIT + 1).unwrap_err();
    /// assert_eq!(error.to_string(), "limit is 2147483648, but must be from 1 to 2147483647");
    /// ```
    pub const MAX_LIMIT: u64 = MAX_CONCURRENCY;

    /// Creates a limiter with room for a weight of `limit`.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the limit is 0 or above [`MAX_LIMIT`](Self::MAX_LIMIT).
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// let error = Concurrency::new(0).unwrap_err();
    /// assert_eq!(error.field(), "limit");
    /// assert_eq!(error.to_string(), "limit is 0, but must be at least 1");
    /// ```
    pub fn new(limit: u64) -> Result<Self, LimiterError> {
        checked(limit).map(Self::of)
    }

    /// Creates a limiter with a limit that is valid.
    pub(crate) fn of(limit: u64) -> Self {
        Self {
            word: AtomicU64::new(Occupancy::empty(limit).0),
            peak: AtomicU64::new(0),
            line: Mutex::new(WaitQueue::default()),
            max_waiting_permits: u64::MAX,
            counters: None,
        }
    }

    /// Counts the callers that enter, with their weights, and those that are denied, as
    /// [`Counted`](crate::Counted) does for other limiters. As a member of a composition, it counts
    /// the requests that it grants and denies.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let uploads = Concurrency::new(2)?.counted();
    /// let guard = uploads.try_enter_n(2)?;
    /// assert!(uploads.try_enter().is_err());
    /// drop(guard);
    /// let stats = uploads.stats().unwrap_or_default();
    /// assert_eq!((stats.granted, stats.permits, stats.denied), (1, 2, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counters = Some(Counters::new());
        self
    }

    /// Returns what was counted so far. `None` if nothing is [counted](Self::counted).
    #[must_use]
    pub fn stats(&self) -> Option<LimiterStats> {
        self.counters.as_ref().map(Counters::stats)
    }

    /// Counts the answer to a caller, if answers are counted.
    #[inline]
    pub(crate) fn count(&self, granted: bool, n: u64) {
        if let Some(counters) = &self.counters {
            counters.answer(granted, n);
        }
    }

    /// Counts the weight of a caller that gave its grant back.
    #[inline]
    pub(crate) fn count_returned(&self, n: u64) {
        if let Some(counters) = &self.counters {
            counters.returned(n);
        }
    }

    /// Bounds the total weight of the callers that wait. A caller that cannot enter at once and
    /// would raise it above `permits` is denied at once, with [`Denied::LineFull`]. The default is
    /// [`u64::MAX`].
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use tollgate::{Concurrency, Denied};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(2)?.max_waiting_permits(3);
    /// let guard = limiter.try_enter()?;
    /// let mut waits = pin!(limiter.enter_n(2));
    /// assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert!(matches!(limiter.enter_n(2).wait(), Err(Denied::LineFull { .. }))); // at once
    /// assert_eq!(limiter.waiting_permits(), 2);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_waiting_permits(mut self, permits: u64) -> Self {
        self.max_waiting_permits = permits;
        self
    }

    /// Enters with a weight of 1 if there is room and no caller waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is no room or a caller waits.
    #[inline]
    pub fn try_enter(&self) -> Result<ConcurrencyGuard<&Self>, Denied> {
        self.try_enter_n(1)
    }

    /// Enters with a weight of `n`, all or nothing. A weight of 0 takes no room and changes
    /// nothing: it only checks whether a caller waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not enough room or a caller waits; [`Denied::Never`] if `n` is
    /// above the limit.
    ///
    /// ```
    /// use tollgate::{Concurrency, Denied};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// let limiter = Concurrency::new(10)?;
    /// let guard = limiter.try_enter_n(7).unwrap();
    /// assert_eq!(guard.n(), 7);
    /// assert!(matches!(limiter.try_enter_n(4), Err(Denied::Busy { requested: 4, .. })));
    /// assert!(matches!(limiter.try_enter_n(11), Err(Denied::Never { limit: 10, .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_n(&self, n: u64) -> Result<ConcurrencyGuard<&Self>, Denied> {
        self.try_and_count(n, false)
            .map(|()| ConcurrencyGuard::new(self, n))
    }

    /// Enters with a weight of `n`, with a guard that keeps the limiter alive and can move to other
    /// threads and tasks: see [`try_enter_n`](Self::try_enter_n).
    ///
    /// # Errors
    ///
    /// The same as for [`try_enter_n`](Self::try_enter_n).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Arc::new(Concurrency::new(2)?);
    /// let guard = limiter.try_enter_owned(1)?;
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert_eq!(limiter.inside(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_owned(
        self: &Arc<Self>,
        n: u64,
    ) -> Result<ConcurrencyGuard<Arc<Self>>, Denied> {
        self.try_and_count(n, false)
            .map(|()| ConcurrencyGuard::new(Arc::clone(self), n))
    }

    /// Enters with a weight of `n` if there is room, **passing all waiters**. Frequent use can
    /// starve them.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not enough room; [`Denied::Never`] if `n` is above the limit.
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(3)?;
    /// let first = limiter.try_enter_n(2)?;
    /// let mut large = pin!(limiter.enter_n(3));
    /// assert!(large.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert!(limiter.try_enter().is_err()); // there is room, but a caller waits
    /// let urgent = limiter.try_enter_ahead(1)?;
    /// assert_eq!(limiter.inside(), 3);
    /// # drop((first, urgent));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_ahead(&self, n: u64) -> Result<ConcurrencyGuard<&Self>, Denied> {
        self.try_and_count(n, true)
            .map(|()| ConcurrencyGuard::new(self, n))
    }

    /// Returns a future that enters as soon as there is room and its turn has come:
    /// `limiter.enter().await`, or `limiter.enter().wait()` in a thread.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(1)?;
    /// let guard = limiter.enter().wait()?;
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn enter(&self) -> EnterFuture<&Self> {
        self.enter_n(1)
    }

    /// Returns a future that enters with a weight of `n`: see [`enter`](Self::enter). A weight of 0
    /// takes no room, but waits for its turn.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(5)?;
    /// let guard = limiter.enter_n(4).wait()?;
    /// assert_eq!(guard.n(), 4);
    /// assert!(limiter.enter_n(6).wait().is_err_and(|denied| denied.is_permanent()));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn enter_n(&self, n: u64) -> EnterFuture<&Self> {
        EnterFuture::new(self, n)
    }

    /// Returns a future that enters with a weight of `n`, and whose guard keeps the limiter alive:
    /// see [`enter_n`](Self::enter_n). Use it in tasks that a runtime spawns.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Concurrency, Denied};
    ///
    /// async fn upload(limiter: Arc<Concurrency>) -> Result<(), Denied> {
    ///     let guard = limiter.enter_owned(1).await?;
    ///     // ...
    ///     drop(guard);
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn enter_owned(self: &Arc<Self>, n: u64) -> EnterFuture<Arc<Self>> {
        EnterFuture::new(Arc::clone(self), n)
    }

    /// Sets the limit, and returns the previous one. No caller has to leave: if more are inside
    /// than a lowered limit allows, none enters until enough have left. A raised limit lets waiters
    /// in at once. A waiter that weighs more than a lowered limit gets [`Denied::Never`].
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the limit is 0 or above [`MAX_LIMIT`](Self::MAX_LIMIT); the limit does
    /// not change then.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(4)?;
    /// let (one, two) = (limiter.try_enter_n(2)?, limiter.try_enter_n(2)?);
    /// assert_eq!(limiter.set_limit(3)?, 4);
    /// drop(one);
    /// assert_eq!((limiter.inside(), limiter.limit()), (2, 3));
    /// assert!(limiter.try_enter().is_ok());
    /// assert!(limiter.try_enter_n(2).is_err());
    /// # drop(two);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_limit(&self, limit: u64) -> Result<u64, LimiterError> {
        checked(limit).map(|limit| self.change_limit(limit))
    }

    /// Returns the limit.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.load().limit()
    }

    /// Returns the total weight inside.
    #[inline]
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.load().inside()
    }

    /// Returns the number of callers that wait, regardless of weight.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.standing().0
    }

    /// Returns the total weight of the callers that wait.
    #[must_use]
    pub fn waiting_permits(&self) -> u64 {
        self.standing().1
    }

    /// Returns the highest total weight inside since the limiter was created or since
    /// [`reset_peak`](Self::reset_peak).
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(10)?;
    /// drop(limiter.try_enter_n(8)?);
    /// let guard = limiter.try_enter_n(3)?;
    /// assert_eq!((limiter.inside(), limiter.peak()), (3, 8));
    /// assert_eq!(limiter.reset_peak(), 8);
    /// assert_eq!(limiter.peak(), 3);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn peak(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing, and pairs with nothing. A caller that has just
        // entered may not have recorded its peak yet, but it is inside, and so counted.
        self.inside().max(self.peak.load(Relaxed))
    }

    /// Restarts the peak at the weight inside now, and returns the previous peak. (If one caller
    /// leaves and another enters at that moment, the new peak may count both.)
    pub fn reset_peak(&self) -> u64 {
        // ORDERING: Relaxed. The release of the `fetch_add` below publishes it.
        let was = self.peak.swap(0, Relaxed);
        // ORDERING: Release. It publishes the peak of 0 to a caller that enters later, which could
        // otherwise see the old peak and not record its own. It pairs with the Acquire of
        // `exchange`. A caller that entered earlier and is still inside is counted in the value
        // that this operation returns.
        // Model: concurrency_word::no_peak_is_missed
        let inside = Occupancy(self.word.fetch_add(0, Release)).inside();
        self.peak.fetch_max(inside, Relaxed);
        was.max(inside)
    }
}

/// Operations on the word.
impl Concurrency {
    #[inline]
    pub(super) fn load(&self) -> Occupancy {
        // ORDERING: Relaxed. It publishes nothing, and pairs with nothing. The value is only
        // reported, or an exchange checks it.
        Occupancy(self.word.load(Relaxed))
    }

    #[inline]
    #[cfg_attr(any(tollgate_loom, tollgate_shuttle), track_caller)]
    pub(super) fn exchange(&self, word: Occupancy, next: Occupancy) -> Result<(), Occupancy> {
        // ORDERING: Acquire. A caller that enters sees everything that was done inside by the
        // callers that made the room. It pairs with the Release of `leave`, also through exchanges
        // by other threads and, for a caller that waited, through the lock.
        // Model: concurrency_word::an_entering_thread_sees_earlier_writes
        let exchanged = self
            .word
            .compare_exchange_weak(word.0, next.0, Acquire, Relaxed);
        match exchanged {
            Ok(_) => {
                self.note_peak(next.inside());
                Ok(())
            }
            Err(seen) => Err(Occupancy(seen)),
        }
    }

    #[inline]
    pub(super) fn note_peak(&self, inside: u64) {
        // ORDERING: Relaxed, here and below. It publishes nothing. By coherence the peak only
        // grows, except for a reset, and a caller that enters after a reset has seen it.
        if self.peak.load(Relaxed) < inside {
            self.peak.fetch_max(inside, Relaxed);
        }
    }

    /// Enters if there is room. Unless `ahead` is set, it enters only while no caller waits.
    #[inline]
    pub(crate) fn take(&self, n: u64, ahead: bool) -> Result<(), Denied> {
        match self.take_once(n, ahead) {
            Some(outcome) => outcome,
            None => self.take_later(n, ahead),
        }
    }

    /// Takes as [`take`](Self::take) does, and counts the answer.
    #[inline]
    fn try_and_count(&self, n: u64, ahead: bool) -> Result<(), Denied> {
        let taken = self.take(n, ahead);
        self.count(taken.is_ok(), n);
        taken
    }

    /// Returns what [`try_enter_n`](Self::try_enter_n) would answer.
    pub(crate) fn check_enter(&self, n: u64) -> Result<(), Denied> {
        let word = self.load();
        match word.has_room(n) && !word.somebody_waits() {
            true => Ok(()),
            false => Err(word.denied(n)),
        }
    }

    /// Returns the weight that there is room for now.
    pub(crate) fn free(&self) -> u64 {
        let word = self.load();
        word.limit().saturating_sub(word.inside())
    }

    /// Makes one attempt. Returns `None` if another thread changed the word meanwhile.
    #[inline(always)]
    fn take_once(&self, n: u64, ahead: bool) -> Option<Result<(), Denied>> {
        let word = self.load();
        let is_my_turn = ahead || !word.somebody_waits() || inject_fault!(Overtakes); // FAULT
        if !(is_my_turn && word.has_room(n)) {
            return Some(Err(word.denied(n)));
        }
        if n == 0 {
            return Some(Ok(()));
        }
        self.exchange(word, word.with_inside(n)).ok().map(Ok)
    }

    /// Makes the attempts after the first one.
    #[cold]
    #[inline(never)]
    fn take_later(&self, n: u64, ahead: bool) -> Result<(), Denied> {
        let mut backoff = Backoff::new();
        loop {
            backoff.wait();
            if let Some(outcome) = self.take_once(n, ahead) {
                return outcome;
            }
        }
    }

    /// Takes `n` off the weight inside, and lets waiters in if there are any. The caller holds a
    /// weight of `n`.
    #[inline]
    pub(crate) fn leave(&self, n: u64) {
        if self.subtract(n) {
            self.let_in();
        }
    }

    /// Takes `n` off the weight inside. Returns whether a caller waits, which may then fit.
    #[inline]
    pub(super) fn subtract(&self, n: u64) -> bool {
        if n == 0 {
            return false;
        }
        // ORDERING: Release. It publishes what was done inside to the callers that enter later. It
        // pairs with the Acquire of `exchange`.
        // Model: concurrency_word::an_entering_thread_sees_earlier_writes
        let word = Occupancy(self.word.fetch_sub(n, Release));
        word.somebody_waits()
    }
}

impl fmt::Debug for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Concurrency")
            .field("limit", &self.limit())
            .field("inside", &self.inside())
            .field("waiting", &self.waiting())
            .field("peak", &self.peak())
            .finish()
    }
}
