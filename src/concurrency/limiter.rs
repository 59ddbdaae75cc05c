use super::ConcurrencyGuard;
use super::enter_future::EnterFuture;
use super::word::MAX_CONCURRENCY;
use core::fmt;
use std::sync::Arc;

use super::queue::WaitQueue;
use super::word::Occupancy;
use crate::outcome::Denied;
use crate::quota::ConfigError;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, Backoff, Mutex, inject_fault};

/// Limits how many callers are inside at once.
///
/// A caller that enters gets a [`ConcurrencyGuard`], and leaves when the guard is dropped: at the
/// end of its scope, in a panic, or with the future that held it. A guard may weigh more than one.
/// It has no clock: a denied caller stays denied until others leave ([`Denied::Busy`]).
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
/// [`enter`](Self::enter) waits: `limiter.enter().await` on any runtime, `limiter.enter().wait()`
/// in a thread, and both stand in one line. Waiters come in **in the order in which they began to
/// wait**, whatever they weigh: one that needs much is not passed by those behind it that need
/// little, and `try_enter` passes no waiter. (To pass them all, say so:
/// [`try_enter_ahead`](Self::try_enter_ahead).) A thread that makes room hands it to the first
/// waiter before that waiter wakes. If a waiter gives up, what it was handed goes to the next.
///
/// As long as no caller waits there is no lock and no allocation: entering is one exchange of one
/// word, which says that there is room and that no caller waits, and leaving is one more. Where a
/// caller waits, the line is behind a lock that is held for a few steps, and never while code runs
/// that is not of this crate.
///
/// # What it is not
///
/// A caller that leaves wakes the waiters that it lets in. A task that is not only woken but run
/// there, and leaves in turn, lets the next one in from within: a long line of such tasks needs a
/// deep stack.
///
/// A guard that is leaked, by [`core::mem::forget`] or in a cycle, stays inside for ever. A guard
/// says nothing about the thread that holds it, and may be sent to another.
///
/// # For a whole program
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
    /// The most that were inside.
    pub(super) peak: AtomicU64,
    pub(super) line: Mutex<WaitQueue>,
}

/// The limit, if there can be such a one.
pub(crate) fn checked(limit: u64) -> Result<u64, ConfigError> {
    match limit {
        0 => Err(ConfigError::ZeroConcurrency),
        1..=MAX_CONCURRENCY => Ok(limit),
        _ => Err(ConfigError::ConcurrencyTooLarge {
            limit,
            max: MAX_CONCURRENCY,
        }),
    }
}

impl Concurrency {
    /// The largest limit of a [`Concurrency`](crate::Concurrency), and so the largest weight.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// assert!(Concurrency::new(Concurrency::MAX_LIMIT).is_ok());
    /// let error = Concurrency::new(Concurrency::MAX_LIMIT + 1).unwrap_err();
    /// assert_eq!(error.to_string(), "limit is 2147483648, but must be from 1 to 2147483647");
    /// ```
    pub const MAX_LIMIT: u64 = MAX_CONCURRENCY;

    /// A limiter that lets in at most `limit` at once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or above [`MAX_LIMIT`](Self::MAX_LIMIT).
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// let error = Concurrency::new(0).unwrap_err();
    /// assert_eq!(error.field(), "limit");
    /// assert_eq!(error.to_string(), "limit is 0, but must be at least 1");
    /// ```
    pub fn new(limit: u64) -> Result<Self, ConfigError> {
        checked(limit).map(|limit| Self {
            word: AtomicU64::new(Occupancy::empty(limit).0),
            peak: AtomicU64::new(0),
            line: Mutex::new(WaitQueue::default()),
        })
    }

    /// Enters, if there is room and no caller waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is no room, or a caller waits.
    #[inline]
    pub fn try_enter(&self) -> Result<ConcurrencyGuard<&Self>, Denied> {
        self.try_enter_n(1)
    }

