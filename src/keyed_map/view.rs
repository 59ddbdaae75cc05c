//! A key's limit, with the verbs of a limiter.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use super::KeyedMap;
use super::turn::Refusal;
use crate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Reserve};
use crate::clock::{Clock, Sleeps, Tick};
use crate::deed::{Change, Deed, verbs_of_deeds};
use crate::gate::{DebtGate, Gate, GiveBackGate, ReserveGate, gate_of_views};
use crate::outcome::{Charged, Denied, Granted};
use crate::wait::{Reservation, waits};

/// The limit of one key of a [`KeyedMap`]: [`KeyedMap::key`] makes one. Its verbs are those of a
/// [`Limiter`](crate::Limiter).
///
/// Looking at a key that is not there doesn't bring it in, and neither does a verb that leaves it fresh. Of a grant from
/// before the key left, or got another algorithm, nothing is undone.
pub struct MapKey<'a, K, Q: ?Sized, A, C, S> {
    map: &'a KeyedMap<K, A, C, S>,
    key: &'a Q,
}

/// The same at one tick: [`MapKey::at`] makes one.
pub struct MapKeyAt<'a, K, Q: ?Sized, A, C, S> {
    map: &'a KeyedMap<K, A, C, S>,
    key: &'a Q,
    now: Tick,
}

impl<'a, K, Q: ?Sized, A, C, S> MapKey<'a, K, Q, A, C, S> {
    pub(super) const fn new(map: &'a KeyedMap<K, A, C, S>, key: &'a Q) -> Self {
        Self { map, key }
    }

    /// A view on which every verb runs at this tick, without reading a clock.
    ///
    /// A tick that is older than one at which the key has left as idle is counted as that one.
    ///
    /// ```
    /// use tollgate::{KeyedMap, NoClock, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(5))?;
    /// let map: KeyedMap<String, _, _> = KeyedMap::with_clock(bucket, 1000, NoClock)?;
    /// let alice = map.key("alice").at(Tick::from_nanos(7));
    /// let granted = alice.try_acquire_n(3)?;
    /// assert_eq!((granted.at(), alice.undo(granted)), (Tick::from_nanos(7), 3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub const fn at(&self, now: Tick) -> MapKeyAt<'a, K, Q, A, C, S> {
        let Self { map, key } = *self;
        MapKeyAt { map, key, now }
    }

    /// The key.
    pub const fn key(&self) -> &'a Q {
        self.key
    }

    /// The map's clock.
    pub const fn clock(&self) -> &'a C {
        &self.map.clock
    }
}

verbs_of_deeds!(
    [] [K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized, C, S: BuildHasher]
    MapKeyAt<'_, K, Q, A, C, S>
);
gate_of_views!(
    [] [K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized, C, S: BuildHasher]
    MapKey<'_, K, Q, A, C, S>
);
waits!(
    [Reserve] [K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized, S: BuildHasher]
    copied MapKey<'_, K, Q, A, C, S>
);

impl<K, Q, A, C, S> MapKeyAt<'_, K, Q, A, C, S>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    S: BuildHasher,
{
    /// The tick of this view.
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// [`Limiter::reset`](crate::Limiter::reset).
    pub fn reset(&self) {
        let Ok(()) = self.update(Change(|_: &A, _| (0, ())));
    }

    #[inline(always)]
    fn update<D: Deed<A, Refusal: Refusal>>(&self, deed: D) -> Result<D::Answer, D::Refusal> {
        self.map.update(self.key, self.now, deed)
    }

    /// It would be no quicker.
    #[inline(always)]
    fn try_once<D: Deed<A>>(&self, _deed: D) -> Option<D::Answer> {
        None
    }
}

/// The verbs of a view on the map's clock.
macro_rules! on_the_clock {
    ($trait:ident: $(
        $(#[$meta:meta])*
        $verb:ident($($argument:ident: $type:ty),*) -> $answer:ty;
    )*) => {
        impl<K, Q, A, C, S> MapKey<'_, K, Q, A, C, S>
        where
            K: Hash + Eq + Borrow<Q>,
            Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
            A: $trait,
            C: Clock,
            S: BuildHasher,
        {$(
            $(#[$meta])*
            #[inline]
            pub fn $verb(&self, $($argument: $type),*) -> $answer {
                self.at(self.now()).$verb($($argument),*)
            }
        )*}
    };
}

on_the_clock! { Algorithm:
    /// [`Limiter::try_acquire`](crate::Limiter::try_acquire).
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit was not there, or there was [no room](Denied::NoRoom) for the key.
    try_acquire() -> Result<Granted, Denied>;
    /// [`Limiter::try_acquire_n`](crate::Limiter::try_acquire_n).
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits were not all there, or there was [no room](Denied::NoRoom) for the key.
    try_acquire_n(n: u64) -> Result<Granted, Denied>;
    /// [`Limiter::take_up_to`](crate::Limiter::take_up_to).
    take_up_to(n: u64) -> Granted;
    /// [`Limiter::available`](crate::Limiter::available).
    available() -> u64;
    /// Whether the key can no longer be told from a fresh one.
    is_idle() -> bool;
}

on_the_clock! { Forecast:
    /// [`Limiter::time_until`](crate::Limiter::time_until).
    time_until(n: u64) -> Option<Duration>;
}

on_the_clock! { Gauge:
    /// [`Limiter::level`](crate::Limiter::level).
    level() -> Level;
}

on_the_clock! { GiveBack:
    /// [`Limiter::undo`](crate::Limiter::undo).
    undo(granted: Granted) -> u64;
    /// [`Limiter::refund`](crate::Limiter::refund).
    refund(n: u64) -> u64;
}

on_the_clock! { Debt:
    /// [`Limiter::charge`](crate::Limiter::charge).
    charge(n: u64) -> Charged;
}

impl<K, Q, A, C, S> MapKey<'_, K, Q, A, C, S>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    S: BuildHasher,
{
    /// [`Limiter::reset`](crate::Limiter::reset). It needs no tick: a fresh word is fresh at all times.
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }
}

impl<K, Q: ?Sized, A, C: Clock, S> MapKey<'_, K, Q, A, C, S> {
    /// What the map's clock says.
    pub fn now(&self) -> Tick {
        self.map.clock.now()
    }
}

impl<K, Q: ?Sized, A, C, S> Clone for MapKey<'_, K, Q, A, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, Q: ?Sized, A, C, S> Copy for MapKey<'_, K, Q, A, C, S> {}

impl<K, Q: ?Sized, A, C, S> Clone for MapKeyAt<'_, K, Q, A, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, Q: ?Sized, A, C, S> Copy for MapKeyAt<'_, K, Q, A, C, S> {}

impl<K, Q: fmt::Debug + ?Sized, A, C, S> fmt::Debug for MapKey<'_, K, Q, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K, Q: fmt::Debug + ?Sized, A, C, S> fmt::Debug for MapKeyAt<'_, K, Q, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapKeyAt")
            .field("key", &self.key)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
