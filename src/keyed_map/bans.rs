//! Bans keys. A ban replaces the key's entry, as a change of its algorithm does
//! ([`moving`](super::moving)). So a ban applies to each decision that begins later, whatever other
//! threads were about to do.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::sync::Arc;

use super::entry::{Live, MapEntry};
use super::moving::Next;
use super::{KeyedMap, MapKey};
use crate::algorithm::Algorithm;
use crate::ban::{Ban, BannedUntil};
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::store::Store;
use crate::store::op::{Current, Op};
use crate::store::view::View;

/// Returns the banned state of a key, or `None` if a longer ban applies already.
fn banned<A: Algorithm>(
    entry: &MapEntry<A>,
    live: &Live,
    at: Tick,
    until: Tick,
) -> Option<Next<A>> {
    let (word, ()) = Ban { until }
        .run(entry.algorithm(), Current::new(live.word, at))
        .ok()?;
    let is_longer = word != live.word || !entry.has_ban();
    is_longer.then(|| Next {
        algorithm: Arc::clone(entry.shared()),
        is_own: entry.has_its_own(),
        word,
        is_banned: true,
    })
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    fn ban_at<Q>(&self, key: &Q, until: Tick, now: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if until <= now {
            return Ok(());
        }
        self.change(key, now, |entry, live, at| banned(entry, live, at, until))
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Bans a key: it gets no permits before tick `until`, even if permits are given back. Then it
    /// refills from empty, as after a spent burst. Grants from before the ban can't be undone.
    /// During the ban, requests are denied with [`Denied::Banned`], including those that could
    /// wait, and [`banned_until`](Self::banned_until) returns the tick of the first permit.
    ///
    /// A tick in the past bans nothing. Another ban can extend a ban, but not shorten it. A ban
    /// ends early if the key is [removed](Self::remove), [reset](MapKey::reset) or started
    /// [afresh](Self::set_algorithm_afresh), or if the quota changes with
    /// [`Keep::Fresh`](crate::adjustable::Keep::Fresh). Banned keys are evicted after all others.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
    /// let map: KeyedMap<String, _, _> = KeyedMap::with_clock(bucket, 1000, clock.clone())?;
    /// map.ban_for("mallory", Duration::from_secs(60))?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(map.try_acquire("mallory").is_err());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(map.try_acquire("mallory").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban<Q>(&self, key: &Q, until: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).ban(until)
    }

    /// Bans a key for this duration: see [`ban`](Self::ban).
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban_for<Q>(&self, key: &Q, long: Duration) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).ban_for(long)
    }

    /// Returns the tick of this key's first permit, or `None` if the key is not banned: see
    /// [`MapKey::banned_until`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_second(5), 1000)?;
    /// map.ban_for("mallory", Duration::from_secs(60))?;
    /// assert!(map.banned_until("mallory").is_some());
    /// assert!(map.banned_until("alice").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn banned_until<Q>(&self, key: &Q) -> Option<Tick>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).banned_until()
    }
}

impl<K, Q, A, C, S> View<MapKey<'_, K, Q, A, C, S>>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    S: BuildHasher,
{
    /// Bans this key at this tick: see [`KeyedMap::ban`].
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        self.store.map().ban_at(self.store.key(), until, self.now)
    }

    /// Returns the tick of the first permit, as of this tick: see [`MapKey::banned_until`].
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        let Ok(until) = self.store.apply(self.now, BannedUntil);
        until
    }
}

impl<K, Q, A, C, S> MapKey<'_, K, Q, A, C, S>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Bans this key: see [`KeyedMap::ban`].
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        self.at(self.clock().now()).ban(until)
    }

    /// Bans this key for this duration: see [`KeyedMap::ban`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Denied, KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_second(5), 1000)?;
    /// let mallory = map.key("mallory");
    /// mallory.ban_for(Duration::from_secs(60))?;
    /// assert!(matches!(mallory.try_acquire(), Err(Denied::Banned { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban_for(&self, long: Duration) -> Result<(), Denied> {
        let now = self.clock().now();
        self.at(now).ban(now.saturating_add(long))
    }

    /// Returns the tick of the key's first permit, or `None` if the key is not banned. This tick is
    /// later than the one that was passed to [`ban`](KeyedMap::ban): a bucket needs the time of one
    /// permit, and a window waits for its next edge. Finding it takes about a microsecond.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::clock::Clock;
    /// use tollgate::{Denied, KeyedMap, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
    /// let clock = ManualClock::new();
    /// let map: KeyedMap<String, _, _> = KeyedMap::with_clock(bucket, 1000, clock)?;
    /// let mallory = map.key("mallory");
    /// assert_eq!(mallory.banned_until(), None);
    ///
    /// map.ban_for("mallory", Duration::from_secs(60))?;
    /// let until = mallory.banned_until().ok_or("not banned")?;
    /// // The ban lasts 60 seconds, and the first permit comes a second later.
    /// let left = until.saturating_since(map.clock().now());
    /// assert_eq!(left, Duration::from_secs(61));
    /// match map.try_acquire("mallory") {
    ///     Err(Denied::Banned { retry_after, .. }) => assert_eq!(retry_after, Some(left)),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        self.at(self.clock().now()).banned_until()
    }
}