    /// Enters with a weight of `n`, all or nothing. A weight of 0 takes no room and changes
    /// nothing: it only asks whether a caller waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not as much room, or a caller waits; [`Denied::Never`] if `n`
    /// is above the limit.
    ///
    /// ```
    /// use tollgate::{Concurrency, Denied};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
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
        self.take(n, false).map(|()| ConcurrencyGuard::new(self, n))
    }

    /// As [`try_enter_n`](Self::try_enter_n), with a guard that keeps the limiter alive and can go
    /// anywhere.
    ///
    /// # Errors
    ///
    /// As there.
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
        self.take(n, false)
            .map(|()| ConcurrencyGuard::new(Arc::clone(self), n))
    }

    /// Enters with a weight of `n` if there is room, **passing all waiters**. A caller that uses
    /// it often can starve them.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not as much room; [`Denied::Never`] if `n` is above the limit.
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
        self.take(n, true).map(|()| ConcurrencyGuard::new(self, n))
    }

    /// Enters as soon as there is room and it is the caller's turn: `limiter.enter().await`, or
    /// `limiter.enter().wait()` in a thread.
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

    /// As [`enter`](Self::enter), with a weight of `n`. A weight of 0 takes no room, and waits for
    /// its turn.
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

    /// As [`enter_n`](Self::enter_n), with a guard that keeps the limiter alive and can go
    /// anywhere; for tasks that a runtime spawns.
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

    /// Sets the limit, and returns the one before. No caller is put out: where more are inside than
    /// a lowered limit allows, none enters until enough have left. A raised limit lets waiters in
    /// at once. A waiter that weighs more than the lowered limit can never enter, and gets
    /// [`Denied::Never`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or above [`MAX_LIMIT`](Self::MAX_LIMIT); it stays as it is
    /// then.
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
    pub fn set_limit(&self, limit: u64) -> Result<u64, ConfigError> {
        checked(limit).map(|limit| self.change_limit(limit))
    }

    /// The limit.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.load().limit()
    }

    /// How much is inside, by weight.
    #[inline]
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.load().inside()
    }

    /// How many callers wait, each counted as one.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.standing()
    }

    /// The most that was inside at any moment since it was made, or since
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
        // ORDERING: Relaxed. It publishes nothing. A caller that has just entered may not have
        // noted it yet, and is inside.
        self.inside().max(self.peak.load(Relaxed))
    }

    /// Begins a new peak with what is inside now, and returns the one before. (A caller that enters
    /// at that moment may count in the new peak, although another has left.)
    pub fn reset_peak(&self) -> u64 {
        // ORDERING: Relaxed. What follows publishes it.
        let was = self.peak.swap(0, Relaxed);
        // ORDERING: Release. It publishes that the peak is 0 to a caller that enters after it,
        // which then does not take an older peak for one that is high enough; a caller that entered
        // before it, and is still inside, is in what it returns. Model:
        // concurrency_word::no_peak_is_missed
        let inside = Occupancy(self.word.fetch_add(0, Release)).inside();
        self.peak.fetch_max(inside, Relaxed);
        was.max(inside)
    }
}

/// The word.
impl Concurrency {
    #[inline]
    pub(super) fn load(&self) -> Occupancy {
        // ORDERING: Relaxed. It is looked at, or an exchange finds it out.
        Occupancy(self.word.load(Relaxed))
    }

    #[inline]
    pub(super) fn exchange(&self, word: Occupancy, next: Occupancy) -> Result<(), Occupancy> {
        // ORDERING: Acquire. A caller that enters sees what those did that made the room: it pairs
        // with the release of `leave`, also through others' exchanges and, for a caller that
        // waited, through the lock. Model: concurrency_word::who_enters_sees_what_was_done_inside
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
        // ORDERING: Relaxed. By coherence the peak only grows, but for a reset, and a caller that
        // enters after one has seen it.
        if self.peak.load(Relaxed) < inside {
            self.peak.fetch_max(inside, Relaxed);
        }
    }

    /// Enters if there is room and, unless one goes ahead, no caller waits.
    #[inline]
    pub(super) fn take(&self, n: u64, ahead: bool) -> Result<(), Denied> {
        match self.take_once(n, ahead) {
            Some(outcome) => outcome,
            None => self.take_later(n, ahead),
        }
    }

    /// One attempt; `None` if another thread disturbed it.
    #[inline(always)]
    fn take_once(&self, n: u64, ahead: bool) -> Option<Result<(), Denied>> {
        let word = self.load();
        let is_my_turn = ahead || !word.somebody_waits() || inject_fault!(Overtakes);
        if !(is_my_turn && word.has_room(n)) {
            return Some(Err(word.denied(n)));
        }
        if n == 0 {
            return Some(Ok(()));
        }
        self.exchange(word, word.with_inside(n)).ok().map(Ok)
    }

    /// The attempts after the first one.
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

    /// Takes `n` out of what is inside, which are there, and lets others in if a caller waits.
    #[inline]
    pub(super) fn leave(&self, n: u64) {
        if n == 0 {
            return;
        }
        // ORDERING: Release. It publishes what was done inside to those who enter after it: see
        // `exchange`. Model: concurrency_word::who_enters_sees_what_was_done_inside
        let word = Occupancy(self.word.fetch_sub(n, Release));
        if word.somebody_waits() && !inject_fault!(LeavesSilently) {
            self.let_in();
        }
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
