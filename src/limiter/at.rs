use core::convert::Infallible;
use core::fmt;
use core::time::Duration;

use crate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Reserve};
use crate::cell::{self, Cell, Place, Starter, Step, UNSTARTED};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

/// A view of a limiter at one tick: the one place where the verbs are written.
///
/// [`Limiter::at`](crate::Limiter::at) makes one. Whoever keeps words elsewhere makes them from an
/// algorithm and a [`Place`]:
///
/// ```
/// use tollgate::cell::Cell;
/// use tollgate::{At, Quota, Tick, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let bucket = TokenBucket::new(Quota::per_second(10))?;
/// let words = [Cell::new(0), Cell::new(0)]; // zeroed memory is a set of full buckets
/// let second = At::new(&bucket, &words[1], Tick::from_nanos(5));
/// assert!(second.try_acquire_n(10).is_ok());
/// assert_eq!(second.available(), 0);
/// # Ok(())
/// # }
/// ```
///
/// A place that holds [`UNSTARTED`] gets the algorithm's initial word from the first verb.
pub struct At<'a, A, P = Cell> {
    algorithm: &'a A,
    place: &'a P,
    now: Tick,
}

impl<'a, A: Algorithm, P: Place> At<'a, A, P> {
    /// The view of the word at `place` that `algorithm` has at `now`.
    #[inline]
    pub const fn new(algorithm: &'a A, place: &'a P, now: Tick) -> Self {
        Self {
            algorithm,
            place,
            now,
        }
    }

    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// [`Limiter::start`](crate::Limiter::start) at this tick.
    pub fn start(&self) {
        cell::start(self.place, self.starter());
    }

    /// [`Limiter::try_acquire`](crate::Limiter::try_acquire) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit was not there.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// [`Limiter::try_acquire_n`](crate::Limiter::try_acquire_n) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits were not all there.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        let (algorithm, now) = (self.algorithm, self.now);
        self.update(Acquire { algorithm, now, n })
    }

    /// The same in one turn, if at least so much room remains: `None` may mean anything but that it
    /// was granted.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn try_once(&self, n: u64, keep: u64) -> Option<Granted> {
        let (algorithm, now) = (self.algorithm, self.now);
        let step = Acquire { algorithm, now, n };
        cell::try_once(self.place, step, |granted| granted.room() >= keep)
    }

    /// [`Limiter::take_up_to`](crate::Limiter::take_up_to) at this tick.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        let (algorithm, now) = (self.algorithm, self.now);
        self.change(move |word| algorithm.take_up_to(word, now, n))
    }

    /// [`Limiter::available`](crate::Limiter::available) at this tick.
    #[inline]
    pub fn available(&self) -> u64 {
        self.algorithm.available(self.word(), self.now)
    }

    /// Whether the limiter can no longer be told from a fresh one at this tick.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.algorithm.is_idle(self.word(), self.now)
    }

    /// [`Limiter::reset`](crate::Limiter::reset).
    #[inline]
    pub fn reset(&self) {
        self.place.replace(0);
    }

    /// The word, started.
    #[inline]
    fn word(&self) -> u64 {
        match self.place.load() {
            UNSTARTED => cell::start(self.place, self.starter()),
            word => word,
        }
    }

    #[inline(always)]
    fn starter(&self) -> First<'a, A> {
        First(self.algorithm, self.now)
    }

    /// Runs a step.
    #[inline(always)]
    fn update<S: Step>(&self, step: S) -> Result<S::Answer, S::Refusal> {
        cell::update(self.place, self.starter(), step)
    }

    /// Runs a step that can't refuse.
    #[inline(always)]
    pub(crate) fn change<T>(&self, step: impl FnMut(u64) -> (u64, T)) -> T {
        let Ok(answer) = self.update(Change(step));
        answer
    }
}

/// Starts a place with the algorithm's initial word.
struct First<'a, A>(&'a A, Tick);

impl<A> Clone for First<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for First<'_, A> {}

impl<A: Algorithm> Starter for First<'_, A> {
    fn first_word(self) -> u64 {
        self.0.initial_word(self.1)
    }
}

/// The step of a decision.
struct Acquire<'a, A> {
    algorithm: &'a A,
    now: Tick,
    n: u64,
}

impl<A: Algorithm> Step for Acquire<'_, A> {
    type Answer = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, word: u64) -> Result<(u64, Granted), Denied> {
        self.algorithm.step(word, self.now, self.n)
    }

    #[inline(always)]
    fn run_short(&mut self, word: u64) -> Option<Result<(u64, Granted), Denied>> {
        self.algorithm.short_step(word, self.now, self.n)
    }

    /// Known before the step is run, and for one permit when it is compiled.
    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }
}

