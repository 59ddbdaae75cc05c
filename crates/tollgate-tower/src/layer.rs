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

/// A layer that limits the requests of a service. A request above the limit is refused, or waits.
///
/// A layer is made for one limiter, for a table of limiters by key, or for a policy. Its services share
/// the limits, and so do their clones: a server that clones its service for each connection has one
/// limit for all of them.
///
/// ```
/// use http::{Request, Response};
/// use tollgate::{Limiter, Quota};
/// use tollgate_tower::{Fields, RateLimitLayer};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
///     Ok(Response::new("hello".into()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(60).burst(2))?;
/// let limit = RateLimitLayer::shared(limiter).name("hello").fields(Fields::LIST);
/// let service = limit.layer(service_fn(hello));
///
/// let answer = service.clone().oneshot(Request::new(())).await?;
/// assert_eq!(answer.status(), 200);
/// assert_eq!(answer.headers()["ratelimit"], r#""hello";r=1;t=60"#);
/// let answer = service.clone().oneshot(Request::new(())).await?;
/// assert_eq!(answer.status(), 200);
/// let answer = service.oneshot(Request::new(())).await?;
/// assert_eq!(answer.status(), 429);
/// assert!(answer.headers().contains_key("retry-after"));
/// # Ok(())
/// # }
/// ```
///
/// The service's answers may have bodies of any type whose data can be made from `Bytes`, such as those
/// of axum, hyper and tonic.
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
    ///
    /// A [`Limiter`] or an `Arc` of one: keep a clone of the `Arc` to look at the limit, or to use it
    /// elsewhere.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(60).burst(10))?);
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter));
    /// let service = limit.layer(service_fn(hello));
    /// assert_eq!(service.oneshot(Request::new(())).await?.status(), 200);
    /// assert_eq!(limiter.available(), 9);
    /// # Ok(())
    /// # }
    /// ```
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
    /// One limit for all requests, by a limiter of any type, such as a
    /// [`Sharded`](tollgate::Sharded). The quota is what the fields of answers say; without it, there
    /// are none.
    ///
    /// ```
    /// use tollgate::{Quota, Sharded};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let quota = Quota::per_second(1_000_000);
    /// let limiter = Sharded::token_bucket(quota)?;
    /// let limit = RateLimitLayer::limiter(limiter, Some(quota));
    /// # let _ = limit;
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
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
    ///
    /// The address is that of the connection's other end. Behind a proxy that is the proxy, so all
    /// clients have one limit until [`client_address`](Self::client_address) trusts it. For networks of
    /// other sizes use [`by_key`](Self::by_key) with [`ByAddress::prefix`].
    ///
    /// A server has to say the addresses of its connections: see [`peer`](Self::peer). If it does not,
    /// each request is refused with 400, unless [`missing`](Self::missing) says otherwise.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{PeerAddr, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 100_000)?;
    /// let service = RateLimitLayer::by_address(limits).layer(service_fn(hello));
    /// let from = |client: [u8; 4]| {
    ///     let address = PeerAddr((client, 40_000).into());
    ///     Request::builder().extension(address).body(())
    /// };
    /// assert_eq!(service.clone().oneshot(from([192, 0, 2, 1])?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(from([192, 0, 2, 1])?).await?.status(), 429);
    /// assert_eq!(service.clone().oneshot(from([192, 0, 2, 2])?).await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
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
    /// A limit for each key: a closure, [`ByHeader`](crate::ByHeader), or another [`RequestKey`].
    ///
    /// A request without a key is refused with 400, unless [`missing`](Self::missing) says otherwise.
    /// All keys have the same quota, apart from the table's overrides; for plans use a policy.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{RateLimitLayer, RequestFacts};
    ///
    /// /// What the layer that authenticates requests found.
    /// #[derive(Clone)]
    /// struct User(u64);
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 100_000)?;
    /// let by_user = |facts: &RequestFacts<'_>| facts.extension::<User>().map(|user| user.0);
    /// let service = RateLimitLayer::by_key(limits, by_user).layer(service_fn(hello));
    ///
    /// let of = |user| Request::builder().extension(User(user)).body(());
    /// assert_eq!(service.clone().oneshot(of(7)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of(7)?).await?.status(), 429);
    /// assert_eq!(service.clone().oneshot(of(8)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 400);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_key(table: impl Into<Arc<Keyed<A, C, S>>>, key: K) -> Self {
        let table = table.into();
        Self::of(Rate::new(PerKey { table, key }))
    }
}

