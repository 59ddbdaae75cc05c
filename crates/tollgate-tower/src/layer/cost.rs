//! What a request costs of a rate, and how long it may wait.

use std::sync::Arc;
use std::time::Duration;

use tollgate::error::LimiterError;
use tollgate::traits::ReserveLimiter;
use tollgate_http::{RequestFacts, Unit};

use super::RateLimitLayer;
use crate::answered::Ended;
use crate::costs::{CountedRequests, HasCosts};
use crate::rate::{Rate, Source};

impl<A: HasCosts> RateLimitLayer<A> {
    /// Sets what a request costs, in permits. One, unless this says otherwise.
    ///
    /// A request that costs 0 takes nothing, and one that costs more than the burst is refused
    /// without `Retry-After`. If a client says what its request costs, limit what it may say.
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
        self.admission.costs().cost = Some(Arc::new(cost));
        self
    }

    /// Sets what the limit counts, as fields say it: requests, unless this says otherwise.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    /// use tollgate_tower::{RateLimitLayer, Unit};
    ///
    /// // 10 MB for each address and hour, of the bodies of answers.
    /// let table = Keyed::token_bucket(Quota::per_hour(10_000_000), 100_000)?;
    /// let limit = RateLimitLayer::by_address(table)
    ///     .cost(|_| 0)
    ///     .settle(|ended| ended.bytes())
    ///     .unit(Unit::ContentBytes);
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn unit(mut self, unit: Unit) -> Self {
        self.admission.costs().unit = unit;
        self
    }

    /// Sets which requests count: all, those that failed, or those that succeeded. The permits of
    /// others come back at the end of the answer's body.
    ///
    /// A request failed if its status is 401, 403 or 422, unless [`failure_if`](Self::failure_if)
    /// says otherwise. An error of the service is neither a failure nor a success. Each request
    /// that is being served holds its permits until its end is known.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use http::StatusCode;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::{CountedRequests, RateLimitLayer};
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
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter)).count(CountedRequests::Failures);
    /// let service = limit.layer(service_fn(login));
    /// service.clone().oneshot(Request::new("the password")).await?;
    /// assert_eq!(limiter.available(), 5);
    /// service.clone().oneshot(Request::new("a guess")).await?;
    /// assert_eq!(limiter.available(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn count(mut self, count: CountedRequests) -> Self {
        self.admission.costs().count = count;
        self
    }

    /// Settles what a request cost in the end: its size, its time, or what a header of the answer
    /// says.
    ///
    /// Less than what was [taken](Ended::taken) comes back. More is charged, even if the limit goes
    /// into debt; then requests are denied until the debt is paid. The most that is charged is
    /// [`max_cost`](Self::max_cost), and without it the quota's
    /// [`largest_settlement`](tollgate::Quota::largest_settlement): all permits at once or those of
    /// an hour. The closure is called once for each served request, when the answer's body ends or
    /// is dropped, or if there is no answer.
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
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_day(1000))?);
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
        self.admission.costs().settle = Some(Arc::new(actual));
        self
    }

    /// Sets the most that a request costs, at first and in the end. A larger number counts as this
    /// one, whether [`cost`](Self::cost) or [`settle`](Self::settle) says it.
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
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter)).settle(|_| u64::MAX).max_cost(40);
    /// limit.layer(service_fn(hello)).oneshot(Request::new(())).await?;
    /// assert_eq!(limiter.available(), 60);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_cost(mut self, most: u64) -> Self {
        self.admission.costs().max_cost = Some(most);
        self
    }
}

impl<S: Source> RateLimitLayer<Rate<S>> {
    /// Lets requests wait for their permits, at most this long, and at most this many at once, of
    /// all keys together. A request that would wait longer, or that finds the queue full, is
    /// refused at once.
    ///
    /// The requests of one limiter are served in order of arrival. Each request reserves its
    /// permits and sleeps once. If the client goes away while its request waits, the permits come
    /// back, unless other requests wait behind it.
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
    /// If `requests` is 0, or more than a [`Concurrency`](tollgate::Concurrency) can have.
    pub fn wait(mut self, time: Duration, requests: u64) -> Result<Self, LimiterError>
    where
        S::Owned: ReserveLimiter,
    {
        self.admission.in_line();
        self.may_wait(time, requests)
    }
}
