//! How a layer answers requests.

use std::borrow::Cow;

use tollgate_http::{Answers, Fields, RefusalBody};

use super::RateLimitLayer;
use crate::report::Reports;

impl<A> RateLimitLayer<A> {
    /// Sets the name of the limit in fields, bodies and reports: `default` unless this says
    /// otherwise. Rules of a policy have names of their own.
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
    /// use tollgate_tower::{RateLimitLayer, RefusalBody};
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let limit = RateLimitLayer::shared(limiter).name("search").body(RefusalBody::Problem);
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
        self.settings.reports = Reports::default();
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
    /// `Retry-After` is written in any case. The guide
    /// [shows the fields](crate::guide::http#fields-of-answers).
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
    /// use tollgate_tower::{RateLimitLayer, RefusalBody};
    ///
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let limit = RateLimitLayer::shared(limiter).body(RefusalBody::Problem);
    /// let service = limit.layer(service_fn(hello));
    /// service.clone().oneshot(Request::new(())).await?;
    /// let refused = service.oneshot(Request::new(())).await?;
    /// assert_eq!(refused.headers()["content-type"], "application/problem+json");
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(mut self, body: RefusalBody) -> Self {
        self.settings.answers = self.settings.answers.body(body);
        self
    }

    /// Refuses gRPC calls with a gRPC status: a refused `POST` whose content type is
    /// `application/grpc` gets the HTTP status 200 and a `grpc-status`. Call it if the service
    /// speaks gRPC.
    ///
    /// Without it, a refusal has an HTTP status, whatever content type a client sends. So on routes
    /// that are not gRPC, no client gets a 200 for a refused request.
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
    /// let service = RateLimitLayer::shared(limiter).grpc().layer(service_fn(hello));
    /// service.clone().oneshot(Request::new(())).await?;
    /// let call = Request::post("/echo.Echo/Say").header("content-type", "application/grpc");
    /// let refused = service.oneshot(call.body(())?).await?;
    /// assert_eq!(refused.status(), 200);
    /// assert_eq!(refused.headers()["grpc-status"], "8");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tonic")]
    pub fn grpc(mut self) -> Self {
        self.settings.grpc = true;
        self
    }
}
