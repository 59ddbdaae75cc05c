//! Where the limiter of a request comes from: one for all, or a table.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock};

use tollgate::algorithm::{Algorithm, ChangeQuota, Debt, GiveBack, Settings as Words};
use tollgate::clock::Clock;
use tollgate::keyed::{Key, KeyHasher};
use tollgate::traits::SettleLimiter;
use tollgate::{Keyed, Quota};
use tollgate_http::{Ambiguous, RequestFacts};

use crate::key::RequestKey;

/// Finds the limiter of a request: [`Shared`] or [`PerKey`]. The constructors of the layer create
/// it.
pub trait Source: Send + Sync + 'static {
    /// The clock.
    type Clock: Clock;
    /// The key of a request.
    type Key<'r>;
    /// The limiter of a request.
    type Limiter<'a>: SettleLimiter<Clock = Self::Clock>
    where
        Self: 'a;
    /// The limiter of a request, which keeps its table alive.
    type Owned: SettleLimiter<Clock = Self::Clock> + Send + Sync + 'static;

    /// Returns the key of a request with its plan, or `None` if it has no key.
    #[doc(hidden)]
    fn key<'r>(
        &self,
        facts: &RequestFacts<'r>,
        plan: Option<&PlanOf>,
    ) -> Result<Option<Self::Key<'r>>, Ambiguous>;

    /// Returns the limiter of a key, or that of requests without one.
    #[doc(hidden)]
    fn limiter(&self, key: Option<&Self::Key<'_>>) -> Self::Limiter<'_>;

    /// Returns the same limiter, and keeps it alive.
    #[doc(hidden)]
    fn owned(&self, key: Option<&Self::Key<'_>>) -> Self::Owned;

    /// Returns the quota of a key.
    #[doc(hidden)]
    fn quota(&self, key: Option<&Self::Key<'_>>) -> Option<Quota>;

    /// Returns a number that tells the limit of a key from those of other keys.
    #[doc(hidden)]
    fn partition(&self, key: Option<&Self::Key<'_>>) -> Option<u64>;
}

/// One limiter for all requests.
#[derive(Debug)]
pub struct Shared<L> {
    pub(crate) limiter: Arc<L>,
    pub(crate) quota: Option<Quota>,
}

impl<L> Source for Shared<L>
where
    L: SettleLimiter<Clock: Clock> + Send + Sync + 'static,
{
    type Clock = L::Clock;
    type Key<'r> = ();
    type Limiter<'a> = &'a L;
    type Owned = Arc<L>;

    #[inline]
    fn key<'r>(&self, _: &RequestFacts<'r>, _: Option<&PlanOf>) -> Result<Option<()>, Ambiguous> {
        Ok(Some(()))
    }

    #[inline]
    fn limiter(&self, _: Option<&()>) -> &L {
        &self.limiter
    }

    fn owned(&self, _: Option<&()>) -> Arc<L> {
        Arc::clone(&self.limiter)
    }

    fn quota(&self, _: Option<&()>) -> Option<Quota> {
        self.quota
    }

    fn partition(&self, _: Option<&Self::Key<'_>>) -> Option<u64> {
        None
    }
}

/// Finds the plan of a request. A request without a plan is denied.
pub(crate) type PlanOf = Arc<dyn Fn(&RequestFacts<'_>) -> Option<usize> + Send + Sync>;

/// The plan of a request without one. A table has fewer plans, so it denies the request.
const NO_PLAN: usize = usize::MAX;

/// A limiter for each key.
#[derive(Debug)]
pub struct PerKey<A, C, S, K> {
    pub(crate) table: Arc<Keyed<A, C, S>>,
    pub(crate) key: K,
}

/// The key of requests without a key. No text begins with the bytes of the number, so no text has
/// the same hash.
#[derive(Hash)]
pub(crate) struct NoKey(u64, &'static str);

pub(crate) const NO_KEY: NoKey = NoKey(u64::MAX, "tollgate: a request without a key");

/// Hashes keys again for fields. The hash by which a table finds a key stays secret: with it,
/// clients could choose keys that displace others.
static PARTITIONS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl<A, C, S, K> Source for PerKey<A, C, S, K>
where
    A: Algorithm + GiveBack + Debt + ChangeQuota + Words + Clone + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
    S: KeyHasher + Send + Sync + 'static,
    K: RequestKey,
{
    type Clock = C;
    type Key<'r> = (K::Key<'r>, usize);
    type Limiter<'a> = Key<&'a Keyed<A, C, S>>;
    type Owned = Key<Arc<Keyed<A, C, S>>>;

    #[inline]
    fn key<'r>(
        &self,
        facts: &RequestFacts<'r>,
        plan: Option<&PlanOf>,
    ) -> Result<Option<(K::Key<'r>, usize)>, Ambiguous> {
        let plan = plan.map_or(0, |plan| plan(facts).unwrap_or(NO_PLAN));
        Ok(self.key.key(facts)?.map(|key| (key, plan)))
    }

    #[inline]
    fn limiter(&self, key: Option<&(K::Key<'_>, usize)>) -> Key<&Keyed<A, C, S>> {
        match key {
            Some((key, plan)) => self.table.key(key).with_plan(*plan),
            None => self.table.key(&NO_KEY),
        }
    }

    fn owned(&self, key: Option<&(K::Key<'_>, usize)>) -> Key<Arc<Keyed<A, C, S>>> {
        match key {
            Some((key, plan)) => self.table.key_owned(key).with_plan(*plan),
            None => self.table.key_owned(&NO_KEY),
        }
    }

    fn quota(&self, key: Option<&(K::Key<'_>, usize)>) -> Option<Quota> {
        let has_overrides = self.table.max_overrides() > 0;
        let own = key.filter(|_| has_overrides);
        let own = own.and_then(|(key, _)| self.table.key(key).override_algorithm());
        let plan = key.map_or(0, |(_, plan)| *plan);
        match own {
            Some(own) => Some(own.quota()),
            None => self.table.plan_quota(plan).ok(),
        }
    }

    fn partition(&self, key: Option<&(K::Key<'_>, usize)>) -> Option<u64> {
        let hash = self.table.hasher().hash_key(&key?.0);
        Some(PARTITIONS.hash_one(hash))
    }
}
