//! Layers of a rate: of one limiter, or of one for each key.

use std::sync::Arc;

use tollgate::algorithm::{Algorithm, ChangeQuota, Debt, GiveBack, Settings as Words};
use tollgate::clock::Clock;
use tollgate::keyed::KeyHasher;
use tollgate::traits::SettleLimiter;
use tollgate::{Keyed, Limiter, Quota};
use tollgate_http::RequestFacts;

use super::RateLimitLayer;
use crate::key::{ByAddress, RequestKey};
use crate::rate::{PerKey, Rate, Shared};

impl<L, P, C> RateLimitLayer<Rate<Shared<Limiter<L, C, P>>>>
where
    L: ChangeQuota,
    Limiter<L, C, P>: SettleLimiter<Clock: Clock> + Send + Sync + 'static,
{
    /// One limit for all requests.
    ///
    /// A [`Limiter`] or an `Arc` of one: keep a clone of the `Arc` to look at the limit, or to use
    /// it elsewhere.
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
    /// One limit for all requests, by any limiter, such as a [`Sharded`](tollgate::Sharded), or an
    /// `Arc` of one that the program also uses itself. Fields of answers say the quota; without it,
    /// answers have no fields.
    ///
    /// ```
    /// use tollgate::{Quota, Sharded};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let quota = Quota::per_second(1_000_000);
    /// let limiter = Sharded::token_bucket(quota)?;
    /// let limit = RateLimitLayer::shared_with_quota(limiter, Some(quota));
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn shared_with_quota(limiter: L, quota: Option<Quota>) -> Self {
        let limiter = Arc::new(limiter);
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
    /// clients have one limit until [`client_address`](Self::client_address) trusts it. For
    /// networks of other sizes use [`by_key`](Self::by_key) with [`ByAddress::prefix`].
    ///
    /// A server has to say the addresses of its connections: see [`peer`](Self::peer). If it does
    /// not, each request is refused with 400, unless [`missing`](Self::missing) says otherwise.
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
    /// A request without a key is refused with 400, unless [`missing`](Self::missing) says
    /// otherwise. If the table has plans, [`plan`](Self::plan) says which one a request has. An
    /// algorithm of your own needs the traits that the methods of a limiter need: `GiveBack`,
    /// `Debt`, `ChangeQuota` and `Settings`, which `tollgate::algorithm` documents.
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
        let has_plans = table.plans() > 1;
        let mut rate = Rate::new(PerKey { table, key });
        if has_plans {
            // No request has a plan until `plan` is called. With plan 0 for all, a program that
            // forgets the call would seem to work.
            rate.plan = Some(Arc::new(|_| None));
        }
        Self::of(rate)
    }

    /// Sets which of the table's plans a request has, by its position. A request for which this is
    /// `None`, or no position of a plan, is refused with 403. So are all requests with a key to a
    /// table with several plans until this is set. A request without a key has no plan of its own:
    /// [those that share a limit](crate::MissingKey::Share) have that of the first plan.
    ///
    /// The closure reads what an earlier layer found. If that has to ask a database, the earlier
    /// layer can be asynchronous: axum's `middleware::from_fn`, or the filters of `tower`.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{ManualClock, Keyed, Quota, TokenBucket};
    /// use tollgate_tower::{RateLimitLayer, RequestFacts};
    ///
    /// /// What the layer that authenticates requests found.
    /// #[derive(Clone)]
    /// struct Customer { id: u64, is_paying: bool }
    ///
    /// fn customer<'r>(facts: &RequestFacts<'r>) -> Option<&'r Customer> {
    ///     facts.extension()
    /// }
    ///
    /// let free = TokenBucket::new(Quota::per_hour(60).burst(1))?;
    /// let paid = TokenBucket::new(Quota::per_hour(600).burst(2))?;
    /// let table = Keyed::with_plans([free, paid], 100_000, ManualClock::new())?;
    /// let by_id = |facts: &RequestFacts<'_>| Some(customer(facts)?.id);
    /// let limit = RateLimitLayer::by_key(table, by_id)
    ///     .plan(|facts| Some(usize::from(customer(facts)?.is_paying)));
    /// let service = limit.layer(service_fn(hello));
    ///
    /// let of = |id, is_paying| Request::builder().extension(Customer { id, is_paying }).body(());
    /// assert_eq!(service.clone().oneshot(of(7, false)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of(7, false)?).await?.status(), 429);
    /// assert_eq!(service.clone().oneshot(of(8, true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of(8, true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of(8, true)?).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan(
        mut self,
        plan: impl Fn(&RequestFacts<'_>) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        self.admission.plan = Some(Arc::new(plan));
        self
    }
}
