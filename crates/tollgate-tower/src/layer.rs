//! The layer.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Method, header};
use tollgate::algorithm::{Algorithm, ChangeQuota, Debt, GiveBack, Settings as Words};
use tollgate::clock::Clock;
use tollgate::keyed::{KeyHasher, KeyedConcurrency};
use tollgate::traits::{ReserveLimiter, SettleLimiter};
use tollgate::{Concurrency, ConfigError, Keyed, Limiter, Quota};
use tollgate_http::{Answers, Body, ClientAddress, Fields, PathForm, RequestFacts};
use tower_layer::Layer;

use crate::admission::Admission;
use crate::answered::Ended;
use crate::inside::{Inside, InsideByKey};
use crate::key::{ByAddress, RequestKey};
#[cfg(feature = "policy")]
use crate::policy::ByPolicy;
use crate::rate::{Count, PerKey, Rate, Shared, Source};
use crate::service::RateLimit;
use crate::settings::{Missing, Settings, Wait};
use crate::ticket::Limits;

/// A layer that limits the requests of a service.
#[derive(Clone)]
#[must_use]
pub struct RateLimitLayer<A> {
    admission: A,
    settings: Settings,
}

impl<L, P, C> RateLimitLayer<Rate<Shared<Limiter<L, C, P>>>>
where
    L: ChangeQuota,
    Limiter<L, C, P>: SettleLimiter<Clock: Clock> + Send + Sync + 'static,
{
    /// One limit for all requests.
    pub fn shared(limiter: impl Into<Arc<Limiter<L, C, P>>>) -> Self {
        let limiter = limiter.into();
        let quota = Some(limiter.quota());
        Self::of(Rate::new(Shared { limiter, quota }))
    }
}

impl<L> RateLimitLayer<Rate<Shared<L>>>
where
    L: SettleLimiter<Clock: Clock> + Send + Sync + 'static,
{
    /// One limit for all requests, by a limiter of any type, such as a `Sharded`. The quota is what
    /// the fields of answers say.
    pub fn limiter(limiter: impl Into<Arc<L>>, quota: Option<Quota>) -> Self {
        let limiter = limiter.into();
        Self::of(Rate::new(Shared { limiter, quota }))
    }
}

impl<A, C, S> RateLimitLayer<Rate<PerKey<A, C, S, ByAddress>>>
where
    A: Algorithm + GiveBack + Debt + ChangeQuota + Words + Clone + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
    S: KeyHasher + Send + Sync + 'static,
{
    /// A limit for each client address: each IPv4 address, and each network of 64 bits of IPv6.
    pub fn by_address(table: impl Into<Arc<Keyed<A, C, S>>>) -> Self {
        Self::by_key(table, ByAddress::default())
    }
}

impl<A, C, S, K> RateLimitLayer<Rate<PerKey<A, C, S, K>>>
where
    A: Algorithm + GiveBack + Debt + ChangeQuota + Words + Clone + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
    S: KeyHasher + Send + Sync + 'static,
    K: RequestKey,
{
    /// A limit for each key.
    pub fn by_key(table: impl Into<Arc<Keyed<A, C, S>>>, key: K) -> Self {
        let table = table.into();
        Self::of(Rate::new(PerKey { table, key }))
    }
}

impl RateLimitLayer<Inside> {
    /// A limit on how many requests are served at once. Others are refused with 503, or wait in
    /// order of arrival: see [`wait`](Self::wait). A request is inside until the end of its
    /// answer's body.
    pub fn concurrency(limiter: impl Into<Arc<Concurrency>>) -> Self {
        let limiter = limiter.into();
        Self::of(Inside { limiter })
    }
}

impl<K: RequestKey> RateLimitLayer<InsideByKey<K>> {
    /// A limit on how many requests of each key are served at once.
    pub fn concurrency_by_key(limiter: impl Into<Arc<KeyedConcurrency>>, key: K) -> Self {
        let limiter = limiter.into();
        Self::of(InsideByKey { limiter, key })
    }
}

#[cfg(feature = "policy")]
impl<C: tollgate_policy::PolicyClock> RateLimitLayer<ByPolicy<C>> {
    /// The limits of a policy.
    pub fn policy(policy: impl Into<Arc<tollgate_policy::LivePolicy<C>>>) -> Self {
        let policy = policy.into();
        Self::of(ByPolicy { policy, own: None })
    }

    /// Supplies facts of the program's own, such as the user. They take precedence over the
    /// request's.
    pub fn facts<F>(mut self, facts: F) -> Self
    where
        F: for<'r> Fn(
                &RequestFacts<'r>,
                &tollgate_policy::FactName,
            ) -> Option<tollgate_policy::Value<'r>>
            + Send
            + Sync
            + 'static,
    {
        self.admission.own = Some(Arc::new(facts));
        self
    }
}