impl RateLimitLayer<Inside> {
    /// A limit on how many requests are served at once. Others are refused with 503, or wait in order
    /// of arrival: see [`wait`](Self::wait).
    ///
    /// A request is inside until the end of its answer's body, or until the answer is dropped.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::new("a long body".into()))
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::Concurrency;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limit = RateLimitLayer::concurrency(Concurrency::new(1)?);
    /// let service = limit.layer(service_fn(hello));
    ///
    /// let answer = service.clone().oneshot(Request::new(())).await?;
    /// assert_eq!(answer.status(), 200);
    /// // The body of the first answer has not been sent yet.
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 503);
    /// drop(answer);
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn concurrency(limiter: impl Into<Arc<Concurrency>>) -> Self {
        let limiter = limiter.into();
        Self::of(Inside { limiter })
    }
}

impl<K: RequestKey> RateLimitLayer<InsideByKey<K>> {
    /// A limit on how many requests of each key are served at once. Others are refused with 503.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    /// use tollgate_tower::{ByAddress, RateLimitLayer};
    ///
    /// // Each address has at most 4 at once. There are at most 10 000 addresses at once.
    /// let downloads = KeyedConcurrency::new(4, 10_000)?;
    /// let limit = RateLimitLayer::concurrency_by_key(downloads, ByAddress::default());
    /// # let _ = limit;
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn concurrency_by_key(limiter: impl Into<Arc<KeyedConcurrency>>, key: K) -> Self {
        let (limiter, key) = (limiter.into(), Arc::new(key));
        Self::of(InsideByKey { limiter, key })
    }
}

