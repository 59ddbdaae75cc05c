//! How many requests are served at once.

use std::future::Pending;
use std::hash::Hash;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Timeout, timeout};
use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};
use tollgate::keyed::{KeyedConcurrency, KeyedGuard};
use tollgate::{Concurrency, Denied};
use tollgate_http::{Ambiguous, LimitState, Refusal};

use crate::admission::{Admission, Admit, Decide, Grant};
use crate::answered::Ended;
use crate::head::Head;
use crate::key::{HasKey, RequestKey};
use crate::rate::{NO_KEY, ambiguous, without_key};
use crate::settings::Settings;

/// The limit of a [`RateLimitLayer`](crate::RateLimitLayer) that limits how many requests are
/// served at once.
#[derive(Debug, Clone)]
pub struct Inside {
    pub(crate) limiter: Arc<Concurrency>,
}

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) that limits how many requests of a key
/// are served at once.
#[derive(Debug)]
pub struct InsideByKey<K> {
    pub(crate) limiter: Arc<KeyedConcurrency>,
    pub(crate) key: Arc<K>,
}

impl<K> Clone for InsideByKey<K> {
    fn clone(&self) -> Self {
        Self {
            limiter: Arc::clone(&self.limiter),
            key: Arc::clone(&self.key),
        }
    }
}

type Guard = ConcurrencyGuard<Arc<Concurrency>>;
type KeyGuard = KeyedGuard<Arc<KeyedConcurrency>>;

/// Grants a request that entered. Refuses one that could not: others are being served.
fn decided<A, G>(
    entered: Result<G, Denied>,
    (limit, inside): (u64, u64),
    head: Head<'_>,
    settings: &Settings,
) -> Admit<A>
where
    A: Decide<Grant = InsideGrant<G>>,
{
    let name = &*settings.name;
    let left = limit.saturating_sub(inside);
    match entered {
        Ok(guard) => {
            settings.report().allowed();
            let state = LimitState::of_concurrency(name, limit).untouched(1, left);
            let values = settings.answers.values(iter::once(state));
            Admit::Granted(InsideGrant(guard), values)
        }
        Err(denied) => {
            let states = [LimitState::of_concurrency(name, limit).denied(&denied, left)];
            let refusal = Refusal::of_denied(&denied).rule(name).limits(&states);
            settings.refuse(head, &refusal)
        }
    }
}

impl Admission for Inside {}

impl Decide for Inside {
    type Grant = InsideGrant<Guard>;
    type Outcome = Result<Result<Guard, Denied>, Elapsed>;
    type Pending = Timeout<EnterFuture<Arc<Concurrency>>>;

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        match patience.filter(|_| has_place) {
            Some(patience) => Admit::Pending(timeout(patience, self.limiter.enter_owned(1))),
            None => match self.limiter.try_enter_owned(1) {
                Err(Denied::Busy { .. }) if patience.is_some() => Admit::MustWait,
                entered => self.go_on(Ok(entered), head, settings, patience, has_place),
            },
        }
    }

    #[inline]
    fn go_on(
        &self,
        outcome: Self::Outcome,
        head: Head<'_>,
        settings: &Settings,
        _: Option<Duration>,
        _: bool,
    ) -> Admit<Self> {
        let entered = outcome.unwrap_or_else(|_| Err(Denied::busy(1)));
        let now = (self.limiter.limit(), self.limiter.inside());
        decided(entered, now, head, settings)
    }

    fn needs_end(&self, _: &Self::Grant) -> bool {
        true
    }

    fn reads_headers(&self, _: &Self::Grant, _: &Settings) -> bool {
        false
    }

    fn end(&self, _: Self::Grant, _: Ended<'_>, _: &Settings) {}
}

impl<K: RequestKey> InsideByKey<K> {
    /// Tries to enter. Also returns how many are inside.
    fn enter<Q: Hash>(&self, key: &Q) -> <Self as Decide>::Outcome {
        let entered = self.limiter.try_enter_owned(key, 1);
        (entered, self.limiter.inside(key))
    }
}

impl<K> HasKey for InsideByKey<K> {}

impl<K: RequestKey> Admission for InsideByKey<K> {}

impl<K: RequestKey> Decide for InsideByKey<K> {
    type Grant = InsideGrant<KeyGuard>;
    type Outcome = (Result<KeyGuard, Denied>, u64);
    type Pending = Pending<Self::Outcome>;

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        let go_on = |outcome| self.go_on(outcome, head, settings, patience, has_place);
        match self.key.key(&settings.facts(head)) {
            Ok(Some(key)) => go_on(self.enter(&key)),
            Err(Ambiguous) => ambiguous(head, settings),
            Ok(None) => without_key(head, settings, || go_on(self.enter(&NO_KEY))),
        }
    }

    fn go_on(
        &self,
        (entered, inside): Self::Outcome,
        head: Head<'_>,
        settings: &Settings,
        _: Option<Duration>,
        _: bool,
    ) -> Admit<Self> {
        decided(entered, (self.limiter.limit(), inside), head, settings)
    }

    fn needs_end(&self, _: &Self::Grant) -> bool {
        true
    }

    fn reads_headers(&self, _: &Self::Grant, _: &Settings) -> bool {
        false
    }

    fn end(&self, _: Self::Grant, _: Ended<'_>, _: &Settings) {}
}

/// What a request inside holds: a guard that leaves when it is dropped.
#[derive(Debug)]
pub struct InsideGrant<G>(G);

impl<G> Grant for InsideGrant<G> {
    fn cancel(self) {}
}
