//! A limit in several words, one for each core.
//!
//! # Layout
//!
//! ```text
//!  one cache line, or as few as it takes     the next
//! ┌───────────────────────────────────────┬───────────────────────────────────────┬──
//! │ word, and the part's own parameters   │ word, and the part's own parameters   │ ...
//! └───────────────────────────────────────┴───────────────────────────────────────┴──
//! ```
//!
//! Each word runs the algorithm on fractions of a permit, so that all parts are equal. There is no
//! word that all share: the parts' bounds add up to the whole's, whatever the threads do.
//!
//! A decision takes from the thread's own part if that stays half full; else it looks at all parts
//! and takes from one or from several, so that they stay level ([`several`]).

mod at;
mod part;
mod several;

use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

pub use at::ShardedAt;

use super::Homes;
use crate::algorithm::Debt;
use crate::algorithm::Gauge;
use crate::algorithm::Level;
use crate::algorithm::Requota;
use crate::algorithm::Split;
use crate::clock::{Clock, SystemClock, Tick};
use crate::gate::{DebtGate, Gate, GiveBackGate};
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};
use part::Part;

/// The most shards that a [`Sharded`] limiter can have.
pub const MAX_SHARDS: usize = 256;

/// A rate limiter for many cores: the limit is kept in parts, each in a cache line of its own, and
/// each thread uses its own part first. Its verbs are those of a [`Limiter`](crate::Limiter).
///
/// ```
/// use tollgate::{Quota, Sharded, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let gate = Sharded::new(TokenBucket::new(Quota::per_minute(1000))?)?;
/// let admitted = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4)
///         .map(|_| scope.spawn(|| (0..300).filter(|_| gate.try_acquire().is_ok()).count()))
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
/// });
/// assert!(admitted >= 1000); // 1200 asked
/// # Ok(())
/// # }
/// ```
///
/// # What is promised
///
/// **The bound is the algorithm's own**, exactly, under any number of threads: the parts' bounds
/// add up to it. Each part is exact in the same way as the whole would be.
///
/// **Nothing is stranded.** Each part has an equal share of burst and rate, a fraction of a permit
/// and all. A request takes fractions of several parts together where no part has enough, so at one
/// tick any thread can take every permit. (At rates that are not exact the last permit may come a
/// nanosecond later for each part.) The parts have less than one word would have only in two ways:
///
/// - A part that is full takes in nothing while another is not full. So parts are kept level: a
///   request that would leave its own part less than seven eighths full looks at all parts, and
///   takes from one or from several of those that have most.
/// - What does not make a whole fraction waits for the rest: of a sliding window less than a 32nd
///   of a permit in all parts together, or less than a permit if its limit takes more than an
///   eighth of what its word can count; elsewhere nothing to speak of.
///
/// With the number of shards that [`new`](Self::new) chooses, 99 % of what one word serves is
/// served where each request takes one permit (97 % of greedy intervals of less than 8), and 95 %
/// where it takes half the burst: at loads from 0.5 to 1.5, from all shards in turn and from one.
/// `cargo test -p tollgate --test limits service` shows it, and docs/PAST_ONE_WORD.md what other
/// numbers of shards cost.
///
/// # Requests that take from several parts
///
/// A request that needs several parts takes from one after the other, all requests in the same
/// order. If others are faster, so that it can't have all, it puts back what it took, and while it
/// is under way others may be denied for that.
///
/// It returns what it took to a part only if no other thread has changed that part meanwhile.
/// Otherwise returning the permits could count them twice, so they stay consumed: less than it
/// asked for, and they come again with time, like granted ones. That happens to requests for
/// several permits; to requests for one only where three or more threads take the last permits of
/// shards of less than eight permits each. A part takes nothing back while another thread returns
/// permits to it: an `undo` or a `refund` at that moment gives them to the other parts, as far as
/// those are not full.
///
/// # What differs from a `Limiter`
///
/// - [`Granted::remaining`](crate::Granted::remaining) and
///   [`reset_after`](crate::Granted::reset_after) tell of the parts that the permits came from.
///   [`available`](Self::available) looks at all parts, one after the other.
/// - `charge` takes what there is, and spreads the debt over all parts alike, as `refund` spreads
///   what it gives back. Its debt is the sum of what the parts owe. A part grants when it owes
///   nothing itself. (After an `undo` in debt the part that granted is the first that grants
///   again.) A sliding window of fractions counts debts of up to three times its limit.
/// - `undo` gives back to the part that granted, and to the others what that part can't take since
///   other permits came back to it. Of a grant from several parts it gives back, to all of them, as
///   many permits as would come back to one word that nobody else has used.
/// - `reset` reaches one part after the other, and leaves out one to which somebody is putting back
///   at that very moment.
pub struct Sharded<A, C = SystemClock> {
    parts: Box<[CachePadded<Part<A>>]>,
    homes: Homes,
    whole: A,
    clock: C,
}

