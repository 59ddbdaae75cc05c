//! Rates: one limiter for all requests, or one for each key.

mod grant;
mod source;

use std::fmt;
use std::future::Pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Request;
use tollgate::clock::Clock;
use tollgate::traits::{GiveBackLimiter, ReserveLimiter, SettleLimiter};
use tollgate::{Denied, Granted, Quota, Tick, TryAcquire};
use tollgate_http::{Ambiguous, Cause, FieldValues, LimitState, Refusal, RequestFacts};

pub(crate) use self::source::{NO_KEY, PlanOf};
pub use self::source::{PerKey, Shared, Source};

use self::grant::RateGrant;
use crate::admission::{Admission, Admit, Decide, First};
use crate::answered::Ended;
use crate::costs::{Costs, HasCosts};
use crate::head::Head;
use crate::key::HasKey;
use crate::settings::{MissingKey, Settings};

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
    costs: Costs,
    /// The plan of a request, if the table has plans.
    pub(crate) plan: Option<PlanOf>,
    /// Whether fields say which partition of the limit a request used.
    pub(crate) partitions: bool,
    /// How permits are reserved, if requests wait.
    in_line: Option<InLine<S::Owned>>,
    /// Whether requests that a queue would delay are refused.
    at_once: bool,
    /// Set when a grant is first delayed: then the limiter is a queue.
    is_queue: Arc<OnceLock<()>>,
}

impl<S: Source> Clone for Rate<S> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            costs: self.costs.clone(),
            plan: self.plan.clone(),
            partitions: self.partitions,
            in_line: self.in_line,
            at_once: self.at_once,
            is_queue: Arc::clone(&self.is_queue),
        }
    }
}

impl<S: Source> fmt::Debug for Rate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate")
            .field("quota", &self.source.quota(None))
            .field("count", &self.costs.count)
            .field("waits", &self.in_line.is_some())
            .finish_non_exhaustive()
    }
}

