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
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::quota::Quota;
use crate::thread_index::ThreadIndex;
use crate::traits::TryAcquire;
use crate::traits::forms::{clock_forms, clock_forms_by_ticks, settle_form, traits_by_views};
use crate::traits::verbs::{debt_verbs, forecast_verbs, gauge_verbs, give_back_verbs, take_verbs};

/// A rate limiter for many cores: the limit is split into shards, each in cache lines of its own,
/// and each thread uses its own shard first.
///
/// It has the methods of a [`Limiter`](crate::Limiter), except those that wait and those that save
/// and restore a snapshot. [`is_idle`](ShardedView::is_idle) is on its [view](Self::at).
///
/// ```
/// use tollgate::{Quota, Sharded};
///
/// # fn main() -> Result<(), tollgate::error::LimiterError> {
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
/// # Guarantees
///
/// **The bound is exactly the algorithm's own**, for any number of threads: it is the sum of the
/// shards' bounds. Each shard is as exact as a single word.
///
/// **Every permit can be taken by any thread.** The shards have equal shares of burst and rate,
/// down to a fraction of a permit. If no single shard has enough, a request takes fractions from
/// several. The shards grant less than a single word would only in two cases:
///
/// - A full shard can't refill, even if another shard is not full. So shards are kept level: a
///   request that would leave its own shard less than seven eighths full scans all shards, and
///   takes from one or several of the fullest. A request for more than a quarter of a shard takes
///   the same share from each. For buckets and aligned intervals, one scan serves
///   several requests: the next scan comes when the thread's shard has a 32nd less than the fullest
///   shard had. (This requires that a shard holds at least 32 permits and that the fullest is at
///   most 31/32 full.)
/// - The shards count whole fractions of a permit, and a part of a fraction can't be granted. For a
///   sliding window these parts are less than a 32nd of a permit in all shards together, or less
///   than a permit if the limit takes more than an eighth of the range that its word can count. For
///   the other algorithms they are negligible.
///
/// With the number of shards that [`new`](Self::new) chooses, `Sharded` grants at least 99 % of
/// what a single word grants if each request takes one permit, and 95 % if each takes half the
/// burst. This holds for requests at random times and for evenly spaced ones, at loads from 0.5 to
/// 1.5 times the rate, both with requests spread over all shards and with all requests on one. Two
/// exceptions, for requests for one permit:
///
/// - Windows that the first permit opens, and greedy intervals, grant at least 96 % of evenly
///   spaced requests, because a shard that holds eight permits or more begins its period alone.
/// - Greedy intervals of fewer than eight permits grant at least 88 % of evenly spaced requests,
///   and 97 % at random times, because small requests empty one shard after another.
///
/// `cargo test -p tollgate --features keyed --test limits service` measures it. docs/MANY_CORES.md
/// says what other numbers of shards cost.
///
/// # Requests that take from several shards
///
/// A request that needs several shards takes from one after the other. All requests use the same
/// order. If other threads are faster and the request can't get everything, it rolls back: it
/// returns what it took. In the meantime other requests may be denied because these permits are
/// missing; their `retry_after` may then be as short as 1 ns.
///
/// A rollback returns permits to a shard only if no other thread has changed that shard meanwhile.
/// Otherwise returning the permits could count them twice, so they stay consumed. The limiter then
/// grants less than it could until time refills them, as it refills granted permits. A request for
/// several permits can lose permits in this way. A request for one permit can do so only while
/// other threads take the last permits of shards with fewer than eight permits each.
///
/// While a thread rolls back on a shard, that shard accepts no returned permits. An `undo` or a
/// `refund` at that moment returns them to the other shards, up to what these can hold.
///
/// # Denials
///
/// A thread that finds no permit in any shard stores the tick of the next permit. Until then
/// requests for one permit are denied without a scan, as fast as with a single word. Returning
/// permits clears that tick. A denial writes only here, and only once for each stored tick. An
/// algorithm of your own gets this if it [never falls](Split::never_falls).
///
/// # What differs from a `Limiter`
///
/// - [`Granted::remaining`](crate::Granted::remaining) and
///   [`reset_after`](crate::Granted::reset_after) describe the shards that the permits came from.
///   [`available`](Self::available) reads all shards, one after the other.
/// - `charge` takes the available permits and spreads the debt evenly over all shards. `refund`
///   spreads the returned permits in the same way. The reported debt is the sum over the shards. A
///   shard grants again when its own debt is paid. (After an `undo` in debt, the shard that granted
///   is the first to grant again.) A sliding window in fractions can count debts of up to three
///   times its limit.
/// - `undo` returns the permits to the shard that granted them. If that shard has no room, because
///   other permits were returned to it, the rest goes to the other shards. A grant from several
///   shards is returned to all shards: as many permits as a single word with no other grant would
///   take back.
/// - `reset` resets one shard after the other. It skips a shard on which another thread is rolling
///   back.
pub struct Sharded<A, C = SystemClock> {
    pub(super) shards: Box<[CachePadded<Shard<A>>]>,
    hint: CachePadded<Hint>,
    pub(super) thread_index: ThreadIndex,
    pub(super) whole: A,
    pub(super) clock: C,
}

