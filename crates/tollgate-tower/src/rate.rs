//! Rates: one limiter for all requests, or one for each key.

use std::convert::Infallible;
use std::fmt;
use std::future::Pending;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request};
use tollgate::algorithm::{Algorithm, ChangeQuota, Debt, GiveBack, Settings as Words};
use tollgate::clock::Clock;
use tollgate::keyed::{Key, KeyHasher, OwnedKey};
use tollgate::traits::{GiveBackLimiter, ReserveLimiter, SettleLimiter};
use tollgate::{Denied, Granted, Keyed, Quota, RateLimiter, Tick};
use tollgate_http::{Cause, LimitState, Refusal, RequestFacts};

use crate::admission::{Admission, Admit, Grant, Sealed};
use crate::answered::Ended;
use crate::key::RequestKey;
use crate::report;
use crate::settings::{Missing, Settings};

/// Which requests a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Count {
    /// All.
    #[default]
    All,
    /// Those that failed: the permits of others are given back.
    Failures,
    /// Those that succeeded: the permits of others are given back.
    Successes,
}

/// Where the limiter of a request is.
pub trait Source: Send + Sync + 'static {
    /// The clock.
    type Clock: Clock;
    /// The limiter of a request.
    type Limiter<'a>: SettleLimiter<Clock = Self::Clock>
    where
        Self: 'a;
    /// The same, kept alive.
    type Owned: SettleLimiter<Clock = Self::Clock> + Send + Sync + 'static;

    /// Returns the limiter of a request, or `None` if the request has no key.
    #[doc(hidden)]
    fn limiter(&self, facts: &RequestFacts<'_>) -> Option<Self::Limiter<'_>>;

    /// Returns the limiter of requests without a key.
    #[doc(hidden)]
    fn shared(&self) -> Self::Limiter<'_>;

    /// Returns the limiter of a request, or that of requests without a key, and keeps it alive.
    #[doc(hidden)]
    fn owned(&self, facts: &RequestFacts<'_>) -> Self::Owned;

    /// Returns the quota.
    #[doc(hidden)]
    fn quota(&self) -> Option<Quota>;

    /// Returns which of several limits is that of the request.
    #[doc(hidden)]
    fn partition(&self, facts: &RequestFacts<'_>) -> Option<u64>;
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
    type Limiter<'a> = &'a L;
    type Owned = Arc<L>;

    #[inline]
    fn limiter(&self, _: &RequestFacts<'_>) -> Option<&L> {
        Some(&self.limiter)
    }

    fn shared(&self) -> &L {
        &self.limiter
    }

    fn owned(&self, _: &RequestFacts<'_>) -> Arc<L> {
        Arc::clone(&self.limiter)
    }

    fn quota(&self) -> Option<Quota> {
        self.quota
    }

    fn partition(&self, _: &RequestFacts<'_>) -> Option<u64> {
        None
    }
}

/// A limiter for each key.
#[derive(Debug)]
pub struct PerKey<A, C, S, K> {
    pub(crate) table: Arc<Keyed<A, C, S>>,
    pub(crate) key: K,
}

/// The key of requests without a key. Keys of other types have other hashes.
#[derive(Hash)]
pub(crate) struct NoKey(&'static str);

pub(crate) const NO_KEY: NoKey = NoKey("tollgate: a request without a key");

impl<A, C, S, K> Source for PerKey<A, C, S, K>
where
    A: Algorithm + GiveBack + Debt + ChangeQuota + Words + Clone + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
    S: KeyHasher + Send + Sync + 'static,
    K: RequestKey,
{
    type Clock = C;
    type Limiter<'a> = Key<'a, A, C>;
    type Owned = OwnedKey<A, C, S>;

    #[inline]
    fn limiter(&self, facts: &RequestFacts<'_>) -> Option<Key<'_, A, C>> {
        Some(self.table.key(&self.key.key(facts)?))
    }

    fn shared(&self) -> Key<'_, A, C> {
        self.table.key(&NO_KEY)
    }

    fn owned(&self, facts: &RequestFacts<'_>) -> OwnedKey<A, C, S> {
        match self.key.key(facts) {
            Some(key) => self.table.key_owned(&key),
            None => self.table.key_owned(&NO_KEY),
        }
    }

    fn quota(&self) -> Option<Quota> {
        Some(self.table.quota())
    }

    fn partition(&self, facts: &RequestFacts<'_>) -> Option<u64> {
        let hash = |key| self.table.hasher().hash_key(&key);
        self.key.key(facts).map(hash)
    }
}

pub(crate) type CostOf = Arc<dyn Fn(&RequestFacts<'_>) -> u64 + Send + Sync>;
pub(crate) type Settle = Arc<dyn Fn(&Ended<'_>) -> u64 + Send + Sync>;
type Reserve<L> = fn(&L, u64, Tick, Tick) -> Result<Granted, Denied>;
/// How permits are reserved and given back.
struct InLine<L> {
    reserve: Reserve<L>,
    cancel: Cancel<L>,
}

impl<L> Clone for InLine<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for InLine<L> {}

type Cancel<L> = fn(&L, Granted, u64, Tick) -> (Granted, u64);

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) that limits a rate.
pub struct Rate<S: Source> {
    pub(crate) source: Arc<S>,
    pub(crate) cost: Option<CostOf>,
    pub(crate) count: Count,
    pub(crate) settle: Option<Settle>,
    /// Whether fields say which partition of the limit a request used.
    pub(crate) partitions: bool,
    /// How permits are reserved, if requests wait.
    in_line: Option<InLine<S::Owned>>,
}

impl<S: Source> Clone for Rate<S> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            cost: self.cost.clone(),
            count: self.count,
            settle: self.settle.clone(),
            partitions: self.partitions,
            in_line: self.in_line,
        }
    }
}

impl<S: Source> fmt::Debug for Rate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate")
            .field("quota", &self.source.quota())
            .field("count", &self.count)
            .field("waits", &self.in_line.is_some())
            .finish_non_exhaustive()
    }
}