impl<A: Split> Sharded<A> {
    /// A limiter on the system's clock with as many shards as the machine has cores, but at most
    /// one for each four permits of the burst or limit, and two for less than eight: see
    /// [`shards`](Self::shards).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if not even one shard can be represented: not for the crate's own
    /// algorithms.
    pub fn new(algorithm: A) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, SystemClock)
    }
}

impl<A: Split, C> Sharded<A, C> {
    /// A limiter with so many shards that starts at this tick, on a clock that need not be one that
    /// can be read.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroShards`], or [`ConfigError::TooManyShards`] if the quota can't be split
    /// in so many.
    ///
    /// ```
    /// use tollgate::{ConfigError, NoClock, Quota, Sharded, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let bucket = TokenBucket::new(Quota::per_second(3))?;
    /// let gate = Sharded::starting_at(bucket, 3, NoClock, Tick::ZERO)?;
    /// assert!(gate.try_acquire_n_at(3, Tick::ZERO).is_ok());
    /// assert_eq!(
    ///     Sharded::starting_at(bucket, 16, NoClock, Tick::ZERO).unwrap_err(),
    ///     ConfigError::TooManyShards { shards: 16, max: 3 }
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn starting_at(
        algorithm: A,
        shards: usize,
        clock: C,
        tick: Tick,
    ) -> Result<Self, ConfigError> {
        if shards == 0 {
            return Err(ConfigError::ZeroShards);
        }
        let Some(parts) = split(&algorithm, shards, tick) else {
            let fits = |shards: &usize| split(&algorithm, *shards, tick).is_some();
            let max = (1..shards.min(MAX_SHARDS + 1)).rev().find(fits);
            let max = max.unwrap_or(0);
            return Err(ConfigError::TooManyShards { shards, max });
        };
        Ok(Self {
            homes: Homes::new(parts.len()),
            parts,
            whole: algorithm,
            clock,
        })
    }

    /// How many shards it has.
    pub fn shards(&self) -> usize {
        self.parts.len()
    }

    /// The algorithm that was split.
    pub const fn algorithm(&self) -> &A {
        &self.whole
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// A view on which every verb runs at this tick, without reading a clock.
    #[inline(always)]
    pub fn at(&self, now: Tick) -> ShardedAt<'_, A> {
        ShardedAt::new(&self.parts, &self.whole, self.homes.of_this_thread(), now)
    }

    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    pub fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(1, now)
    }

    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        match self.try_once(n, now) {
            Some(granted) => Ok(granted),
            None => self.acquire_at(n, now),
        }
    }

    /// The own part, in one turn. Nearly every decision is done then; all else is one call out of
    /// line, in tail position.
    #[inline(always)]
    fn try_once(&self, n: u64, now: Tick) -> Option<Granted> {
        let home = self.homes.known()?;
        ShardedAt::new(&self.parts, &self.whole, home, now).try_once(n)
    }

    #[cold]
    #[inline(never)]
    fn acquire_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).acquire(n)
    }

    /// Forgets everything, one part after the other: they are fresh and full again. It allows one
    /// burst more.
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }
}

/// The parts, each started at this tick.
fn split<A: Split>(
    algorithm: &A,
    shards: usize,
    tick: Tick,
) -> Option<Box<[CachePadded<Part<A>>]>> {
    let of = u64::try_from(shards).ok()?;
    if shards > MAX_SHARDS || of > algorithm.most_parts() {
        return None;
    }
    let (part, permit) = algorithm.per_part(of).filter(|(_, permit)| *permit > 0)?;
    let part = |_| CachePadded::new(Part::new(part.clone(), permit, of, tick));
    Some((0..of).map(part).collect())
}

