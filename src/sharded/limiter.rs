use core::num::NonZeroU64;

use super::hint::Hint;
use super::shard::MAX_SHARDS;
use super::view::ShardedView;
use crate::algorithm::TokenBucket;
use core::fmt;

use crossbeam_utils::CachePadded;

use super::shard::Shard;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Split;
use crate::clock::{Clock, SystemClock, Tick};
use crate::outcome::{Denied, Granted};
use crate::quota::{ConfigError, Quota};
use crate::rate_limiter::RateLimiter;
use crate::rate_limiter::forms::{clock_forms, settle_form, traits_by_views};
use crate::rate_limiter::verbs::{debt_verbs, forecast_verbs, gauge_verbs, give_back_verbs};
use crate::thread_index::ThreadIndex;

/// A rate limiter for many cores: the limit is kept in shards, each in a cache line of its own, and
/// each thread uses its own shard first. It has the verbs of a [`Limiter`](crate::Limiter) that do
/// not wait; [`is_idle`](ShardedView::is_idle) is on its [view](Self::at).
///
/// ```
/// use tollgate::{Quota, Sharded};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Sharded::token_bucket(Quota::per_minute(1000))?;
/// let admitted = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4)
///         .map(|_| scope.spawn(|| (0..300).filter(|_| limiter.try_acquire().is_ok()).count()))
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
/// **The bound is the algorithm's own**, exactly, under any number of threads: the shards' bounds
/// add up to it. Each shard is exact in the same way as the whole would be.
///
/// **Nothing is stranded.** Each shard has an equal share of burst and rate, a fraction of a permit
/// and all. A request takes fractions of several shards together where no shard has enough, so at
/// one tick any thread can take every permit. (At rates that are not exact the last permit may come
/// a nanosecond later for each shard.) The shards have less than one word would have only in two
/// ways:
///
/// - A shard that is full takes in nothing while another is not full. So shards are kept level: a
///   request that would leave its own shard less than seven eighths full looks at all shards, and
///   takes from one or from several of those that have most. For buckets and aligned intervals one
///   look serves several requests, if a shard holds at least 32 permits and the fullest is at most
///   31/32 full: until the thread's shard has a 32nd less than the fullest had.
/// - What does not make a whole fraction waits for the rest: of a sliding window less than a 32nd
///   of a permit in all shards together, or less than a permit if its limit takes more than an
///   eighth of what its word can count; elsewhere nothing to speak of.
///
/// With the number of shards that [`new`](Self::new) chooses, 99 % of what one word serves is
/// served where each request takes one permit (97 % of greedy intervals of less than 8), and 95 %
/// where it takes half the burst: at loads from 0.5 to 1.5, from all shards in turn and from one.
/// `cargo test -p tollgate --test limits service` shows it, and docs/PAST_ONE_WORD.md what other
/// numbers of shards cost.
///
/// # Requests that take from several shards
///
/// A request that needs several shards takes from one after the other, all requests in the same
/// order. If others are faster, so that it can't have all, it rolls back what it took, and while it
/// is under way others may be denied for that.
///
/// It returns what it took to a shard only if no other thread has changed that shard meanwhile.
/// Otherwise returning the permits could count them twice, so they stay consumed: less than it
/// asked for, and they come again with time, like granted ones. That happens to requests for
/// several permits; to requests for one only where three or more threads take the last permits of
/// shards of less than eight permits each. A shard takes nothing back while another thread returns
/// permits to it: an `undo` or a `refund` at that moment gives them to the other shards, as far as
/// those are not full.
///
/// # Denials
///
/// A thread that finds no permit in any shard notes when the next one comes. Until then requests
/// for one permit are denied without a look at the shards, which takes as long as with one word.
/// What gives permits back ends that. This is the one place where a denial writes something: once
/// for each permit to come, and not once for each denial. An algorithm of your own takes part if it
/// [never falls](Split::never_falls).
///
/// # What differs from a `Limiter`
///
/// - [`Granted::remaining`](crate::Granted::remaining) and
///   [`reset_after`](crate::Granted::reset_after) tell of the shards that the permits came from.
///   [`available`](Self::available) looks at all shards, one after the other.
/// - `charge` takes what there is, and spreads the debt over all shards alike, as `refund` spreads
///   what it gives back. Its debt is the sum of what the shards owe. A shard grants when it owes
///   nothing itself. (After an `undo` in debt the shard that granted is the first that grants
///   again.) A sliding window of fractions counts debts of up to three times its limit.
/// - `undo` gives back to the shard that granted, and to the others what that shard can't take
///   since other permits came back to it. Of a grant from several shards it gives back, to all of
///   them, as many permits as would come back to one word that nobody else has used.
/// - `reset` reaches one shard after the other, and leaves out one to which somebody is rolling
///   back at that very moment.
pub struct Sharded<A, C = SystemClock> {
    pub(super) shards: Box<[CachePadded<Shard<A>>]>,
    hint: CachePadded<Hint>,
    pub(super) thread_index: ThreadIndex,
    pub(super) whole: A,
    pub(super) clock: C,
}