impl<S: Source> Rate<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source: Arc::new(source),
            costs: Costs::default(),
            plan: None,
            partitions: false,
            in_line: None,
            at_once: false,
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

    /// Lets no request wait.
    pub(crate) fn at_once(&mut self) {
        self.in_line = None;
        self.at_once = true;
    }

    /// Finds the key of a request once, and decides about it. Permits that come back later go to
    /// the limiter that granted them, even if the key's function returns another key by then.
    #[inline(always)]
    fn keyed(
        &self,
        head: Head<'_>,
        settings: &Settings,
        decide: impl FnOnce(&RequestFacts<'_>, Option<&S::Key<'_>>) -> Admit<Self>,
    ) -> Admit<Self> {
        let facts = settings.facts_here(head);
        match self.source.key(&facts, self.plan.as_ref()) {
            Ok(None) => without_key(head, settings, || decide(&facts, None)),
            Ok(key) => decide(&facts, key.as_ref()),
            Err(Ambiguous) => ambiguous(head, settings),
        }
    }

    /// Returns whether nothing is left to do after this grant.
    #[inline]
    fn is_free(&self, granted: &Granted, settings: &Settings) -> bool {
        granted.delay() == Duration::ZERO && !settings.answers.has_fields() && !self.costs.settles()
    }

    /// Returns the key of the partition that a request uses, if fields say it.
    fn partition(&self, key: Option<&S::Key<'_>>) -> Option<[u8; 8]> {
        let partition = self.partitions.then(|| self.source.partition(key));
        partition.flatten().map(u64::to_be_bytes)
    }

    /// Asks the limiter of a key. `None` means that it grants, and that nothing is left to do.
    #[inline(always)]
    fn ask(&self, n: u64, key: Option<&S::Key<'_>>, settings: &Settings) -> Option<RateOutcome<S>> {
        let limiter = self.source.limiter(key);
        let now = limiter.clock().now();
        match limiter.try_acquire_n_at(n, now) {
            // The grant is not moved: that would cost as much as everything else here.
            Ok(granted) if self.is_free(&granted, settings) => {
                settings.report().allowed();
                None
            }
            Ok(granted) if self.at_once && granted.delay() > Duration::ZERO => {
                let denied = Denied::later(n, granted.delay());
                limiter.roll_back_at(granted, now);
                Some(self.denied(denied, &limiter, key, now, settings))
            }
            Ok(granted) => Some(self.granted(granted, key, settings)),
            Err(denied) => Some(self.denied(denied, &limiter, key, now, settings)),
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
        settings.report().allowed();
        let values = match settings.answers.has_fields() {
            true => self.values(&granted, key, settings),
            false => FieldValues::default(),
        };
        let delay = granted.delay();
        if delay > Duration::ZERO {
            let _ = self.is_queue.set(());
        } else if !self.costs.settles() {
            return RateOutcome::Said(values);
        }
        let grant = RateGrant {
            most: self.costs.most(|| self.source.quota(key)),
            limiter: self.source.owned(key),
            cancel: self.in_line.map(|line| line.cancel),
            granted,
        };
        RateOutcome::Granted(Box::new(grant), values, delay)
    }

    /// Returns the fields of the answer to a granted request.
    fn values(
        &self,
        granted: &Granted,
        key: Option<&S::Key<'_>>,
        settings: &Settings,
    ) -> FieldValues {
        let partition = self.partition(key);
        let state = self.source.quota(key).map(|quota| {
            let state = LimitState::of_rate(&settings.name, quota).unit(self.costs.unit);
            in_partition(state.granted(granted.info()), &partition)
        });
        settings.answers.values(state.into_iter())
    }

    /// Keeps what the answer to a denied request needs.
    #[inline]
    fn denied(
        &self,
        denied: Denied,
        limiter: &S::Limiter<'_>,
        key: Option<&S::Key<'_>>,
        now: Tick,
        settings: &Settings,
    ) -> RateOutcome<S> {
        let is_said = settings.answers.says_limits();
        RateOutcome::Denied {
            denied,
            said: is_said.then(|| self.said(limiter, key, now)).flatten(),
        }
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

    /// Reserves permits that come within `patience`, for a request that waits in line.
    fn reserve(
        &self,
        n: u64,
        key: Option<&S::Key<'_>>,
        settings: &Settings,
        patience: Duration,
    ) -> Option<RateOutcome<S>> {
        let line = self.in_line?;
        let limiter = self.source.owned(key);
        let now = limiter.clock().now();
        let latest = now.saturating_add(patience);
        // A denial says how long after `latest` the permits come, and not how long from now.
        let granted = (line.reserve)(&limiter, n, latest, now).ok()?;
        Some(self.granted(granted, key, settings))
    }
}

impl<S: Source> HasCosts for Rate<S> {
    fn costs(&mut self) -> &mut Costs {
        &mut self.costs
    }
}

impl<A, C, S, K> HasKey for Rate<PerKey<A, C, S, K>> where PerKey<A, C, S, K>: Source {}

impl<S: Source> Admission for Rate<S> {}

impl<S: Source> Decide for Rate<S> {
    type Grant = Box<RateGrant<S>>;
    type Outcome = RateOutcome<S>;
    type Pending = Pending<RateOutcome<S>>;

    fn is_plain(&self) -> bool {
        self.costs.cost.is_none() && !self.costs.settles()
    }

    #[inline(always)]
    fn first<B>(&self, request: &Request<B>, settings: &Settings) -> First<RateOutcome<S>> {
        let facts = settings.plain_facts(Head::of(request));
        let key = match self.source.key(&facts, self.plan.as_ref()) {
            Ok(Some(key)) => key,
            Ok(None) => return First::Decided(RateOutcome::NoKey),
            Err(Ambiguous) => return First::Decided(RateOutcome::Ambiguous),
        };
        match self.ask(1, Some(&key), settings) {
            None => First::Free,
            Some(outcome) => First::Decided(outcome),
        }
    }

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        self.keyed(head, settings, |facts, key| {
            let n = self.costs.of(facts);
            let in_line = patience.filter(|_| has_place);
            let reserved = in_line.and_then(|patience| self.reserve(n, key, settings, patience));
            // If other requests came first, one that has waited is granted or refused now.
            match reserved.or_else(|| self.ask(n, key, settings)) {
                None => Admit::Free,
                Some(outcome) => self.go_on(outcome, head, settings, patience, has_place),
            }
        })
    }

    fn go_on(
        &self,
        outcome: RateOutcome<S>,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        let waits = |denied| self.in_line.is_some() && !has_place && may_wait(denied, patience);
        match outcome {
            RateOutcome::Said(values) => Admit::said(values),
            RateOutcome::Granted(grant, values, delay) => {
                if !delay.is_zero() && !has_place && !settings.is_shadow {
                    settings.report().waited();
                }
                Admit::granted(grant, values, delay, settings)
            }
            RateOutcome::Denied { denied, .. } if waits(&denied) => Admit::MustWait,
            RateOutcome::Denied { denied, said } => {
                let name = &*settings.name;
                let state = said.as_ref().map(|said| {
                    let state = LimitState::of_rate(name, said.quota).unit(self.costs.unit);
                    in_partition(state.denied(&denied, said.remaining), &said.partition)
                });
                let refusal = Refusal::of_denied(&denied)
                    .rule(name)
                    .limits(state.as_slice());
                settings.refuse(head, &refusal)
            }
            RateOutcome::Ambiguous => ambiguous(head, settings),
            RateOutcome::NoKey => {
                without_key(head, settings, || match self.ask(1, None, settings) {
                    None => Admit::Free,
                    Some(outcome) => self.go_on(outcome, head, settings, patience, has_place),
                })
            }
        }
    }

    fn needs_end(&self, _: &Self::Grant) -> bool {
        self.costs.settles()
    }

    fn reads_headers(&self, _: &Self::Grant, settings: &Settings) -> bool {
        self.costs.reads_headers(settings)
    }

    fn end(&self, grant: Self::Grant, mut ended: Ended<'_>, settings: &Settings) {
        let limiter = &grant.limiter;
        let now = limiter.clock().now();
        let taken = grant.granted.n();
        ended.elapsed = now.saturating_since(grant.granted.at());
        ended.taken = taken;
        let actual = self.costs.actual(&ended, grant.most, settings);
        let is_queue = self.is_queue.get().is_some();
        match (actual < taken, grant.cancel) {
            // Callers may wait behind this grant.
            (true, Some(cancel)) => {
                cancel(limiter, grant.granted, taken - actual, now);
            }
            // The same, in a queue. Elsewhere no caller waits, and a limiter in debt gets all back.
            (true, None) if actual == 0 && is_queue => {
                limiter.roll_back_at(grant.granted, now);
            }
            _ if actual == taken => {}
            _ => {
                limiter.settle_at(grant.granted, actual, now);
            }
        }
    }
}

