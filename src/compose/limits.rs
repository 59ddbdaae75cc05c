//! Which limits can be members.

#[cfg(feature = "map")]
use core::borrow::Borrow;
#[cfg(feature = "map")]
use core::hash::{BuildHasher, Hash};
#[cfg(feature = "map")]
use std::borrow::ToOwned;

use super::members::one_member;
use crate::algorithm::{Debt, GiveBack};
#[cfg(feature = "std")]
use crate::algorithm::{Lend, Split};
use crate::limiter::Limiter;
use crate::store::AtomicWord;

one_member!(owes [A: GiveBack + Debt, C, P: AtomicWord] C, Limiter<A, C, P>);

#[cfg(feature = "wide")]
one_member!(owes [A: GiveBack + Debt + crate::algorithm::Settings, C] C, crate::adjustable::limiter::Adjustable<A, C>);
#[cfg(feature = "std")]
one_member!(owes [A: Split + Debt, C] C, crate::sharded::limiter::Sharded<A, C>);
#[cfg(feature = "std")]
one_member!(owes [C] C, crate::multiword::SlottedWindow<C>);
#[cfg(feature = "std")]
one_member!(owes [G: crate::rate_limiter::SettleLimiter, S: core::borrow::Borrow<crate::counted::Counters>] G::Clock, crate::counted::Counted<G, S>);
#[cfg(feature = "keyed")]
one_member!(owes [A: GiveBack + Debt, C] C, crate::keyed::Key<'_, A, C>);
#[cfg(feature = "keyed")]
one_member!(owes [A: GiveBack + Debt, C, S] C, crate::keyed::OwnedKey<A, C, S>);

#[cfg(feature = "map")]
one_member!(owes [
        K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: GiveBack + Debt, C, S: BuildHasher
    ]
    C, crate::keyed_map::MapKey<'_, K, Q, A, C, S>
);
#[cfg(feature = "map")]
one_member!(owes [K: Hash + Eq + Clone, A: GiveBack + Debt, C, S: BuildHasher]
    C, crate::keyed_map::OwnedMapKey<K, A, C, S>
);

#[cfg(feature = "std")]
one_member!(settles [C] C, crate::concurrency::limiter::Concurrency);

#[cfg(feature = "std")]
one_member!([C] C, crate::multiword::SlidingLog<C>);
#[cfg(feature = "std")]
one_member!([A: Lend, C] C, crate::leases::limiter::Leases<A, C>);