#[cfg(feature = "policy")]
impl<C: tollgate_policy::PolicyClock> RateLimitLayer<ByPolicy<C>> {
    /// The limits of a policy: several limits, all or nothing, with plans, bans and costs.
    ///
    /// It takes a `Policy`, or an `Arc<LivePolicy>` that the program keeps to reload it.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use tollgate_policy::{LivePolicy, Policy};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let rule = "[[rule]]\nname = 'api'\nwhen = { path = '/api/**' }\nlimit = '1/h'";
    /// let policy = Arc::new(LivePolicy::new(Policy::from_toml(rule)?));
    /// let service = RateLimitLayer::policy(Arc::clone(&policy)).layer(service_fn(hello));
    ///
    /// let get = |path| Request::get(path).body(());
    /// assert_eq!(service.clone().oneshot(get("/api/a")?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(get("/api/b")?).await?.status(), 429);
    /// assert_eq!(service.clone().oneshot(get("/")?).await?.status(), 200);
    ///
    /// let _ = policy.reload_toml(&rule.replace("1/h", "fixed-window 2/h"))?;
    /// assert_eq!(service.clone().oneshot(get("/api/b")?).await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(policy: impl Into<Arc<tollgate_policy::LivePolicy<C>>>) -> Self {
        let policy = policy.into();
        Self::of(ByPolicy { policy, own: None })
    }

    /// Supplies facts of the program's own, such as the user. They take precedence over the request's.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate_policy::Policy;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// /// What the layer that authenticates requests found.
    /// #[derive(Clone)]
    /// struct User {
    ///     name: String,
    ///     pays: bool,
    /// }
    ///
    /// let policy = Policy::from_toml(
    ///     "[[rule]]\nname = 'user'\nkey = 'user'\nplan = { by = 'tier', paid = '100/h', free = '1/h' }",
    /// )?;
    /// let limit = RateLimitLayer::policy(policy).facts(|request, name| {
    ///     let user = request.extension::<User>()?;
    ///     match name.as_str() {
    ///         "user" => Some(user.name.as_str().into()),
    ///         "tier" => Some(if user.pays { "paid" } else { "free" }.into()),
    ///         _ => None,
    ///     }
    /// });
    /// let service = limit.layer(service_fn(hello));
    ///
    /// let of = |name: &str, pays| {
    ///     let name = name.to_owned();
    ///     Request::builder().extension(User { name, pays }).body(())
    /// };
    /// assert_eq!(service.clone().oneshot(of("ann", true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("ann", true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("bob", false)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("bob", false)?).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// A request that costs 0 takes nothing, and one that costs more than the burst is refused without
    /// `Retry-After`. If a client says what its request costs, limit what it may say.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(100))?);
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter)).cost(|facts| match &*facts.path() {
    ///     "/search" => 10,
    ///     _ => 1,
    /// });
    /// let service = limit.layer(service_fn(hello));
    /// service.clone().oneshot(Request::get("/search").body(())?).await?;
    /// service.clone().oneshot(Request::get("/items").body(())?).await?;
    /// assert_eq!(limiter.available(), 89);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cost(mut self, cost: impl Fn(&RequestFacts<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.admission.cost = Some(Arc::new(cost));
        self
    }

    /// Sets which requests count: all, those that failed, or those that succeeded. The permits of others
    /// come back at the end of the answer's body.
    ///
    /// What failed is a status of 400 or above, unless [`failure_if`](Self::failure_if) says otherwise.
    /// All requests that are served at once hold a permit until their ends are known.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use http::StatusCode;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{Count, RateLimitLayer};
    ///
    /// async fn login(request: Request<&str>) -> Result<Response<String>, std::convert::Infallible> {
    ///     let mut answer = Response::new(String::new());
    ///     if *request.body() != "the password" {
    ///         *answer.status_mut() = StatusCode::UNAUTHORIZED;
    ///     }
    ///     Ok(answer)
    /// }
    ///
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(5))?);
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter)).count(Count::Failures);
    /// let service = limit.layer(service_fn(login));
    /// service.clone().oneshot(Request::new("the password")).await?;
    /// assert_eq!(limiter.available(), 5);
    /// service.clone().oneshot(Request::new("a guess")).await?;
    /// assert_eq!(limiter.available(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn count(mut self, count: Count) -> Self {
        self.admission.count = count;
        self
    }

    /// Settles what a request cost in the end: its size, its time, or what a header of the answer says.
    ///
    /// Less than what was [taken](Ended::taken) comes back. More is charged, even if the limit goes into
    /// debt; then requests are denied until the debt is paid. The closure is called once for each request
    /// that was served, at the end of its answer's body, also if there was no answer or it was dropped.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// /// Answers with 30 tokens.
    /// async fn model(_: Request<()>) -> Result<Response<String>, http::Error> {
    ///     Response::builder().header("x-tokens", 30).body(String::new())
    /// }
    ///
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(1000))?);
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter))
    ///     .cost(|_| 100) // an estimate
    ///     .settle(|ended| ended.header_number("x-tokens").unwrap_or(ended.taken()));
    /// let service = limit.layer(service_fn(model));
    /// service.oneshot(Request::new(())).await?;
    /// assert_eq!(limiter.available(), 970);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Bytes: `.settle(|ended| ended.bytes())`. Milliseconds of time:
    /// `.settle(|ended| ended.elapsed().as_millis().try_into().unwrap_or(u64::MAX))`.
    pub fn settle(mut self, actual: impl Fn(&Ended<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.admission.settle = Some(Arc::new(actual));
        self
    }

    /// Says in fields which of the table's limits a request used: the parameter `pk`, which is a keyed
    /// hash of the request's key. A client that sends for several keys can then tell their limits apart.
    ///
    /// ```
    /// use http::HeaderName;
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{ByHeader, Fields, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_second(5), 100_000)?;
    /// let by_tenant = ByHeader(HeaderName::from_static("x-tenant"));
    /// // RateLimit: "default";r=4;t=1;pk=:TqMD5J2cKmE=:
    /// let limit = RateLimitLayer::by_key(limits, by_tenant).fields(Fields::LIST).partitions();
    /// # let _ = limit;
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn partitions(mut self) -> Self {
        self.admission.partitions = true;
        self
    }

    /// Lets requests wait for their permits, at most this long, and at most this many at once. Others
    /// are refused at once: those that would wait longer, and those that find no room.
    ///
    /// The requests of one limiter are served in order of arrival. Each reserves its permits and sleeps
    /// once. A request whose client goes away gives back what it has reserved.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_second(50).burst(1))?;
    /// let limit = RateLimitLayer::shared(limiter).wait(Duration::from_secs(10), 100)?;
    /// let service = limit.layer(service_fn(hello));
    /// for _ in 0..3 {
    ///     assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 200);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `requests` is 0, or more than a [`Concurrency`] can have.
    pub fn wait(mut self, time: Duration, requests: u64) -> Result<Self, ConfigError>
    where
        S::Owned: ReserveLimiter,
    {
        self.admission.in_line();
        self.may_wait(time, requests)
    }
}

impl RateLimitLayer<Inside> {
    /// Lets requests wait until others have ended, at most this long, and at most this many at once. The
    /// others are refused with 503: load is shed. They enter in order of arrival.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tollgate::Concurrency;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limit = RateLimitLayer::concurrency(Concurrency::new(64)?)
    ///     .wait(Duration::from_millis(500), 200)?;
    /// let service = limit.layer(service_fn(hello));
    /// assert_eq!(service.oneshot(Request::new(())).await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `requests` is 0, or more than a [`Concurrency`] can have.
    pub fn wait(self, time: Duration, requests: u64) -> Result<Self, ConfigError> {
        self.may_wait(time, requests)
    }
}