impl<S: Source> Rate<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source: Arc::new(source),
            cost: None,
            count: Count::All,
            settle: None,
            partitions: false,
            in_line: None,
        }
    }

    /// Lets requests wait in line.
    pub(crate) fn in_line(&mut self)
    where
        S::Owned: ReserveLimiter,
    {
        self.in_line = Some(InLine {
            reserve: <S::Owned as ReserveLimiter>::reserve_until_at,
            cancel: <S::Owned as ReserveLimiter>::cancel_at,
        });
    }

    fn cost(&self, facts: &RequestFacts<'_>) -> u64 {
        self.cost.as_ref().map_or(1, |cost| cost(facts))
    }

    fn settles(&self) -> bool {
        self.settle.is_some() || self.count != Count::All
    }

    /// Returns the key of the partition that a request uses, if fields say it.
    fn partition(&self, facts: &RequestFacts<'_>) -> Option<[u8; 8]> {
        let partition = self.partitions.then(|| self.source.partition(facts));
        partition.flatten().map(u64::to_be_bytes)
    }

    fn grant(
        &self,
        granted: Granted,
        facts: &RequestFacts<'_>,
        settings: &Settings,
    ) -> RateGrant<S> {
        let delayed = granted.delay() > Duration::ZERO;
        let has_fields = settings.answers.has_fields();
        RateGrant {
            settle: self.settles().then(|| (self.count, self.settle.clone())),
            limiter: (self.settles() || delayed).then(|| self.source.owned(facts)),
            cancel: self.in_line.map(|line| line.cancel),
            quota: has_fields.then(|| self.source.quota()).flatten(),
            partition: has_fields.then(|| self.partition(facts)).flatten(),
            granted,
        }
    }

    fn granted(
        &self,
        granted: Granted,
        facts: &RequestFacts<'_>,
        settings: &Settings,
    ) -> Admit<Self> {
        report::allowed(&settings.name);
        let delay = granted.delay();
        let grant = self.grant(granted, facts, settings);
        match delay {
            Duration::ZERO => Admit::Granted(grant),
            delay => Admit::Delayed(grant, delay),
        }
    }

    fn refused<B>(
        &self,
        denied: &Denied,
        remaining: u64,
        request: &Request<B>,
        settings: &Settings,
    ) -> Admit<Self> {
        let name = &*settings.name;
        report::denied(name, Cause::of(denied));
        let partition = self.partition(&settings.facts(request));
        let state = self.source.quota().map(|quota| {
            let state = LimitState::of_rate(name, quota).denied(denied, remaining);
            in_partition(state, &partition)
        });
        let refusal = Refusal::of_denied(denied)
            .rule(name)
            .limits(state.as_slice());
        Admit::Refused(Box::new(settings.refuse(request, &refusal)))
    }
}

impl<S: Source> Sealed for Rate<S> {}

impl<S: Source> Admission for Rate<S> {
    type Grant = RateGrant<S>;
    type Pending = Pending<Infallible>;