/// A step that can't refuse.
struct Change<F>(F);

impl<T, F: FnMut(u64) -> (u64, T)> Step for Change<F> {
    type Answer = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, word: u64) -> Result<(u64, T), Infallible> {
        Ok((self.0)(word))
    }
}

impl<A: Forecast, P: Place> At<'_, A, P> {
    /// [`Limiter::time_until`](crate::Limiter::time_until) at this tick.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        let due = self.algorithm.due(self.word(), self.now, n)?;
        Some(due.saturating_since(self.now))
    }
}

/// The step of a reservation.
struct Ahead<'a, A> {
    algorithm: &'a A,
    now: Tick,
    n: u64,
    latest: Tick,
}

impl<A: Reserve> Step for Ahead<'_, A> {
    type Answer = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, word: u64) -> Result<(u64, Granted), Denied> {
        self.algorithm.reserve(word, self.now, self.n, self.latest)
    }

    #[inline(always)]
    fn run_short(&mut self, word: u64) -> Option<Result<(u64, Granted), Denied>> {
        let reserved = self.algorithm.reserve_now(word, self.now, self.n);
        reserved.map(Ok)
    }

    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }
}

impl<A: Reserve, P: Place> At<'_, A, P> {
    /// Takes `n` permits if they are there, or will be at `latest` or sooner: [`Granted::due`] says
    /// when. `Limiter::reserve` and all waiting verbs are built on it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
    ///
    /// ```
    /// use tollgate::{Limiter, NoClock, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Limiter::unstarted(TokenBucket::new(Quota::per_second(1))?, NoClock);
    /// let view = gate.at(Tick::ZERO);
    /// let (soon, late) = (Tick::from_nanos(999_999_999), Tick::from_nanos(1_000_000_000));
    /// assert_eq!(view.reserve_until(1, soon)?.due(), Tick::ZERO);
    /// assert!(view.reserve_until(1, soon).is_err());
    /// assert_eq!(view.reserve_until(1, late)?.due(), late);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn reserve_until(&self, n: u64, latest: Tick) -> Result<Granted, Denied> {
        let (algorithm, now) = (self.algorithm, self.now);
        self.update(Ahead {
            algorithm,
            now,
            n,
            latest,
        })
    }

    /// Takes `n` permits that are there, in one turn: `None` may mean anything but that they were
    /// taken.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn reserve_once(&self, n: u64) -> Option<Granted> {
        let (algorithm, now, latest) = (self.algorithm, self.now, self.now);
        let step = Ahead {
            algorithm,
            now,
            n,
            latest,
        };
        cell::try_once(self.place, step, |_| true)
    }

    /// How many permits were taken that are not due yet, a started one counted whole. Those of
    /// cancelled reservations that were lost are among them.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.algorithm.waiting(self.word(), self.now)
    }

    /// Gives back as much of the last `n` permits of a reservation as can be: what is kept of it,
    /// which may be due sooner now, and how many came back.
    #[inline]
    pub fn cancel(&self, granted: Granted, n: u64) -> (Granted, u64) {
        let (algorithm, now) = (self.algorithm, self.now);
        self.change(move |word| {
            let (next, kept, back) = algorithm.cancel(word, now, &granted, n);
            (next, (kept, back))
        })
    }
}

impl<A: Gauge, P: Place> At<'_, A, P> {
    /// [`Limiter::level`](crate::Limiter::level) at this tick.
    #[inline]
    pub fn level(&self) -> Level {
        self.algorithm.level(self.word(), self.now)
    }
}

impl<A: GiveBack, P: Place> At<'_, A, P> {
    /// [`Limiter::undo`](crate::Limiter::undo) at this tick.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        let (algorithm, now) = (self.algorithm, self.now);
        self.change(move |word| algorithm.undo(word, now, &granted))
    }

    /// [`Limiter::refund`](crate::Limiter::refund) at this tick.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        let (algorithm, now) = (self.algorithm, self.now);
        self.change(move |word| algorithm.refund(word, now, n))
    }
}

impl<A: Debt, P: Place> At<'_, A, P> {
    /// [`Limiter::charge`](crate::Limiter::charge) at this tick.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        let (algorithm, now) = (self.algorithm, self.now);
        self.change(move |word| algorithm.charge(word, now, n))
    }
}

impl<A, P> Clone for At<'_, A, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, P> Copy for At<'_, A, P> {}

impl<A: fmt::Debug, P: fmt::Debug> fmt::Debug for At<'_, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("At")
            .field("algorithm", &self.algorithm)
            .field("place", &self.place)
            .field("now", &self.now)
            .finish()
    }
}
