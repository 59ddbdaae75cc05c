//! Rates: one limiter for all requests, or one for each key.

use std::convert::Infallible;
use std::fmt;
use std::future::Pending;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use http::{HeaderMap, Request};
use tollgate::algorithm::{Algorithm, ChangeQuota, Debt, GiveBack, Settings as Words};
use tollgate::clock::Clock;
use tollgate::keyed::{Key, KeyHasher, OwnedKey};
use tollgate::traits::{GiveBackLimiter, ReserveLimiter, SettleLimiter};
use tollgate::{Denied, Granted, Keyed, Quota, RateLimiter, Tick};
use tollgate_http::{Cause, LimitState, Refusal, RequestFacts, Unit};

use crate::admission::{Admission, Admit, First, Grant, Sealed};
use crate::answered::Ended;
use crate::key::RequestKey;
use crate::report;
use crate::settings::{Missing, Settings};
use crate::ticket::Unserved;

/// Which requests a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Count {
    /// All requests.
    #[default]
    All,
    /// Requests that failed. The permits of others are given back.
    Failures,
    /// Requests that succeeded. The permits of others are given back, also those of requests whose
    /// client went away before the answer.
    Successes,
}

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

    /// Returns the key of a request, or `None` if it has none.
    #[doc(hidden)]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<Self::Key<'r>>;

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
    fn key<'r>(&self, _: &RequestFacts<'r>) -> Option<()> {
        Some(())
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
    type Key<'r> = K::Key<'r>;
    type Limiter<'a> = Key<'a, A, C>;
    type Owned = OwnedKey<A, C, S>;

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<K::Key<'r>> {
        self.key.key(facts)
    }

    #[inline]
    fn limiter(&self, key: Option<&K::Key<'_>>) -> Key<'_, A, C> {
        match key {
            Some(key) => self.table.key(key),
            None => self.table.key(&NO_KEY),
        }
    }

    fn owned(&self, key: Option<&K::Key<'_>>) -> OwnedKey<A, C, S> {
        match key {
            Some(key) => self.table.key_owned(key),
            None => self.table.key_owned(&NO_KEY),
        }
    }

    fn quota(&self, key: Option<&K::Key<'_>>) -> Option<Quota> {
        let has_overrides = self.table.max_overrides() > 0;
        let own = key.filter(|_| has_overrides);
        let own = own.and_then(|key| self.table.own_algorithm(key));
        Some(own.map_or_else(|| self.table.quota(), |own| own.quota()))
    }

    fn partition(&self, key: Option<&K::Key<'_>>) -> Option<u64> {
        let hash = self.table.hasher().hash_key(key?);
        Some(PARTITIONS.hash_one(hash))
    }
}

pub(crate) type CostOf = Arc<dyn Fn(&RequestFacts<'_>) -> u64 + Send + Sync>;
pub(crate) type Settle = Arc<dyn Fn(&Ended<'_>) -> u64 + Send + Sync>;
type Reserve<L> = fn(&L, u64, Tick, Tick) -> Result<Granted, Denied>;
type Cancel<L> = fn(&L, Granted, u64, Tick) -> (Granted, u64);

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

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) that limits a rate.
pub struct Rate<S: Source> {
    pub(crate) source: Arc<S>,
    pub(crate) cost: Option<CostOf>,
    pub(crate) count: Count,
    pub(crate) settle: Option<Settle>,
    /// Whether fields say which partition of the limit a request used.
    pub(crate) partitions: bool,
    /// What fields say that the limit counts.
    pub(crate) unit: Unit,
    /// How permits are reserved, if requests wait.
    in_line: Option<InLine<S::Owned>>,
    /// It is set once a grant was delayed: the limiter is a queue.
    is_queue: Arc<OnceLock<()>>,
}

impl<S: Source> Clone for Rate<S> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            cost: self.cost.clone(),
            count: self.count,
            settle: self.settle.clone(),
            partitions: self.partitions,
            unit: self.unit,
            in_line: self.in_line,
            is_queue: Arc::clone(&self.is_queue),
        }
    }
}

