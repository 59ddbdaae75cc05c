//! A view of one key of a table, with all methods of a limiter.

use core::fmt;
use core::hash::Hash;
use core::time::Duration;
use std::sync::Arc;

use super::ban::{Ban, BannedUntil};
use super::decide::Request;
use super::find::{Lookup, ProbeSeq};
use super::hasher::KeyHasher;
use super::limiter::Keyed;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::store::Store;
use crate::store::op::{Op, OpResult};
use crate::store::operations::Reset;
use crate::store::place::Place;
use crate::store::view::View;
use crate::traits::forms::{clock_forms, limiter_verbs};
use crate::wait::waits;

/// A view of one key of a [`Keyed`](crate::Keyed) table, with all methods of a
/// [`Limiter`](crate::Limiter), including those that wait. It implements
/// [`TryAcquire`](crate::TryAcquire).
///
/// A `Key` contains the key's hash, and each method looks the key up in the table. So you can keep
/// it while the key leaves the table and comes back.
///
/// `R` is the reference to the table. With `&Keyed`, from [`Keyed::key`], a key is `Copy`, and a
/// [`Reservation`](crate::Reservation) contains a copy: `limiter.key(name).reserve(1)?` is valid as
/// long as the table. With `Arc<Keyed>`, from [`Keyed::key_owned`], a key keeps its table alive and
/// can move to another thread or task.
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
#[derive(Clone, Copy)]
pub struct Key<R> {
    pub(super) table: R,
    pub(super) probe_seq: ProbeSeq,
    pub(super) plan: u8,
}

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// Returns a view of one key, with all methods of a limiter.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_second(5), 1000)?;
    /// let now = Tick::from_nanos(7);
    /// let granted = limiter.key("alice").at(now).try_acquire_n(2)?;
    /// assert_eq!(limiter.key("alice").at(now).undo(granted), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Key<&Self> {
        self.key_of(self.hasher.hash_key(key))
    }

    /// Returns a view of one key that keeps the table alive.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Arc::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
    /// let mallory = limiter.key_owned("mallory");
    /// let reservation = mallory.clone().reserve_owned(3)?;
    /// assert!(std::thread::spawn(move || reservation.is_due()).join().unwrap());
    /// // `key` has what a table's key has beyond a limiter.
    /// mallory.key().ban_for(Duration::from_secs(60))?;
    /// assert!(mallory.key().remove());
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_owned<Q: Hash + ?Sized>(self: &Arc<Self>, key: &Q) -> Key<Arc<Self>> {
        Key {
            table: Arc::clone(self),
            probe_seq: self.keys.table().probe_seq(self.hasher.hash_key(key)),
            plan: 0,
        }
    }
}

impl<A, C, S> Keyed<A, C, S> {
    /// Returns a view of the key with this hash.
    #[inline(always)]
    pub(super) fn key_of(&self, hash: u64) -> Key<&Self> {
        Key {
            table: self,
            probe_seq: self.keys.table().fetch(hash),
            plan: 0,
        }
    }
}

impl<R> Key<R> {
    /// Returns the same key under another plan of the table, by the plan's
    /// [position](Keyed::plan_named). A new key is under plan 0.
    ///
    /// A key that is used under another plan than before keeps its permits or debt, up to what the
    /// new plan can hold ([`ChangeQuota::carry_over`](crate::algorithm::ChangeQuota::carry_over)),
    /// or what [`with_moves`](Keyed::with_moves) says.
    /// If the plan does not exist, requests are denied with [`Denied::NoSuchPlan`]. Methods that
    /// can't be denied, such as queries, then answer as for a fresh key of plan 0, and record
    /// nothing.
    ///
    /// ```
    /// use tollgate::{Denied, FixedWindow, Keyed, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let free = FixedWindow::new(Quota::per_day(10))?;
    /// let paid = FixedWindow::new(Quota::per_day(1000))?;
    /// let limiter = Keyed::with_plans([free, paid], 1000, ManualClock::new())?;
    /// let alice = limiter.key("alice");
    /// alice.with_plan(1).try_acquire_n(990)?;
    /// // A key that spent 990 of 1000 has 10 left: as many as the free plan gives.
    /// assert_eq!(alice.available(), 10);
    /// assert!(matches!(alice.with_plan(2).try_acquire(), Err(Denied::NoSuchPlan { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn with_plan(self, plan: usize) -> Self {
        // No plan has the number `u8::MAX`.
        let plan = u8::try_from(plan).unwrap_or(u8::MAX);
        Self { plan, ..self }
    }

    /// Returns the reference to the table.
    pub const fn table(&self) -> &R {
        &self.table
    }
}