impl<S: Source> RateLimitLayer<Rate<S>> {
    /// Sets what a request costs, in permits. One, unless this says otherwise.
    pub fn cost(mut self, cost: impl Fn(&RequestFacts<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.admission.cost = Some(Arc::new(cost));
        self
    }

    /// Sets which requests count: all, those that failed, or those that succeeded. The permits of
    /// others come back at the end of the answer's body.
    pub fn count(mut self, count: Count) -> Self {
        self.admission.count = count;
        self
    }

    /// Settles what a request cost in the end.
    pub fn settle(mut self, actual: impl Fn(&Ended<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.admission.settle = Some(Arc::new(actual));
        self
    }

    /// Lets requests wait.
    pub fn wait(mut self, time: Duration, requests: u64) -> Result<Self, ConfigError>
    where
        S::Owned: ReserveLimiter,
    {
        self.admission.in_line();
        self.may_wait(time, requests)
    }
}

impl RateLimitLayer<Inside> {
    /// Lets requests wait.
    pub fn wait(self, time: Duration, requests: u64) -> Result<Self, ConfigError> {
        self.may_wait(time, requests)
    }
}

#[cfg(feature = "policy")]
impl<C: tollgate_policy::PolicyClock> RateLimitLayer<ByPolicy<C>> {
    /// Lets requests wait.
    pub fn wait(self, time: Duration, requests: u64) -> Result<Self, ConfigError> {
        self.may_wait(time, requests)
    }
}

impl<A> RateLimitLayer<A> {
    fn of(admission: A) -> Self {
        let settings = Settings::new();
        Self {
            admission,
            settings,
        }
    }

    fn may_wait(mut self, time: Duration, requests: u64) -> Result<Self, ConfigError> {
        let waiting = Arc::new(Concurrency::new(requests)?);
        self.settings.wait = Some(Wait { time, waiting });
        Ok(self)
    }

    /// Sets the name of the limit in fields, bodies and reports: `default` unless this says
    /// otherwise. Rules of a policy have names of their own.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Sets how answers are written.
    pub fn answers(mut self, answers: Answers) -> Self {
        self.settings.answers = answers;
        self
    }

    /// Sets which fields of answers say what a client has left. None, unless this says otherwise.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.settings.answers = self.settings.answers.fields(fields);
        self
    }

    /// Sets the body of refusals: a line of text, unless this says otherwise.
    pub fn body(mut self, body: Body) -> Self {
        self.settings.answers = self.settings.answers.body(body);
        self
    }

    /// Sets how the client's address is found: it is the peer's, unless this trusts a proxy.
    pub fn client_address(mut self, address: ClientAddress) -> Self {
        self.settings.address = address;
        self
    }

    /// Sets where the address of the connection's other end is found among a request's extensions.
    pub fn peer(mut self, peer: fn(&Extensions) -> Option<IpAddr>) -> Self {
        self.settings.peer = Some(peer);
        self
    }

    /// Sets in which form rules and keys see a path.
    pub fn path_form(mut self, form: PathForm) -> Self {
        self.settings.path = form;
        self
    }

    /// Sets what happens to a request that lacks the key of its limit. Rules of a policy have a
    /// field for it.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.settings.missing = missing;
        self
    }

    /// Exempts requests. Exemptions add up.
    pub fn exempt_if(
        mut self,
        test: impl Fn(&RequestFacts<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.is_exempt = Some(match self.settings.is_exempt.take() {
            Some(others) => Arc::new(move |facts| others(facts) || test(facts)),
            None => Arc::new(test),
        });
        self
    }

    /// Exempts preflight requests of CORS.
    pub fn exempt_preflight(self) -> Self {
        self.exempt_if(|facts| {
            let has = |name| facts.headers().contains_key(name);
            facts.method() == Method::OPTIONS
                && has(header::ORIGIN)
                && has(header::ACCESS_CONTROL_REQUEST_METHOD)
        })
    }

    /// Sets which requests failed, for limits that count failures or successes. Unless this says
    /// otherwise, these are requests without an answer, with a status of 400 or above, and with a
    /// body that failed.
    pub fn failure_if(mut self, test: impl Fn(&Ended<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.settings.is_failure = Some(Arc::new(test));
        self
    }
}

impl<S, A: Admission + Clone> Layer<S> for RateLimitLayer<A> {
    type Service = RateLimit<S, A>;

    fn layer(&self, service: S) -> RateLimit<S, A> {
        let Self {
            admission,
            settings,
        } = self.clone();
        let limits = Limits {
            admission,
            settings,
        };
        RateLimit::new(service, Arc::new(limits))
    }
}

impl<A> fmt::Debug for RateLimitLayer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