impl<S: Source> fmt::Debug for Rate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate")
            .field("quota", &self.source.quota(None))
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
            unit: Unit::Requests,
            in_line: None,
            is_queue: Arc::default(),
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
    fn cost(&self, facts: &RequestFacts<'_>) -> u64 {
        self.cost.as_ref().map_or(1, |cost| cost(facts))
    }

    fn settles(&self) -> bool {
        self.settle.is_some() || self.count != Count::All
    }

    /// Finds the key of a request once, and decides about it. What comes back later goes to the
    /// limiter that granted it, even if the function of the key answers something else by then.
    #[inline(always)]
    fn keyed<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        decide: impl FnOnce(&RequestFacts<'_>, Option<&S::Key<'_>>) -> Admit<Self>,
    ) -> Admit<Self> {
        let facts = settings.facts_here(request);
        match (self.source.key(&facts), settings.missing) {
            (None, Missing::Exempt) => Admit::Free,
            (None, Missing::Refuse) => missing(request, settings),
            (key, _) => decide(&facts, key.as_ref()),
        }
    }

    /// Returns whether there is nothing to do after this grant.
    #[inline]
    fn is_free(&self, granted: &Granted, settings: &Settings) -> bool {
        granted.delay() == Duration::ZERO && !settings.answers.has_fields() && !self.settles()
    }

    /// Returns the key of the partition that a request uses, if fields say it.
    fn partition(&self, key: Option<&S::Key<'_>>) -> Option<[u8; 8]> {
        let partition = self.partitions.then(|| self.source.partition(key));
        partition.flatten().map(u64::to_be_bytes)
    }

    /// Asks the limiter of a key. `None` means that it grants, and there is nothing to do later.
    #[inline(always)]
    fn ask(&self, n: u64, key: Option<&S::Key<'_>>, settings: &Settings) -> Option<RateOutcome<S>> {
        let limiter = self.source.limiter(key);
        let now = limiter.clock().now();
        match limiter.try_acquire_n_at(n, now) {
            // It is not moved, since that costs as much as everything else here.
            Ok(granted) if self.is_free(&granted, settings) => {
                report::allowed(&settings.name);
                None
            }
            Ok(granted) => Some(self.granted(granted, key, settings)),
            Err(denied) => {
                let is_said = settings.answers.says_limits();
                Some(RateOutcome::Denied {
                    denied,
                    said: is_said.then(|| self.said(&limiter, key, now)).flatten(),
                })
            }
        }
    }

    /// Keeps what a grant needs later.
    #[inline(never)]
    fn granted(
        &self,
        granted: Granted,
        key: Option<&S::Key<'_>>,
        settings: &Settings,
    ) -> RateOutcome<S> {
        report::allowed(&settings.name);
        let delay = granted.delay();
        let has_fields = settings.answers.has_fields();
        let may_return = self.settles() || delay > Duration::ZERO;
        if delay > Duration::ZERO {
            let _ = self.is_queue.set(());
        }
        let grant = RateGrant {
            settle: self.settles().then(|| (self.count, self.settle.clone())),
            limiter: may_return.then(|| self.source.owned(key)),
            cancel: self.in_line.map(|line| line.cancel),
            is_queue: self.settles().then(|| Arc::clone(&self.is_queue)),
            quota: has_fields.then(|| self.source.quota(key)).flatten(),
            partition: has_fields.then(|| self.partition(key)).flatten(),
            unit: self.unit,
            granted,
        };
        RateOutcome::Granted(Box::new(grant), delay)
    }

    /// Returns what the answer to a denied request says of the limit.
    #[inline(never)]
    fn said(&self, limiter: &S::Limiter<'_>, key: Option<&S::Key<'_>>, now: Tick) -> Option<Said> {
        Some(Said {
            quota: self.source.quota(key)?,
            remaining: limiter.available_at(now),
            partition: self.partition(key),
        })
    }

    /// Turns an outcome into what the layer does.
    fn decided<B>(
        &self,
        outcome: RateOutcome<S>,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        let waits = |denied| self.in_line.is_some() && may_wait(denied, patience);
        match outcome {
            RateOutcome::Granted(grant, Duration::ZERO) => Admit::Granted(grant),
            RateOutcome::Granted(grant, delay) => {
                report::waited(&settings.name);
                Admit::Delayed(Unserved::new(grant), delay)
            }
            RateOutcome::Denied { denied, .. } if waits(&denied) => Admit::MustWait,
            RateOutcome::Denied { denied, said } => {
                let name = &*settings.name;
                report::denied(name, Cause::of(&denied));
                let state = said.as_ref().map(|said| {
                    let state = LimitState::of_rate(name, said.quota).unit(self.unit);
                    in_partition(state.denied(&denied, said.remaining), &said.partition)
                });
                let refusal = Refusal::of_denied(&denied)
                    .rule(name)
                    .limits(state.as_slice());
                Admit::Refused(settings.refuse(request, &refusal))
            }
            RateOutcome::NoKey => match settings.missing {
                Missing::Exempt => Admit::Free,
                Missing::Refuse => missing(request, settings),
                Missing::Share => match self.ask(1, None, settings) {
                    None => Admit::Free,
                    Some(outcome) => self.decided(outcome, request, settings, patience),
                },
            },
        }
    }
}

impl<S: Source> Sealed for Rate<S> {}

impl<S: Source> Admission for Rate<S> {
    type Grant = Box<RateGrant<S>>;
    type Pending = Pending<Infallible>;
    type Outcome = RateOutcome<S>;

    fn is_plain(&self) -> bool {
        self.cost.is_none() && !self.settles()
    }