impl Sharded<TokenBucket> {
    /// The most shards that a limiter can have.
    pub const MAX_SHARDS: usize = MAX_SHARDS;
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
    /// use tollgate::clock::NoClock;
    /// use tollgate::{ConfigError, Quota, Sharded, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let bucket = TokenBucket::new(Quota::per_second(3))?;
    /// let limiter = Sharded::starting_at(bucket, 3, NoClock, Tick::ZERO)?;
    /// assert!(limiter.try_acquire_n_at(3, Tick::ZERO).is_ok());
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
        let Some(shards) = split(&algorithm, shards, tick) else {
            let fits = |shards: &usize| split(&algorithm, *shards, tick).is_some();
            let max = (1..shards.min(MAX_SHARDS + 1)).rev().find(fits);
            let max = max.unwrap_or(0);
            return Err(ConfigError::TooManyShards { shards, max });
        };
        Ok(Self {
            thread_index: ThreadIndex::new(shards.len()),
            shards,
            hint: CachePadded::new(Hint::new()),
            whole: algorithm,
            clock,
        })
    }

    /// How many shards it has.
    pub fn shards(&self) -> usize {
        self.shards.len()
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
    pub fn at(&self, now: Tick) -> ShardedView<'_, A> {
        self.view(self.thread_index.of_this_thread(), now)
    }

    #[inline(always)]
    fn view(&self, first: usize, now: Tick) -> ShardedView<'_, A> {
        ShardedView {
            shards: &self.shards,
            hint: &self.hint,
            whole: &self.whole,
            first,
            now,
        }
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
            Some(outcome) => outcome,
            None => self.acquire_at(n, now),
        }
    }

    /// The hint, and the own shard in one turn. Nearly every decision is done then; all else is one
    /// call out of line, in tail position.
    #[inline(always)]
    fn try_once(&self, n: u64, now: Tick) -> Option<Result<Granted, Denied>> {
        if let Some(due) = self.hint.known() {
            let is_denied = n == 1 && now < due;
            return is_denied.then(|| Err(Denied::later(1, due.saturating_since(now))));
        }
        let first = self.thread_index.known()?;
        self.view(first, now).try_once(n).map(Ok)
    }

    #[cold]
    #[inline(never)]
    fn acquire_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).acquire(n)
    }

    /// Forgets everything, one shard after the other: they are fresh and full again. It allows one
    /// burst more.
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }
}

/// The shards, each started at this tick.
fn split<A: Split>(
    algorithm: &A,
    shards: usize,
    tick: Tick,
) -> Option<Box<[CachePadded<Shard<A>>]>> {
    let of = u64::try_from(shards).ok()?;
    if shards > MAX_SHARDS || of > algorithm.most_shards() {
        return None;
    }
    let (shard, permit) = algorithm.per_shard(of)?;
    let permit = NonZeroU64::new(permit)?;
    let shard = |_| CachePadded::new(Shard::new(shard.clone(), permit, of, tick));
    Some((0..of).map(shard).collect())
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
        // What small shards lose is measured by the tests of service.
        let bears = match algorithm.most_shards() {
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
    /// let limiter = Sharded::with_shards(bucket, 16, ManualClock::new())?;
    /// assert_eq!(limiter.shards(), 16);
    /// assert_eq!(limiter.available(), 100);
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
    /// [`Denied`] if no shard had it: then nothing was taken.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits, or none, from one shard or from several. `n` = 0 succeeds exactly when
    /// not all shards are in debt, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there. If others came between while it took from several
    /// shards, it may be denied although there would have been enough without them, and be told to
    /// come back at once.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        let now = self.now();
        match self.try_once(n, now) {
            Some(outcome) => outcome,
            None => self.acquire_at(n, now),
        }
    }

    /// Takes as many of `n` permits as there are, which may be none.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.at(self.now()).take_up_to(n)
    }

    /// How many permits there are in all shards. Takes none.
    pub fn available(&self) -> u64 {
        self.at(self.now()).available()
    }
}

forecast_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
gauge_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
give_back_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
give_back_verbs!([traits_by_views] {[+ Split] [] Sharded<A, C>});
debt_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
debt_verbs!([traits_by_views] {[+ Split] [] Sharded<A, C>});
settle_form!([A: Split + crate::algorithm::Debt, C: Clock] Sharded<A, C>);

impl<A: Split + ChangeQuota, C> Sharded<A, C> {
    /// The quota that the algorithm was made from.
    pub fn quota(&self) -> Quota {
        self.whole.quota()
    }
}

impl<A: fmt::Debug + Split, C: fmt::Debug> fmt::Debug for Sharded<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.shards.iter().map(|shard| shard.cell());
        f.debug_struct("Sharded")
            .field("algorithm", &self.whole)
            .field("cells", &words.collect::<Vec<_>>())
            .field("clock", &self.clock)
            .finish()
    }
}

impl<A: Split, C> RateLimiter for Sharded<A, C> {
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