#[cfg(feature = "policy")]
impl<C: tollgate_policy::PolicyClock> RateLimitLayer<ByPolicy<C>> {
    /// Lets requests wait until their policy allows them, at most this long, and at most this many at
    /// once.
    ///
    /// A policy has no lines: a request that waits asks again at the time that the policy said, and other
    /// requests may have been faster. Limits such as `leaky-queue` say how long a request that they allow
    /// has to wait. It does so without this method too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_policy::Policy;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '100/s'")?;
    /// let limit = RateLimitLayer::policy(policy).wait(Duration::from_secs(1), 1000)?;
    /// # let _ = limit;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `requests` is 0, or more than a [`Concurrency`] can have.
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

    /// Sets the name of the limit in fields, bodies and reports: `default` unless this says otherwise.
    /// Rules of a policy have names of their own.
    ///
    /// If a service has several of these layers, give each a name.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{Body, RateLimitLayer};
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let limit = RateLimitLayer::shared(limiter).name("search").body(Body::Problem);
    /// let service = limit.layer(service_fn(hello));
    /// service.clone().oneshot(Request::new(())).await?;
    /// let refused = service.oneshot(Request::new(())).await?;
    /// # use http_body_util::BodyExt;
    /// let body = refused.into_body().collect().await?.to_bytes();
    /// assert!(body.ends_with(br#""violated-policies":["search"]}"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Sets how answers are written: fields, statuses and bodies.
    ///
    /// [`fields`](Self::fields) and [`body`](Self::body) are short forms that come after it.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use http::StatusCode;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{Answers, Cause, Fields, RateLimitLayer};
    ///
    /// let answers = Answers::new()
    ///     .fields(Fields::LIST)
    ///     .status(Cause::Limit, StatusCode::SERVICE_UNAVAILABLE)
    ///     .edit(|refusal, answer| {
    ///         *answer.body_mut() = format!("try later: {:?}", refusal.cause()).into();
    ///     });
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let service = RateLimitLayer::shared(limiter).answers(answers).layer(service_fn(hello));
    /// service.clone().oneshot(Request::new(())).await?;
    /// assert_eq!(service.oneshot(Request::new(())).await?.status(), 503);
    /// # Ok(())
    /// # }
    /// ```
    pub fn answers(mut self, answers: Answers) -> Self {
        self.settings.answers = answers;
        self
    }

