//! What a layer reads of requests, and which it exempts.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Extensions, Method, header};
use tollgate_http::{ClientAddress, PathForm, RequestFacts};

use super::RateLimitLayer;
use crate::answered::Ended;
use crate::costs::HasCosts;
use crate::decision::LayerDecision;

impl<A> RateLimitLayer<A> {
    /// Sets how the client's address is found: it is the peer's, unless this trusts a proxy. The
    /// guide has [settings for proxies](crate::guide::http#behind-a-proxy).
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
    /// let addresses = ClientAddress::peer().trust("10.0.0.0/28")?.x_forwarded_for();
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
        self.settings.peer = Some(peer);
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

    /// Exempts the requests for which `test` returns `true`. Exemptions add up.
    ///
    /// Test what clients can't choose, or what gains them nothing. Behind a proxy that is not
    /// [trusted](Self::client_address), all clients have the proxy's address, which may be one of
    /// this machine.
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
    /// /// A layer that checks certificates inserts this.
    /// #[derive(Clone)]
    /// struct Internal;
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let service = RateLimitLayer::shared(limiter)
    ///     .exempt_if(|facts| facts.path() == "/health")
    ///     .exempt_if(|facts| facts.extension::<Internal>().is_some())
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

    /// Exempts preflight requests of CORS: `OPTIONS` with `Origin` and
    /// `Access-Control-Request-Method`.
    ///
    /// Any client can send such requests, so the service must answer them with little work,
    /// whatever else they have. If a layer for CORS is outside of this one, it answers these
    /// requests itself, and they do not get here.
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
}

impl<A> RateLimitLayer<A> {
    /// Turns the layer off, or on again: one that is off limits nothing, counts nothing and says
    /// nothing. So a program need not have two types of services, with the layer and without.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let is_limited = std::env::var("UNLIMITED").is_err();
    /// let limiter = Limiter::token_bucket(Quota::per_second(100))?;
    /// let limit = RateLimitLayer::shared(limiter).enabled(is_limited);
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn enabled(mut self, is_enabled: bool) -> Self {
        self.settings.is_off = !is_enabled;
        self
    }

    /// Serves all requests, and only reports those that would be refused: to try a limit before it
    /// is used.
    ///
    /// The limit counts as it would, and [reports](Self::on_decision) a refusal as `shadow`. No
    /// request waits, apart from a decision of a store, and no answer has fields.
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
    /// let service = RateLimitLayer::shared(limiter).shadow().layer(service_fn(hello));
    /// for _ in 0..9 {
    ///     assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 200);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn shadow(self) -> Self {
        self.shadow_if(|_| true)
    }

    /// Serves the requests for which the test is true, as [`shadow`](Self::shadow) serves all: to
    /// use a limit for a part of the clients at first. All requests count.
    ///
    /// ```
    /// use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// // For a tenth of the addresses the limit holds. The others are in shadow.
    /// let limits = Keyed::token_bucket(Quota::per_second(5), 100_000)?;
    /// let hashes = BuildHasherDefault::<DefaultHasher>::new();
    /// let limit = RateLimitLayer::by_address(limits)
    ///     .shadow_if(move |facts| hashes.hash_one(facts.client_address()) % 10 > 0);
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn shadow_if(
        mut self,
        test: impl Fn(&RequestFacts<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.shadow_if = Some(Arc::new(test));
        self
    }

    /// Calls a function with each decision: for logs, and for metrics of the program. It sees the
    /// facts of the request, and why it is refused. It is called before the request is served, and
    /// not for requests that are exempt, also if they are so because they
    /// [lack a key](crate::MissingKey::Exempt). A second call of this method replaces the function.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::{Arc, Mutex};
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{LayerDecision, RateLimitLayer};
    ///
    /// let log = Arc::new(Mutex::new(Vec::new()));
    /// let lines = Arc::clone(&log);
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let limit = RateLimitLayer::shared(limiter).on_decision(move |facts, decision| {
    ///     let word = match decision {
    ///         LayerDecision::Denied(refusal) => format!("{:?}", refusal.cause()),
    ///         _ => "served".into(),
    ///     };
    ///     lines.lock().unwrap().push(format!("{}: {word}", facts.path()));
    /// });
    /// let service = limit.layer(service_fn(hello));
    /// for path in ["/a", "/b"] {
    ///     service.clone().oneshot(Request::get(path).body(())?).await?;
    /// }
    /// assert_eq!(*log.lock().unwrap(), ["/a: served", "/b: Limit"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_decision(
        mut self,
        tell: impl Fn(&RequestFacts<'_>, &LayerDecision<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_decision = Some(Arc::new(tell));
        self
    }
}

impl<A: HasCosts> RateLimitLayer<A> {
    /// Sets which requests failed, for limits that count failures or successes. Unless this says
    /// otherwise, these are the requests of [`Ended::is_failure`]: with a status of 401, 403 or
    /// 422. Of the others, those of [`Ended::is_success`] succeed, and the rest counts for no
    /// limit.
    ///
    /// If the client goes away before its answer,
    /// [`CountedRequests::Failures`](crate::CountedRequests::Failures) keeps the permit, whatever
    /// this says. Otherwise a client could send requests without end and close each.
    ///
    /// ```
    /// use http::StatusCode;
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{CountedRequests, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(5), 100_000)?;
    /// // A form that is sent back to its page with 303 counts, and no other answer.
    /// let limit = RateLimitLayer::by_address(limits)
    ///     .count(CountedRequests::Failures)
    ///     .failure_if(|ended| ended.status() == Some(StatusCode::SEE_OTHER));
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn failure_if(mut self, test: impl Fn(&Ended<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.settings.is_failure = Some(Arc::new(test));
        self
    }
}
