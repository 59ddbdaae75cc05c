//! How many requests are served at once.

use std::convert::Infallible;
use std::future::Pending;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request};
use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};
use tollgate::keyed::{KeyedConcurrency, KeyedGuard};
use tollgate::{Concurrency, Denied};
use tollgate_http::{Ambiguous, Cause, LimitState, Refusal};

use crate::admission::{Admission, Admit, Grant, Sealed};
use crate::answered::Ended;
use crate::key::RequestKey;
use crate::rate::{NO_KEY, ambiguous, without_key};
use crate::report;
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

/// Refuses a request because others are being served.
fn refused<A: Admission, B>(
    denied: &Denied,
    (limit, inside): (u64, u64),
    request: &Request<B>,
    settings: &Settings,
) -> Admit<A> {
    let name = &*settings.name;
    report::denied(name, Cause::of(denied));
    let left = limit.saturating_sub(inside);
    let states = [LimitState::of_concurrency(name, limit).denied(denied, left)];
    let refusal = Refusal::of_denied(denied).rule(name).limits(&states);
    Admit::Refused(settings.refuse(request, &refusal))
}

impl Inside {
    fn refused<B>(
        &self,
        denied: &Denied,
        request: &Request<B>,
        settings: &Settings,
    ) -> Admit<Self> {
        let now = (self.limiter.limit(), self.limiter.inside());
        refused(denied, now, request, settings)
    }

    fn granted(
        &self,
        guard: ConcurrencyGuard<Arc<Concurrency>>,
        settings: &Settings,
    ) -> Admit<Self> {
        report::allowed(&settings.name);
        let limit = self.limiter.limit();
        let left = limit.saturating_sub(self.limiter.inside());
        Admit::Granted(InsideGrant(Some((guard, limit, left))))
    }
}

impl Sealed for Inside {}

impl Admission for Inside {
    type Grant = InsideGrant<ConcurrencyGuard<Arc<Concurrency>>>;
    type Pending = EnterFuture<Arc<Concurrency>>;
    type Outcome = Infallible;

    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        match self.limiter.try_enter_owned(1) {
            Ok(guard) => self.granted(guard, settings),
            Err(Denied::Busy { .. }) if patience.is_some() => Admit::MustWait,
            Err(denied) => self.refused(&denied, request, settings),
        }
    }

    fn wait<B>(&self, _: &Request<B>, _: &Settings, patience: Duration) -> Admit<Self> {
        Admit::Pending(self.limiter.enter_owned(1), Some(patience))
    }

    fn conclude<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        outcome: Option<Result<ConcurrencyGuard<Arc<Concurrency>>, Denied>>,
        _: Option<Duration>,
        _: bool,
    ) -> Admit<Self> {
        match outcome {
            Some(Ok(guard)) => self.granted(guard, settings),
            Some(Err(denied)) => self.refused(&denied, request, settings),
            None => self.refused(&Denied::busy(1), request, settings),
        }
    }
}

type Entered = Result<KeyedGuard<Arc<KeyedConcurrency>>, Denied>;

impl<K> InsideByKey<K> {
    /// Tries to enter. Also returns how many are inside.
    fn enter<Q: Hash>(&self, key: &Q) -> (Entered, u64) {
        let entered = self.limiter.try_enter_owned(key, 1);
        (entered, self.limiter.inside(key))
    }
}

impl<K> Sealed for InsideByKey<K> {}

impl<K: RequestKey> Admission for InsideByKey<K> {
    type Grant = InsideGrant<KeyedGuard<Arc<KeyedConcurrency>>>;
    type Pending = Pending<Infallible>;
    type Outcome = Infallible;

    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        _: Option<Duration>,
    ) -> Admit<Self> {
        let facts = settings.facts(request);
        let limit = self.limiter.limit();
        let decided = |(entered, inside)| match entered {
            Ok(guard) => {
                report::allowed(&settings.name);
                let left = limit.saturating_sub(inside);
                Admit::Granted(InsideGrant(Some((guard, limit, left))))
            }
            Err(denied) => refused(&denied, (limit, inside), request, settings),
        };
        match self.key.key(&facts) {
            Ok(Some(key)) => decided(self.enter(&key)),
            Err(Ambiguous) => ambiguous(request, settings),
            Ok(None) => without_key(request, settings, || decided(self.enter(&NO_KEY))),
        }
    }

    fn wait<B>(&self, request: &Request<B>, settings: &Settings, _: Duration) -> Admit<Self> {
        self.admit(request, settings, None)
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

/// What a request holds that is inside: a guard, which leaves when it is dropped, the limit, and
/// how many more could enter then.
#[doc(hidden)]
#[derive(Debug)]
pub struct InsideGrant<G>(Option<(G, u64, u64)>);

impl<G> Grant for InsideGrant<G> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        if let Some((_, limit, left)) = self.0 {
            let state = LimitState::of_concurrency(&settings.name, limit).untouched(1, left);
            settings.answers.write(std::iter::once(state), headers);
        }
    }

    fn needs_end(&self) -> bool {
        self.0.is_some()
    }

    fn reads_headers(&self, _: &Settings) -> bool {
        false
    }

    fn end(self, _: Ended<'_>, _: &Settings) {}

    fn cancel(self) {}
}