    /// Sets which fields of answers say what a client has left. None, unless this says otherwise.
    /// `Retry-After` is written in any case.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{Fields, RateLimitLayer};
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_minute(60).burst(10))?;
    /// let limit = RateLimitLayer::shared(limiter).fields(Fields::LIST | Fields::X_SECONDS);
    /// let answer = limit.layer(service_fn(hello)).oneshot(Request::new(())).await?;
    /// assert_eq!(answer.headers()["ratelimit-policy"], r#""default";q=10;w=10"#);
    /// assert_eq!(answer.headers()["ratelimit"], r#""default";r=9;t=1"#);
    /// assert_eq!(answer.headers()["x-ratelimit-remaining"], "9");
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields(mut self, fields: Fields) -> Self {
        self.settings.answers = self.settings.answers.fields(fields);
        self
    }

    /// Sets the body of refusals: a line of text, unless this says otherwise.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{Body, RateLimitLayer};
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let limit = RateLimitLayer::shared(limiter).body(Body::Problem);
    /// let service = limit.layer(service_fn(hello));
    /// service.clone().oneshot(Request::new(())).await?;
    /// let refused = service.oneshot(Request::new(())).await?;
    /// assert_eq!(refused.headers()["content-type"], "application/problem+json");
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(mut self, body: Body) -> Self {
        self.settings.answers = self.settings.answers.body(body);
        self
    }

    /// Sets how the client's address is found: it is the peer's, unless this trusts a proxy.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{ClientAddress, PeerAddr, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 100_000)?;
    /// let addresses = ClientAddress::peer().trust("10.0.0.0/8")?.x_forwarded_for();
    /// let service = RateLimitLayer::by_address(limits)
    ///     .client_address(addresses)
    ///     .layer(service_fn(hello));
    ///
    /// let through_proxy = |client: &str| {
    ///     let proxy = PeerAddr(([10, 0, 0, 2], 40_000).into());
    ///     Request::builder().extension(proxy).header("x-forwarded-for", client).body(())
    /// };
    /// assert_eq!(service.clone().oneshot(through_proxy("192.0.2.1")?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(through_proxy("192.0.2.2")?).await?.status(), 200);
    /// // What a client invents stands left of what the proxy has seen.
    /// let forged = through_proxy("192.0.2.9, 192.0.2.2")?;
    /// assert_eq!(service.clone().oneshot(forged).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client_address(mut self, address: ClientAddress) -> Self {
        self.settings.address = address;
        self
    }

    /// Sets where the address of the connection's other end is found among a request's extensions.
    ///
    /// Without this, it is found where axum and tonic put it (features `axum` and `tonic`), and in
    /// [`PeerAddr`](crate::PeerAddr). This is for servers that have another type, or none:
    ///
    /// ```
    /// use std::net::{IpAddr, Ipv4Addr};
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{ClientAddress, RateLimitLayer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A server on a Unix socket, behind a proxy of the same machine.
    /// let addresses = ClientAddress::peer().trust("127.0.0.1")?.x_forwarded_for();
    /// let limits = Keyed::token_bucket(Quota::per_second(5), 100_000)?;
    /// let limit = RateLimitLayer::by_address(limits)
    ///     .peer(|_| Some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    ///     .client_address(addresses);
    /// # let _ = limit;
    /// # Ok(())
    /// # }
    /// ```
    pub fn peer(mut self, peer: fn(&Extensions) -> Option<IpAddr>) -> Self {
        self.settings.peer = peer;
        self
    }

    /// Sets in which form rules and keys see a path. Choose the form that the routes see.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{PathForm, RateLimitLayer, RequestFacts};
    ///
    /// let by_path = |facts: &RequestFacts<'_>| Some(facts.path().into_owned());
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 1000)?;
    /// let service = RateLimitLayer::by_key(limits, by_path)
    ///     .path_form(PathForm::Normalized) // the service resolves paths
    ///     .layer(service_fn(hello));
    /// let get = |path| Request::get(path).body(());
    /// assert_eq!(service.clone().oneshot(get("/login")?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(get("/a/../login")?).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn path_form(mut self, form: PathForm) -> Self {
        self.settings.path = form;
        self
    }

    /// Sets what happens to a request that lacks the key of its limit: it is refused with 400, unless
    /// this says otherwise. Rules of a policy have a field for it.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use http::HeaderName;
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{ByHeader, Missing, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 100_000)?;
    /// let by_key = ByHeader(HeaderName::from_static("x-api-key"));
    /// let limit = RateLimitLayer::by_key(limits, by_key).missing(Missing::Share);
    /// let service = limit.layer(service_fn(hello));
    /// // All requests without an API key have one limit.
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.settings.missing = missing;
        self
    }

    /// Exempts requests. Exemptions add up.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let service = RateLimitLayer::shared(limiter)
    ///     .exempt_if(|facts| facts.path() == "/health")
    ///     .exempt_if(|facts| facts.client_address().is_some_and(|address| address.is_loopback()))
    ///     .layer(service_fn(hello));
    /// for _ in 0..9 {
    ///     let request = Request::get("/health").body(())?;
    ///     assert_eq!(service.clone().oneshot(request).await?.status(), 200);
    /// }
    /// # Ok(())
    /// # }
    /// ```
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

    /// Exempts preflight requests of CORS: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    ///
    /// A layer for CORS that is outside of this one answers them itself, and they do not reach this one.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let service = RateLimitLayer::shared(limiter).exempt_preflight().layer(service_fn(hello));
    /// for _ in 0..9 {
    ///     let preflight = Request::options("/items")
    ///         .header("origin", "https://example.com")
    ///         .header("access-control-request-method", "PUT");
    ///     assert_eq!(service.clone().oneshot(preflight.body(())?).await?.status(), 200);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn exempt_preflight(self) -> Self {
        self.exempt_if(|facts| {
            let has = |name| facts.headers().contains_key(name);
            facts.method() == Method::OPTIONS
                && has(header::ORIGIN)
                && has(header::ACCESS_CONTROL_REQUEST_METHOD)
        })
    }

    /// Sets which requests failed, for limits that count failures or successes. Unless this says
    /// otherwise, these are requests without an answer, with a status of 400 or above, and with a body
    /// that failed.
    ///
    /// ```
    /// use http::StatusCode;
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{Count, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(5), 100_000)?;
    /// // Wrong passwords count, and errors of the server do not.
    /// let limit = RateLimitLayer::by_address(limits)
    ///     .count(Count::Failures)
    ///     .failure_if(|ended| ended.status() == Some(StatusCode::UNAUTHORIZED));
    /// # let _ = limit;
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn failure_if(mut self, test: impl Fn(&Ended<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.settings.is_failure = Some(Arc::new(test));
        self
    }
}

impl<S, A: Admission> Layer<S> for RateLimitLayer<A> {
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
