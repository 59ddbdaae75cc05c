//! How much runs at once: [`Concurrency`].
//!
//! `word.rs` draws the word that decides, `line.rs` has those who wait, `enter.rs` the two ways to
//! wait and `inside.rs` the guard.

mod enter;
mod inside;
mod line;
mod word;

use core::fmt;
use std::sync::Arc;

use self::line::Line;
use self::word::Word;
use crate::outcome::Denied;
use crate::primitive::Ordering::{Acquire, Relaxed, Release};
use crate::primitive::{AtomicU64, Mutex, mistake};
use crate::quota::ConfigError;

pub use self::enter::Enter;
pub use self::inside::Inside;
pub use self::word::MAX_CONCURRENCY;

/// At most so many at once.
///
/// Who enters gets a guard, [`Inside`], and leaves when it is dropped: at the end of its scope, in
/// a panic, or with the future that held it. A guard may weigh more than one. There is no clock in
/// it: whoever is denied is denied until others leave, and that is [`Denied::Busy`].
///
/// ```
/// use tollgate::{Concurrency, Denied};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Concurrency::new(3)?;
/// let one = gate.try_enter()?;
/// let two = gate.try_enter_n(2)?;
/// assert!(matches!(gate.try_enter(), Err(Denied::Busy { .. })));
/// drop(two);
/// assert_eq!((gate.inside(), gate.peak(), gate.limit()), (1, 3, 3));
/// # drop(one);
/// # Ok(())
/// # }
/// ```
///
/// # Waiting
///
/// [`enter`](Self::enter) waits: `gate.enter().await` on any runtime, `gate.enter().wait()` in a
/// thread, and both stand in one line. Waiters come in **in the order in which they began to
/// wait**, whatever they weigh: one that needs much is not passed by those behind it that need
/// little, and `try_enter` passes nobody. (To pass them all, say so:
/// [`try_enter_ahead`](Self::try_enter_ahead).) Room is handed to the first in line in the moment
/// in which it is made, before he wakes. A waiter that gives up leaves the line, and what was
/// handed to him an instant before goes to the next.
///
/// As long as nobody waits there is no lock and no allocation: entering is one exchange of one
/// word, which says that there is room and that nobody waits, and leaving is one more. Where
/// somebody waits the line is behind a lock that is held for a few steps and never while anything
/// runs that is not of this crate.
///
/// # What it is not
///
/// Waiters are woken where somebody leaves. A task that is not only woken but run there, and leaves
/// in turn, lets the next one in from within: a long line of such tasks needs a deep stack.
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
///     LazyLock::new(|| Concurrency::new(8).expect("8 is from 1 to MAX_CONCURRENCY"));
/// assert!(UPLOADS.try_enter().is_ok());
/// assert_eq!(UPLOADS.inside(), 0);
/// ```
pub struct Concurrency {
    word: AtomicU64,
    /// The most that were inside.
    peak: AtomicU64,
    line: Mutex<Line>,
}