    #[inline(always)]
    fn first<B>(&self, request: &Request<B>, settings: &Settings) -> First<RateOutcome<S>> {
        let facts = settings.plain_facts(request);
        let Some(key) = self.source.key(&facts) else {
            return First::Decided(RateOutcome::NoKey);
        };
        match self.ask(1, Some(&key), settings) {
            None => First::Free,
            Some(outcome) => First::Decided(outcome),
        }
    }

    fn go_on<B>(
        &self,
        outcome: RateOutcome<S>,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        self.decided(outcome, request, settings, patience)
    }

    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        self.keyed(request, settings, |facts, key| {
            match self.ask(self.cost(facts), key, settings) {
                None => Admit::Free,
                Some(outcome) => self.decided(outcome, request, settings, patience),
            }
        })
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
        let reserved = self.keyed(request, settings, |facts, key| {
            let limiter = self.source.owned(key);
            let now = limiter.clock().now();
            let latest = now.saturating_add(patience);
            match (line.reserve)(&limiter, self.cost(facts), latest, now) {
                Ok(granted) => match self.granted(granted, key, settings) {
                    RateOutcome::Granted(grant, Duration::ZERO) => Admit::Granted(grant),
                    RateOutcome::Granted(grant, delay) => {
                        Admit::Delayed(Unserved::new(grant), delay)
                    }
                    RateOutcome::Denied { .. } | RateOutcome::NoKey => Admit::MustWait,
                },
                Err(_) => Admit::MustWait,
            }
        });
        match reserved {
            // Others came first. The denial of the reservation says how long after `latest` the
            // permits come, and not how long from now.
            Admit::MustWait => self.admit(request, settings, None),
            reserved => reserved,
        }
    }

    fn conclude<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        _: Option<Infallible>,
        _: Option<Duration>,
        _: bool,
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

/// Returns whether a request may wait that was denied. One whose key is banned may not.
pub(crate) fn may_wait(denied: &Denied, patience: Option<Duration>) -> bool {
    match (denied, patience) {
        (Denied::Later { retry_after, .. }, Some(patience)) => *retry_after <= patience,
        _ => false,
    }
}

/// Refuses a request that lacks the key of its limit.
pub(crate) fn missing<A: Admission, B>(request: &Request<B>, settings: &Settings) -> Admit<A> {
    let name = &*settings.name;
    report::denied(name, Cause::MissingKey);
    if settings.facts(request).client_address().is_none() {
        report::no_peer(name);
    }
    let refusal = Refusal::new(Cause::MissingKey).rule(name);
    Admit::Refused(settings.refuse(request, &refusal))
}

/// What the limiter of a request decided, with all that depends on its key.
#[doc(hidden)]
#[derive(Debug)]
pub enum RateOutcome<S: Source> {
    /// It is granted after this time.
    Granted(Box<RateGrant<S>>, Duration),
    /// It is denied.
    Denied { denied: Denied, said: Option<Said> },
    /// The request has no key, so that no limiter was asked.
    NoKey,
}

/// What the answer to a denied request says of its limit.
#[doc(hidden)]
#[derive(Debug)]
pub struct Said {
    quota: Quota,
    remaining: u64,
    partition: Option<[u8; 8]>,
}

/// What a request holds that a rate granted. It is in a box, since it is large and is moved several
/// times.
#[doc(hidden)]
pub struct RateGrant<S: Source> {
    granted: Granted,
    /// The quota, if it is written into fields.
    quota: Option<Quota>,
    partition: Option<[u8; 8]>,
    unit: Unit,
    settle: Option<(Count, Option<Settle>)>,
    /// The limiter, if permits may come back.
    limiter: Option<S::Owned>,
    cancel: Option<Cancel<S::Owned>>,
    is_queue: Option<Arc<OnceLock<()>>>,
}

impl<S: Source> fmt::Debug for RateGrant<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateGrant").field(&self.granted).finish()
    }
}

impl<S: Source> Grant for Box<RateGrant<S>> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        if let Some(quota) = self.quota {
            let state = LimitState::of_rate(&settings.name, quota).unit(self.unit);
            let state = in_partition(state.granted(self.granted.info()), &self.partition);
            settings.answers.write(std::iter::once(state), headers);
        }
    }

    #[inline]
    fn needs_end(&self) -> bool {
        self.settle.is_some()
    }

    fn reads_headers(&self, settings: &Settings) -> bool {
        let Some((count, settle)) = &self.settle else {
            return false;
        };
        settle.is_some() || (*count != Count::All && settings.is_failure.is_some())
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
        let is_queue = self.is_queue.is_some_and(|it| it.get().is_some());
        match (actual < taken, self.cancel) {
            // Callers may wait behind this grant.
            (true, Some(cancel)) => {
                cancel(&limiter, self.granted, taken - actual, now);
            }
            // The same, in a queue. Elsewhere no caller waits, and a limiter in debt gets all back.
            (true, None) if actual == 0 && is_queue => {
                limiter.roll_back_at(self.granted, now);
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