impl<A: Split, C: Clock> Sharded<A, C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if not even one shard can be represented: not for the crate's own
    /// algorithms.
    pub fn with_clock(algorithm: A, clock: C) -> Result<Self, ConfigError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self::for_cores(algorithm, cores, clock)
    }

    /// The same for so many cores, where it is known better than by the machine how many will ask.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if not even one shard can be represented: not for the crate's own
    /// algorithms.
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Sharded, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let of_burst = |burst| TokenBucket::new(Quota::per_second(10).burst(burst));
    /// assert_eq!(Sharded::for_cores(of_burst(100)?, 8, ManualClock::new())?.shards(), 8);
    /// assert_eq!(Sharded::for_cores(of_burst(20)?, 8, ManualClock::new())?.shards(), 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_cores(algorithm: A, cores: usize, clock: C) -> Result<Self, ConfigError> {
        // What small parts lose is measured by the tests of service.
        let bears = match algorithm.most_parts() {
            ..4 => 1,
            permits => usize::try_from((permits / 4).max(2)).unwrap_or(MAX_SHARDS),
        };
        let now = clock.now();
        let fits = |shards: &usize| split(&algorithm, *shards, now).is_some();
        let most = cores.min(bears).clamp(1, MAX_SHARDS);
        let shards = (1..=most).rev().find(fits).unwrap_or(1);
        Self::starting_at(algorithm, shards, clock, now)
    }

    /// The same with so many shards.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroShards`], or [`ConfigError::TooManyShards`] if the quota can't be split
    /// in so many.
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Sharded, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let bucket = TokenBucket::new(Quota::per_second(100))?;
    /// let gate = Sharded::with_shards(bucket, 16, ManualClock::new())?;
    /// assert_eq!(gate.shards(), 16);
    /// assert_eq!(gate.available(), 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_shards(algorithm: A, shards: usize, clock: C) -> Result<Self, ConfigError> {
        let now = clock.now();
        Self::starting_at(algorithm, shards, clock, now)
    }

    /// What the limiter's clock says.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no part had it: then nothing was taken or written.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits, or none, from one part or from several. `n` = 0 succeeds exactly when not
    /// all parts are in debt, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there. If others came between while it took from several
    /// parts, it may be denied although there would have been enough without them, and be told to
    /// come back at once.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        let now = self.now();
        match self.try_once(n, now) {
            Some(granted) => Ok(granted),
            None => self.acquire_at(n, now),
        }
    }

    /// Takes as many of `n` permits as there are, which may be none.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.at(self.now()).take_up_to(n)
    }

    /// How many permits there are in all parts. Takes none.
    pub fn available(&self) -> u64 {
        self.at(self.now()).available()
    }

    /// How long until there will be `n` permits, if nobody else takes any; `None` if there never
    /// will be.
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        self.at(self.now()).time_until(n)
    }

    /// Gives back this grant, or as much of it as can be given without admitting more than was
    /// promised: see [`Limiter::undo`](crate::Limiter::undo).
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.at(self.now()).undo(granted)
    }

    /// Gives back `n` permits to all parts alike, never above a full one. Returns how many came
    /// back, a fraction of one counted whole.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.at(self.now()).refund(n)
    }
}

impl<A: Split + Debt, C: Clock> Sharded<A, C> {
    /// Takes `n` permits whether they are there or not: what there is, and the rest as a debt of
    /// all parts.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.at(self.now()).charge(n)
    }
}

impl<A: Split + Gauge, C: Clock> Sharded<A, C> {
    /// How many permits are counted in all parts.
    pub fn level(&self) -> Level {
        self.at(self.now()).level()
    }
}

impl<A: Split + Requota, C> Sharded<A, C> {
    /// The quota that the algorithm was made from.
    pub fn quota(&self) -> Quota {
        self.whole.quota()
    }
}

impl<A: fmt::Debug + Split, C: fmt::Debug> fmt::Debug for Sharded<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.parts.iter().map(|part| part.cell());
        f.debug_struct("Sharded")
            .field("cells", &words.collect::<Vec<_>>())
            .field("algorithm", &self.whole)
            .field("clock", &self.clock)
            .finish()
    }
}

impl<A: Split, C> Gate for Sharded<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire_n(n)
    }

    /// It may read the clock again: see [`Sharded`].
    #[inline]
    fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
    where
        C: Clock,
    {
        self.try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.at(now).take_up_to(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.at(now).available()
    }
}

impl<A: Split, C> GiveBackGate for Sharded<A, C> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.at(now).undo(granted)
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.at(now).refund(n)
    }
}

impl<A: Split + Debt, C> DebtGate for Sharded<A, C> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        self.at(now).charge(n)
    }
}
