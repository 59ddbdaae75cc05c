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

    #[inline]
    fn cost<B>(&self, request: &Request<B>, settings: &Settings) -> u64 {
        let cost = self.cost.as_ref();
        cost.map_or(1, |cost| cost(&settings.facts(request)))
    }

    fn settles(&self) -> bool {
        self.settle.is_some() || self.count != Count::All
    }

    fn grant<B>(
        &self,
        granted: Granted,
        request: &Request<B>,
        settings: &Settings,
    ) -> RateGrant<S> {
        let delayed = granted.delay() > Duration::ZERO;
        let has_fields = settings.answers.has_fields();
        let owned = || self.source.owned(&settings.facts(request));
        RateGrant {
            settle: self.settles().then(|| (self.count, self.settle.clone())),
            limiter: (self.settles() || delayed).then(owned),
            cancel: self.in_line.map(|line| line.cancel),
            quota: has_fields.then(|| self.source.quota()).flatten(),
            granted,
        }
    }

    /// Returns whether there is nothing to do after this grant.
    #[inline]
    fn is_free(&self, granted: &Granted, settings: &Settings) -> bool {
        granted.delay() == Duration::ZERO && !settings.answers.has_fields() && !self.settles()
    }

    /// Keeps what a grant needs later.
    #[inline(never)]
    fn granted<B>(
        &self,
        granted: Granted,
        request: &Request<B>,
        settings: &Settings,
    ) -> Admit<Self> {
        let delay = granted.delay();
        let grant = self.grant(granted, request, settings);
        match delay {
            Duration::ZERO => Admit::Granted(grant),
            delay => Admit::Delayed(grant, delay),
        }
    }

    #[inline(never)]
    fn refused<B>(
        &self,
        denied: &Denied,
        remaining: u64,
        request: &Request<B>,
        settings: &Settings,
    ) -> Admit<Self> {
        let name = &*settings.name;
        report::denied(name, Cause::of(denied));
        let state = self.source.quota();
        let state = state.map(|quota| LimitState::of_rate(name, quota).denied(denied, remaining));
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
        let limiter = self.source.limiter(&settings.facts_here(request));
        let limiter = match (limiter, settings.missing) {
            (Some(limiter), _) => limiter,
            (None, Missing::Share) => self.source.shared(),
            (None, Missing::Exempt) => return Admit::Free,
            (None, Missing::Refuse) => return missing(request, settings),
        };
        let n = self.cost(request, settings);
        let now = limiter.clock().now();
        match limiter.try_acquire_n_at(n, now) {
            // Not moved, since that costs as much as everything else here.
            Ok(granted) if self.is_free(&granted, settings) => Admit::Free,
            Ok(granted) => self.granted(granted, request, settings),
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
    ) -> Admit<Self> {
        let Some(line) = self.in_line else {
            return self.admit(request, settings, None);
        };
        let limiter = self.source.owned(&settings.facts(request));
        let now = limiter.clock().now();
        let n = self.cost(request, settings);
        match (line.reserve)(&limiter, n, now.saturating_add(patience), now) {
            Ok(granted) => self.granted(granted, request, settings),
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
    settle: Option<(Count, Option<Settle>)>,
    /// The limiter, if permits may come back.
    limiter: Option<S::Owned>,
    cancel: Option<Cancel<S::Owned>>,
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
            let state = state.granted(self.granted.info());
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
            None => {
                limiter.undo_at(self.granted, now);
            }
        }
    }
}