fn checked(limit: u64) -> Result<u64, ConfigError> {
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
    /// At most `limit` at once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or above [`MAX_CONCURRENCY`].
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
            word: AtomicU64::new(Word::empty(limit).0),
            peak: AtomicU64::new(0),
            line: Mutex::new(Line::default()),
        })
    }

    /// Enters, if there is room and nobody waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is none, or somebody does.
    #[inline]
    pub fn try_enter(&self) -> Result<Inside<&Self>, Denied> {
        self.try_enter_n(1)
    }

    /// Enters with a weight of `n`, all or nothing. A weight of 0 takes no room and changes
    /// nothing: it only asks whether somebody waits.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not as much room, or somebody waits; [`Denied::Never`] if `n`
    /// is above the limit.
    ///
    /// ```
    /// use tollgate::{Concurrency, Denied};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let gate = Concurrency::new(10)?;
    /// let guard = gate.try_enter_n(7).unwrap();
    /// assert_eq!(guard.n(), 7);
    /// assert!(matches!(gate.try_enter_n(4), Err(Denied::Busy { requested: 4, .. })));
    /// assert!(matches!(gate.try_enter_n(11), Err(Denied::Never { limit: 10, .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_n(&self, n: u64) -> Result<Inside<&Self>, Denied> {
        self.take(n, false).map(|()| Inside::new(self, n))
    }

    /// As [`try_enter_n`](Self::try_enter_n), with a guard that keeps the gate alive and can go
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
    /// let gate = Arc::new(Concurrency::new(2)?);
    /// let guard = gate.try_enter_owned(1)?;
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert_eq!(gate.inside(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_owned(self: &Arc<Self>, n: u64) -> Result<Inside<Arc<Self>>, Denied> {
        self.take(n, false)
            .map(|()| Inside::new(Arc::clone(self), n))
    }

    /// Enters with a weight of `n` if there is room, **passing all who wait**. Who uses it often
    /// can starve them.
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
    /// let gate = Concurrency::new(3)?;
    /// let first = gate.try_enter_n(2)?;
    /// let mut large = pin!(gate.enter_n(3));
    /// assert!(large.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert!(gate.try_enter().is_err()); // there is room, but somebody waits
    /// let urgent = gate.try_enter_ahead(1)?;
    /// assert_eq!(gate.inside(), 3);
    /// # drop((first, urgent));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_ahead(&self, n: u64) -> Result<Inside<&Self>, Denied> {
        self.take(n, true).map(|()| Inside::new(self, n))
    }

    /// Enters as soon as there is room and it is one's turn: `gate.enter().await`, or
    /// `gate.enter().wait()` in a thread.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Concurrency::new(1)?;
    /// let guard = gate.enter().wait()?;
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn enter(&self) -> Enter<&Self> {
        self.enter_n(1)
    }

    /// As [`enter`](Self::enter), with a weight of `n`. A weight of 0 takes no room, and waits for
    /// its turn.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Concurrency::new(5)?;
    /// let guard = gate.enter_n(4).wait()?;
    /// assert_eq!(guard.n(), 4);
    /// assert!(gate.enter_n(6).wait().is_err_and(|denied| denied.is_permanent()));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn enter_n(&self, n: u64) -> Enter<&Self> {
        Enter::new(self, n)
    }

    /// As [`enter_n`](Self::enter_n), with a guard that keeps the gate alive and can go anywhere;
    /// for tasks that a runtime spawns.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Concurrency, Denied};
    ///
    /// async fn upload(gate: Arc<Concurrency>) -> Result<(), Denied> {
    ///     let guard = gate.enter_owned(1).await?;
    ///     // ...
    ///     drop(guard);
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn enter_owned(self: &Arc<Self>, n: u64) -> Enter<Arc<Self>> {
        Enter::new(Arc::clone(self), n)
    }

    /// Sets the limit, and returns the one before. Nobody is put out: where more are inside than a
    /// lowered limit allows, nobody enters until enough have left. A raised limit lets waiters in
    /// at once. Who waits for more than a lowered limit can't ever enter, and is told so:
    /// [`Denied::Never`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or above [`MAX_CONCURRENCY`]; it stays as it is then.
    ///
    /// ```
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Concurrency::new(4)?;
    /// let (one, two) = (gate.try_enter_n(2)?, gate.try_enter_n(2)?);
    /// assert_eq!(gate.set_limit(3)?, 4);
    /// drop(one);
    /// assert_eq!((gate.inside(), gate.limit()), (2, 3));
    /// assert!(gate.try_enter().is_ok());
    /// assert!(gate.try_enter_n(2).is_err());
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

    /// How many wait, each counted as one.
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
    /// let gate = Concurrency::new(10)?;
    /// drop(gate.try_enter_n(8)?);
    /// let guard = gate.try_enter_n(3)?;
    /// assert_eq!((gate.inside(), gate.peak()), (3, 8));
    /// assert_eq!(gate.reset_peak(), 8);
    /// assert_eq!(gate.peak(), 3);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn peak(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing. Who has just entered may not have noted it yet,
        // and is inside.
        self.inside().max(self.peak.load(Relaxed))
    }

    /// Begins a new peak with what is inside now, and returns the one before. (Who is entering in
    /// that moment may be counted in the new one, though somebody left meanwhile.)
    pub fn reset_peak(&self) -> u64 {
        // ORDERING: Relaxed. What follows publishes it.
        let was = self.peak.swap(0, Relaxed);
        // ORDERING: Release. It publishes that the peak is 0 to whoever enters after it, who then
        // does not take an older peak for one that is high enough; who entered before it, and is
        // still inside, is in what it returns. Model: concurrency_word::no_peak_is_missed
        let inside = Word(self.word.fetch_add(0, Release)).inside();
        self.peak.fetch_max(inside, Relaxed);
        was.max(inside)
    }
}

/// The word.
impl Concurrency {
    #[inline]
    fn load(&self) -> Word {
        // ORDERING: Relaxed. It is looked at, or an exchange finds it out.
        Word(self.word.load(Relaxed))
    }

    #[inline]
    fn exchange(&self, word: Word, next: Word) -> Result<(), Word> {
        // ORDERING: Acquire. Who enters sees what those did who have made the room: it pairs with
        // the release of `leave`, also through others' exchanges and, for who waited, through the
        // lock. Model: concurrency_word::who_enters_sees_what_was_done_inside
        let exchanged = self
            .word
            .compare_exchange_weak(word.0, next.0, Acquire, Relaxed);
        match exchanged {
            Ok(_) => {
                self.note_peak(next.inside());
                Ok(())
            }
            Err(seen) => Err(Word(seen)),
        }
    }

    #[inline]
    fn note_peak(&self, inside: u64) {
        // ORDERING: Relaxed. By coherence the peak only grows, but for a reset, and who enters
        // after one has seen it.
        if self.peak.load(Relaxed) < inside {
            self.peak.fetch_max(inside, Relaxed);
        }
    }

    /// Enters if there is room and, unless one goes ahead, nobody waits.
    #[inline]
    fn take(&self, n: u64, ahead: bool) -> Result<(), Denied> {
        let mut word = self.load();
        loop {
            let is_my_turn = ahead || !word.somebody_waits() || mistake!(Overtakes);
            if !(is_my_turn && word.has_room(n)) {
                return Err(word.denied(n));
            }
            if n == 0 {
                return Ok(());
            }
            match self.exchange(word, word.with_inside(n)) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
    }

    /// Takes `n` out of what is inside, which are there, and lets others in if somebody waits.
    #[inline]
    fn leave(&self, n: u64) {
        if n == 0 {
            return;
        }
        // ORDERING: Release. It publishes what was done inside to those who enter after it: see
        // `exchange`. Model: concurrency_word::who_enters_sees_what_was_done_inside
        let word = Word(self.word.fetch_sub(n, Release));
        if word.somebody_waits() && !mistake!(LeavesSilently) {
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