impl Sharded<TokenBucket> {
    /// The largest number of shards that a limiter can have.
    pub const MAX_SHARDS: usize = MAX_SHARDS;
}

impl<A: Split> Sharded<A> {
    /// Creates a limiter on the system clock, with one shard for each core of the machine. It has
    /// at most one shard for every four permits of the burst or limit (two shards for 4 to 7
    /// permits, one for fewer). [`shards`](Self::shards) returns the number.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if not even one shard can be represented. The algorithms of this crate
    /// never fail here.
    pub fn new(algorithm: A) -> Result<Self, LimiterError> {
        Self::with_clock(algorithm, SystemClock)
    }
}

impl<A: Split, C> Sharded<A, C> {
    /// Creates a limiter with `shards` shards that starts at this tick. The clock may be one that
    /// can't be read, such as [`NoClock`](crate::clock::NoClock).
    ///
    /// # Errors
    ///
    /// [`LimiterError::ZeroShards`], or [`LimiterError::TooManyShards`] if the quota can't be split
    /// that finely.
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate::error::LimiterError;
    /// use tollgate::{Quota, Sharded, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), LimiterError> {
    /// let bucket = TokenBucket::new(Quota::per_second(3))?;
    /// let limiter = Sharded::starting_at(bucket, 3, NoClock, Tick::ZERO)?;
    /// assert!(limiter.at(Tick::ZERO).try_acquire_n(3).is_ok());
    /// assert_eq!(
    ///     Sharded::starting_at(bucket, 16, NoClock, Tick::ZERO).unwrap_err(),
    ///     LimiterError::TooManyShards { shards: 16, max: 3 }
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn starting_at(
        algorithm: A,
        shards: usize,
        clock: C,
        tick: Tick,
    ) -> Result<Self, LimiterError> {
        if shards == 0 {
            return Err(LimiterError::ZeroShards);
        }
        let Some(shards) = split(&algorithm, shards, tick) else {
            let fits = |shards: &usize| split(&algorithm, *shards, tick).is_some();
            let max = (1..shards.min(MAX_SHARDS + 1)).rev().find(fits);
            let max = max.unwrap_or(0);
            return Err(LimiterError::TooManyShards { shards, max });
        };
        Ok(Self {
            thread_index: ThreadIndex::new(shards.len()),
            shards,
            hint: CachePadded::new(Hint::new()),
            whole: algorithm,
            clock,
        })
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Returns the algorithm of the whole limiter, before it was split.
    pub const fn algorithm(&self) -> &A {
        &self.whole
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns a view whose methods use this tick and read no clock.
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

    #[cold]
    #[inline(never)]
    fn acquire_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).acquire(n)
    }

