//! The layer.

mod answers;
mod at_once;
mod cost;
#[cfg(all(doctest, feature = "policy"))]
mod does_not_compile;
mod inside;
mod keys;
#[cfg(feature = "policy")]
mod policy;
mod rate;
#[cfg(feature = "redis")]
mod redis;
mod requests;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Concurrency;
use tollgate::error::LimiterError;
use tower_layer::Layer;

use crate::admission::Admission;
use crate::boxed::BoxedLimits;
use crate::keep::MayWait;
use crate::service::RateLimitService;
use crate::settings::{Settings, Wait};
use crate::ticket::Limits;

/// A layer that limits the requests of a service. A request above the limit is refused, or waits.
///
/// A layer is made for one limiter, for a table of limiters by key, or for a policy. Its services
/// share the limits, and so do their clones: a server that clones its service for each connection
/// has one limit for all of them.
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
/// The service's answers may have bodies of any type whose data can be made from `Bytes`, such as
/// those of axum, hyper and tonic.
///
/// The service has to be `Clone`, since a request may have to wait, and then keeps a service.
/// [`at_once`](Self::at_once) is for services that are not.
#[must_use]
pub struct RateLimitLayer<A, M = MayWait> {
    admission: A,
    settings: Settings,
    mode: PhantomData<M>,
}

impl<A> RateLimitLayer<A> {
    fn of(admission: A) -> Self {
        let settings = Settings::new();
        Self {
            admission,
            settings,
            mode: PhantomData,
        }
    }

    fn may_wait(mut self, time: Duration, requests: u64) -> Result<Self, LimiterError> {
        let waiting = Arc::new(Concurrency::new(requests)?);
        self.settings.wait = Some(Wait { time, waiting });
        Ok(self)
    }
}

impl<A: Admission, M> RateLimitLayer<A, M> {
    /// Returns the same layer, with a type that does not say the kind of its limits. So it can
    /// stand in a struct, or in a list with other layers.
    ///
    /// Call it after methods that only some limits have, such as [`cost`](Self::cost). A request
    /// whose answer has fields, or that is settled, then allocates once more.
    ///
    /// ```
    /// use tollgate::error::LimiterError;
    /// use tollgate::{Concurrency, Keyed, Quota};
    /// use tollgate_tower::{BoxedLimits, RateLimitLayer};
    ///
    /// struct Limits {
    ///     search: RateLimitLayer<BoxedLimits>,
    ///     upload: RateLimitLayer<BoxedLimits>,
    /// }
    ///
    /// fn limits() -> Result<Limits, LimiterError> {
    ///     let search = Keyed::token_bucket(Quota::per_second(5), 100_000)?;
    ///     Ok(Limits {
    ///         search: RateLimitLayer::by_address(search).name("search").boxed(),
    ///         upload: RateLimitLayer::concurrency(Concurrency::new(8)?).name("upload").boxed(),
    ///     })
    /// }
    /// # limits().unwrap();
    /// ```
    pub fn boxed(self) -> RateLimitLayer<BoxedLimits, M> {
        RateLimitLayer {
            admission: BoxedLimits::new(self.admission),
            settings: self.settings,
            mode: PhantomData,
        }
    }
}

impl<A: Clone, M> Clone for RateLimitLayer<A, M> {
    fn clone(&self) -> Self {
        Self {
            admission: self.admission.clone(),
            settings: self.settings.clone(),
            mode: PhantomData,
        }
    }
}

impl<S, A: Admission, M> Layer<S> for RateLimitLayer<A, M> {
    type Service = RateLimitService<S, A, M>;

    fn layer(&self, service: S) -> RateLimitService<S, A, M> {
        let limits = Limits::new(self.admission.clone(), self.settings.clone());
        RateLimitService::new(service, limits)
    }
}

impl<A, M> fmt::Debug for RateLimitLayer<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