    #[inline]
    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        let facts = settings.facts(request);
        let limiter = match (self.source.limiter(&facts), settings.missing) {
            (Some(limiter), _) => limiter,
            (None, Missing::Share) => self.source.shared(),
            (None, Missing::Exempt) => return Admit::Granted(RateGrant::exempt()),
            (None, Missing::Refuse) => return missing(request, settings),
        };
        let n = self.cost(&facts);
        let now = limiter.clock().now();
        match limiter.try_acquire_n_at(n, now) {
            Ok(granted) => self.granted(granted, &facts, settings),
            Err(denied) => {
                let waits = self.in_line.is_some() && may_wait(&denied, patience);
                match waits {
                    true => Admit::MustWait,
                    false => self.refused(&denied, limiter.available_at(now), request, settings),
                }
            }
        }
    }

    fn wait<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Duration,
        again: bool,
    ) -> Admit<Self> {
        if !again {
            report::waited(&settings.name);
        }
        let Some(line) = self.in_line else {
            return self.admit(request, settings, None);
        };
        let facts = settings.facts(request);
        let limiter = self.source.owned(&facts);
        let now = limiter.clock().now();
        let n = self.cost(&facts);
        match (line.reserve)(&limiter, n, now.saturating_add(patience), now) {
            Ok(granted) => self.granted(granted, &facts, settings),
            Err(denied) => self.refused(&denied, limiter.available_at(now), request, settings),
        }
    }

    fn conclude<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        _: Option<Infallible>,
        _: Option<Duration>,
    ) -> Admit<Self> {
        self.admit(request, settings, None)
    }
}

/// Says of which partition a state is.
const fn in_partition<'a>(state: LimitState<'a>, key: &'a Option<[u8; 8]>) -> LimitState<'a> {
    match key {
        Some(key) => state.partition(key),
        None => state,
    }
}

/// Returns whether a request may wait that was denied.
pub(crate) fn may_wait(denied: &Denied, patience: Option<Duration>) -> bool {
    let wait = denied.retry_after();
    wait.zip(patience)
        .is_some_and(|(wait, patience)| wait <= patience)
}

/// Refuses a request that lacks the key of its limit.
pub(crate) fn missing<A: Admission, B>(request: &Request<B>, settings: &Settings) -> Admit<A> {
    let name = &*settings.name;
    report::denied(name, Cause::MissingKey);
    let refusal = Refusal::new(Cause::MissingKey).rule(name);
    Admit::Refused(Box::new(settings.refuse(request, &refusal)))
}

/// What a request holds that a rate granted.
#[doc(hidden)]
pub struct RateGrant<S: Source> {
    granted: Granted,
    /// The quota, if it is written into fields.
    quota: Option<Quota>,
    partition: Option<[u8; 8]>,
    settle: Option<(Count, Option<Settle>)>,
    /// The limiter, if permits may come back.
    limiter: Option<S::Owned>,
    cancel: Option<Cancel<S::Owned>>,
}

impl<S: Source> RateGrant<S> {
    /// The grant of a request that is not limited.
    fn exempt() -> Self {
        Self {
            granted: Granted::new(0, Tick::default()),
            quota: None,
            partition: None,
            settle: None,
            limiter: None,
            cancel: None,
        }
    }
}

impl<S: Source> fmt::Debug for RateGrant<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateGrant").field(&self.granted).finish()
    }
}

impl<S: Source> Grant for RateGrant<S> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        if let Some(quota) = self.quota {
            let state = LimitState::of_rate(&settings.name, quota);
            let state = in_partition(state.granted(self.granted.info()), &self.partition);
            settings.answers.write(std::iter::once(state), headers);
        }
    }

    #[inline]
    fn needs_end(&self) -> bool {
        self.settle.is_some()
    }

    fn reads_headers(&self) -> bool {
        matches!(self.settle, Some((_, Some(_))))
    }

    fn end(self, ended: Ended<'_>, settings: &Settings) {
        let (Some((count, settle)), Some(limiter)) = (self.settle, self.limiter) else {
            return;
        };
        let now = limiter.clock().now();
        let elapsed = now.saturating_since(self.granted.at());
        let taken = self.granted.n();
        let ended = Ended {
            elapsed,
            taken,
            ..ended
        };
        let actual = match (count, settings.failed(&ended)) {
            (Count::Failures, false) | (Count::Successes, true) => 0,
            _ => settle.map_or(taken, |settle| settle(&ended)),
        };
        match (actual < taken, self.cancel) {
            // Callers may wait behind this grant.
            (true, Some(cancel)) => {
                cancel(&limiter, self.granted, taken - actual, now);
            }
            _ if actual == taken => {}
            _ => {
                limiter.settle_at(self.granted, actual, now);
            }
        }
    }

    fn cancel(self) {
        let Some(limiter) = self.limiter else { return };
        let now = limiter.clock().now();
        match self.cancel {
            Some(cancel) => {
                let n = self.granted.n();
                cancel(&limiter, self.granted, n, now);
            }
            // Nothing comes back while another request waits behind this one.
            None => {
                limiter.roll_back_at(self.granted, now);
            }
        }
    }
}
