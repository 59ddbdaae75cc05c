//! A view of one key of a table, with all methods of a limiter.

use core::fmt;
use core::time::Duration;

use super::core::{Core, Request};
use super::probe_seq::ProbeSeq;
use crate::algorithm::Algorithm;
use crate::ban::{Ban, BannedUntil};
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::store::Store;
use crate::store::op::{Op, OpResult};
use crate::store::operations::Reset;
use crate::store::place::Place;
use crate::store::view::View;
use crate::traits::forms::limiter_verbs;
use crate::wait::waits;

/// A view of one key of a [`Keyed`](super::Keyed) table, made by [`Keyed::key`](super::Keyed::key).
/// It has all methods of a [`Limiter`](crate::Limiter), including those that wait, and implements
/// [`TryAcquire`](crate::TryAcquire).
///
/// A `Key` contains the key's hash, and each method looks the key up in the table. So you can keep
/// it while the key leaves the table and comes back. It is `Copy`, and a
/// [`Reservation`](crate::Reservation) contains a copy: `limiter.key(name).reserve(1)?` is valid as
/// long as the table.
///
/// Undo a grant on the key that it was made for. Undoing a grant from another plan, or from before
/// a change of the table's quota, returns no permits. While the key is banned, no permits can be
/// returned. A [`reset`](Self::reset) ends the ban. Queries don't insert the key. If the table has
/// no room for the key, requests are denied with [`Denied::NoRoom`], unless its
/// [`Overflow`](crate::keyed::Overflow) admits them.
///
/// ```
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?;
/// let alice = limiter.key("alice");
/// let granted = alice.try_acquire_n(3)?;
/// assert_eq!(alice.available(), 2);
/// assert_eq!(alice.undo(granted), 3);
/// assert_eq!(alice.charge(7).debt(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Key<'a, A, C> {
    pub(super) core: &'a Core<A>,
    clock: &'a C,
    pub(super) probe_seq: ProbeSeq,
    pub(super) plan: u8,
}

impl<'a, A, C> Key<'a, A, C> {
    #[inline(always)]
    pub(super) const fn new(
        core: &'a Core<A>,
        clock: &'a C,
        probe_seq: ProbeSeq,
        plan: u8,
    ) -> Self {
        Self {
            core,
            clock,
            probe_seq,
            plan,
        }
    }

    /// Returns a view whose methods run at this tick and read no clock.
    #[inline(always)]
    pub const fn at(&self, now: Tick) -> View<Self> {
        View::new(*self, now)
    }

    /// Returns the table's clock.
    #[inline]
    pub const fn clock(&self) -> &'a C {
        self.clock
    }
}

limiter_verbs!([] [] Key<'_, A, C>);
waits!([] [] copied Key<'_, A, C>);

impl<A: Algorithm, C> Key<'_, A, C> {
    /// Removes the key from the table, and returns whether it was there. If the key comes back it
    /// is fresh: this allows one more burst, and ends a ban.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = Keyed::token_bucket(Quota::per_hour(5), 1000)?;
    /// table.key("alice").try_acquire()?;
    /// assert!(table.key("alice").remove());
    /// assert!(table.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self) -> bool {
        self.core.remove(&self.probe_seq)
    }
}

impl<A: Algorithm, C: Clock> Key<'_, A, C> {
    /// Bans this key: it gets no permits before tick `until`, even if permits are given back. Then
    /// it refills from empty, as after a spent burst. During the ban, requests are denied with
    /// [`Denied::Banned`], including those that could wait, and
    /// [`banned_until`](Self::banned_until) returns the tick of the first permit.
    ///
    /// The ban is over with the first grant after `until`. From then on a caller whose tick is
    /// older counts at the tick of that grant, as for every key. So it can be granted a permit
    /// although its own tick is before `until`.
    ///
    /// Another ban can extend a ban, but not shorten it. A tick in the past bans nothing. The ban
    /// ends early if the key is [removed](Self::remove) or [reset](Self::reset), or if its quota is
    /// changed with [`Keep::Fresh`](crate::Keep::Fresh).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, clock.clone())?;
    /// let mallory = limiter.key("mallory");
    /// mallory.ban(mallory.now().saturating_add(Duration::from_secs(60)))?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(mallory.try_acquire().is_err());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(mallory.try_acquire().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the table has no slot for the ban. [`Denied::NoSuchPlan`] if the
    /// plan of this view does not exist.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        self.at(self.now()).ban(until)
    }

    /// Bans this key for this duration: see [`ban`](Self::ban).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Denied, Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_second(5), 1000)?;
    /// let mallory = limiter.key("mallory");
    /// mallory.ban_for(Duration::from_secs(60))?;
    /// assert!(matches!(mallory.try_acquire(), Err(Denied::Banned { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the table has no slot for the ban. [`Denied::NoSuchPlan`] if the
    /// plan of this view does not exist.
    pub fn ban_for(&self, long: Duration) -> Result<(), Denied> {
        let now = self.now();
        self.at(now).ban(now.saturating_add(long))
    }

    /// Returns the tick of the key's first permit, or `None` if the key is not banned. This tick is
    /// later than the one that was passed to [`ban`](Self::ban): a bucket needs the time of
    /// one permit, and a window waits for its next edge. Finding it takes about a microsecond.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::clock::Clock;
    /// use tollgate::{Denied, Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, ManualClock::new())?;
    /// assert_eq!(limiter.key("mallory").banned_until(), None);
    ///
    /// limiter.key("mallory").ban_for(Duration::from_secs(60))?;
    /// let until = limiter.key("mallory").banned_until().ok_or("not banned")?;
    /// // The ban lasts 60 seconds, and the first permit comes a second later.
    /// let left = until.saturating_since(limiter.clock().now());
    /// assert_eq!(left, Duration::from_secs(61));
    /// match limiter.try_acquire("mallory") {
    ///     Err(Denied::Banned { retry_after, .. }) => assert_eq!(retry_after, Some(left)),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        self.at(self.now()).banned_until()
    }
}

impl<A: Algorithm, C> View<Key<'_, A, C>> {
    /// Bans the key at this tick: see [`Key::ban`].
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the table has no slot for the ban. [`Denied::NoSuchPlan`] if the
    /// plan of this view does not exist.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        match until <= self.now {
            true => Ok(()),
            false => self.store.apply(self.now, Ban { until }),
        }
    }

    /// Returns the tick of the first permit, as of this tick: see [`Key::banned_until`].
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        let Ok(until) = self.store.apply(self.now, BannedUntil);
        until
    }
}

impl<A, C> Key<'_, A, C> {
    #[inline(always)]
    const fn request(&self, now: Tick) -> Request {
        Request {
            probe_seq: self.probe_seq,
            plan: self.plan,
            now,
        }
    }
}

impl<A: Algorithm, C> Store for Key<'_, A, C> {
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> OpResult<A, O> {
        self.core.apply(self.request(now), op)
    }

    #[inline(always)]
    fn try_fast<O: Op<A>>(&self, now: Tick, op: O) -> Option<O::Output> {
        self.core.try_fast(self.request(now), op)
    }

    #[inline]
    fn place(&self) -> Option<Place> {
        Some(Place::of(self.core).with_key(self.probe_seq.key()))
    }

    /// A key that is not in the table is fresh already.
    #[inline]
    fn reset(&self, now: Tick) {
        if self.core.tracks(&self.probe_seq) {
            let Ok(()) = self.apply(now, Reset);
        }
    }
}

impl<A, C> Clone for Key<'_, A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for Key<'_, A, C> {}

impl<A, C> fmt::Debug for Key<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