/// Adds a partition's key to a state.
const fn in_partition<'a>(state: LimitState<'a>, key: &'a Option<[u8; 8]>) -> LimitState<'a> {
    match key {
        Some(key) => state.partition(key),
        None => state,
    }
}

/// Returns whether a request that was denied may wait. A request whose key is banned may not.
pub(crate) fn may_wait(denied: &Denied, patience: Option<Duration>) -> bool {
    match (denied, patience) {
        (Denied::Later { retry_after, .. }, Some(patience)) => *retry_after <= patience,
        _ => false,
    }
}

/// Does what the layer is set to do with a request that lacks the key of its limit. `share` decides
/// by the limit of all such requests.
pub(crate) fn without_key<A: Admission>(
    head: Head<'_>,
    settings: &Settings,
    share: impl FnOnce() -> Admit<A>,
) -> Admit<A> {
    match settings.missing {
        MissingKey::Exempt => Admit::Untold,
        MissingKey::Refuse => missing(head, settings),
        MissingKey::Share => share(),
    }
}

/// Refuses a request that has several keys of its limit. It can't share the limit of those without
/// one, or be exempt: a client that adds a line would have another limit, or none.
pub(crate) fn ambiguous<A: Admission>(head: Head<'_>, settings: &Settings) -> Admit<A> {
    let name = &*settings.name;
    let refusal = Refusal::new(Cause::Ambiguous).rule(name);
    settings.refuse(head, &refusal)
}

/// Refuses a request that lacks the key of its limit.
fn missing<A: Admission>(head: Head<'_>, settings: &Settings) -> Admit<A> {
    let name = &*settings.name;
    if settings.facts(head).client_address().is_none() {
        settings.report().no_peer();
    }
    let refusal = Refusal::new(Cause::MissingKey).rule(name);
    settings.refuse(head, &refusal)
}

/// What the limiter of a request decided, with all that depends on its key.
#[derive(Debug)]
pub enum RateOutcome<S: Source> {
    /// The request is granted, its answer has these fields, and no permit comes back.
    Said(FieldValues),
    /// The request is granted after this time, and its answer has these fields.
    Granted(Box<RateGrant<S>>, FieldValues, Duration),
    /// The request is denied.
    Denied { denied: Denied, said: Option<Said> },
    /// The request has no key, so that no limiter was asked.
    NoKey,
    /// The request has several keys, so that no limiter was asked.
    Ambiguous,
}

/// What the answer to a denied request says of its limit.
#[derive(Debug)]
pub struct Said {
    quota: Quota,
    remaining: u64,
    partition: Option<[u8; 8]>,
}