impl<'a, A, C, S> Key<&'a Keyed<A, C, S>> {
    /// Returns the table's clock.
    #[inline]
    pub const fn clock(&self) -> &'a C {
        &self.table.clock
    }

    /// Returns a view whose methods run at this tick and read no clock.
    #[inline(always)]
    pub const fn at(&self, now: Tick) -> View<Self> {
        View::new(*self, now)
    }
}

impl<A, C, S> Key<Arc<Keyed<A, C, S>>> {
    /// Returns the table's clock.
    #[inline]
    pub fn clock(&self) -> &C {
        &self.table.clock
    }

    /// Returns the key, borrowed from this one.
    #[inline]
    pub fn key(&self) -> Key<&Keyed<A, C, S>> {
        Key {
            table: &self.table,
            probe_seq: self.probe_seq,
            plan: self.plan,
        }
    }

    /// Returns a view whose methods run at this tick and read no clock.
    #[inline]
    pub fn at(&self, now: Tick) -> View<Key<&Keyed<A, C, S>>> {
        self.key().at(now)
    }
}

limiter_verbs!([] [S] Key<&Keyed<A, C, S>>);
limiter_verbs!([] [S] Key<Arc<Keyed<A, C, S>>>);
waits!([] [S] copied Key<&Keyed<A, C, S>>);
waits!([] [S] owned Key<Arc<Keyed<A, C, S>>>);

impl<A: Algorithm, C, S> Key<&Keyed<A, C, S>> {
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
        self.table.keys.remove(&self.probe_seq)
    }
}

clock_forms! { {[] [S] Key<&Keyed<A, C, S>>} [Algorithm] {
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
    fn ban / ban_at(until: Tick) -> Result<(), Denied>;
    /// [Bans](Self::ban) this key for this duration.
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
    fn ban_for / ban_for_at(long: Duration) -> Result<(), Denied>;
    /// Returns the tick of the key's first permit, or `None` if the key is not banned. This tick is
    /// later than the one that was passed to [`ban`](Self::ban): a bucket needs the time of one
    /// permit, and a window waits for its next edge. Finding it takes about a microsecond.
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
    fn banned_until / banned_until_at() -> Option<Tick>;
}}

impl<A: Algorithm, C, S> View<Key<&Keyed<A, C, S>>> {
    /// Bans the key, as [`Key::ban`] does.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] or [`Denied::NoSuchPlan`].
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        match until <= self.now {
            true => Ok(()),
            false => self.store.apply(self.now, Ban { until }),
        }
    }

    /// Bans the key from this tick on, as [`Key::ban_for`] does.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] or [`Denied::NoSuchPlan`].
    pub fn ban_for(&self, long: Duration) -> Result<(), Denied> {
        self.ban(self.now.saturating_add(long))
    }

    /// Returns the tick of the first permit, as [`Key::banned_until`] does.
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        let Ok(until) = self.store.apply(self.now, BannedUntil);
        until
    }
}

impl<A, C, S> Key<&Keyed<A, C, S>> {
    #[inline(always)]
    const fn request(&self, now: Tick) -> Request<'_, A> {
        Request::new(&self.table.keys, self.probe_seq, self.plan, now)
    }
}

impl<A: Algorithm, C, S> Store for Key<&Keyed<A, C, S>> {
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> OpResult<A, O> {
        self.request(now).run(op)
    }

    #[inline(always)]
    fn try_fast<O: Op<A>>(&self, now: Tick, op: O) -> Option<OpResult<A, O>> {
        self.request(now).try_fast(op)
    }

    #[inline]
    fn place(&self) -> Option<Place> {
        Some(Place::of(&self.table.keys).with_key(self.probe_seq.hash()))
    }

    /// A key that is not in the table is fresh already.
    #[inline]
    fn reset(&self, now: Tick) {
        let probe = self.table.keys.table().look(&self.probe_seq);
        if let Lookup::Live(..) = probe.find(self.probe_seq.tag()) {
            let Ok(()) = self.apply(now, Reset);
        }
    }
}

impl<R> fmt::Debug for Key<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