    /// Resets the shards, one after the other, so that they are new and full. This allows one extra
    /// burst.
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }
}

/// Splits the algorithm into shards that start at this tick.
fn split<A: Split>(
    algorithm: &A,
    shards: usize,
    tick: Tick,
) -> Option<Box<[CachePadded<Shard<A>>]>> {
    let parts = u64::try_from(shards).ok()?;
    if shards > MAX_SHARDS || parts > algorithm.most_shards() {
        return None;
    }
    let (shard, permit) = algorithm.per_shard(parts)?;
    let permit = NonZeroU64::new(permit)?;
    let shard = |_| CachePadded::new(Shard::new(shard.clone(), permit, parts, tick));
    Some((0..parts).map(shard).collect())
}

impl<A: Split, C: Clock> Sharded<A, C> {
    /// Creates a limiter on a clock of your own, with as many shards as [`Sharded::new`] chooses.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if not even one shard can be represented. The algorithms of this crate
    /// never fail here.
    pub fn with_clock(algorithm: A, clock: C) -> Result<Self, LimiterError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self::for_cores(algorithm, cores, clock)
    }

    /// Creates a limiter for this number of cores instead of the machine's. Use it if you know
    /// better how many threads will call the limiter.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if not even one shard can be represented. The algorithms of this crate
    /// never fail here.
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Sharded, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// let of_burst = |burst| TokenBucket::new(Quota::per_second(10).burst(burst));
    /// assert_eq!(Sharded::for_cores(of_burst(100)?, 8, ManualClock::new())?.shards(), 8);
    /// assert_eq!(Sharded::for_cores(of_burst(20)?, 8, ManualClock::new())?.shards(), 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_cores(algorithm: A, cores: usize, clock: C) -> Result<Self, LimiterError> {
        // `tests/limits` measures what small shards lose.
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

    /// Creates a limiter with exactly this number of shards.
    ///
    /// # Errors
    ///
    /// [`LimiterError::ZeroShards`], or [`LimiterError::TooManyShards`] if the quota can't be split
    /// that finely.
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Sharded, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// let bucket = TokenBucket::new(Quota::per_second(100))?;
    /// let limiter = Sharded::with_shards(bucket, 16, ManualClock::new())?;
    /// assert_eq!(limiter.shards(), 16);
    /// assert_eq!(limiter.available(), 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_shards(algorithm: A, shards: usize, clock: C) -> Result<Self, LimiterError> {
        let now = clock.now();
        Self::starting_at(algorithm, shards, clock, now)
    }

    /// Reads the limiter's clock.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no shard has a permit. Then nothing was taken.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }
}

take_verbs!([clock_forms_by_ticks] {[A: Split, C: Clock] Sharded<A, C>});
forecast_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
gauge_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
give_back_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
give_back_verbs!([traits_by_views] {[+ Split] [] Sharded<A, C>});
debt_verbs!([clock_forms] {[+ Split] [] Sharded<A, C>});
debt_verbs!([traits_by_views] {[+ Split] [] Sharded<A, C>});
settle_form!([A: Split + crate::algorithm::Debt, C: Clock] Sharded<A, C>);

impl<A: Split + ChangeQuota, C> Sharded<A, C> {
    /// Returns the quota that the algorithm was made from.
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

impl<A: Split, C> TryAcquire for Sharded<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.clock()
    }

    #[inline(always)]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        let take = || self.view(self.thread_index.known()?, now).try_once(n);
        // Nearly every decision ends here. All others make one out-of-line call at the end.
        match self.hint.decide(n, now, take) {
            Some(outcome) => outcome,
            None => self.acquire_at(n, now),
        }
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.at(now).take_up_to(n)
    }

    #[inline]
    fn check_n_at(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.at(now).check_n(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.at(now).available()
    }
}
