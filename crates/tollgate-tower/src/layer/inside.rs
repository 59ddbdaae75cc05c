//! Layers of a concurrency: how many requests are served at once.

use std::sync::Arc;
use std::time::Duration;

use tollgate::Concurrency;
use tollgate::error::LimiterError;
use tollgate::keyed::KeyedConcurrency;

use super::RateLimitLayer;
use crate::inside::{Inside, InsideByKey};
use crate::key::RequestKey;

impl RateLimitLayer<Inside> {
    /// A limit on how many requests are served at once. Others are refused with 503, or wait in
    /// order of arrival: see [`wait`](Self::wait).
    ///
    /// A request is inside until the server has taken the last piece of its answer's body, or until
    /// the answer is dropped. Frames of more than 64 KiB are handed on in pieces of that size, even
    /// if the body is a `String` or `Bytes`. So a client that does not read its answer keeps its
    /// place, unless the rest fits into buffers: about 400 kB in hyper, and the buffers of the
    /// kernels at both ends, which on Linux can have 4 MB and 6 MB. If clients are not trusted,
    /// give answers a time limit, or limit each client with
    /// [`concurrency_by_key`](RateLimitLayer::concurrency_by_key).
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

    /// Lets requests wait until others have ended, at most this long, and at most this many at
    /// once. The others are refused with 503: load is shed. They enter in order of arrival.
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
    /// If `requests` is 0, or more than a [`Concurrency`](tollgate::Concurrency) can have.
    pub fn wait(self, time: Duration, requests: u64) -> Result<Self, LimiterError> {
        self.may_wait(time, requests)
    }
}

impl<K: RequestKey> RateLimitLayer<InsideByKey<K>> {
    /// A limit on how many requests of each key are served at once. Others are refused with 503,
    /// and so are the requests of a new key if the limiter has no room for it.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    /// use tollgate_tower::{ByAddress, RateLimitLayer};
    ///
    /// // Each address has at most 4 at once. There are at most 10 000 addresses at once.
    /// let downloads = KeyedConcurrency::new(4, 10_000)?;
    /// let limit = RateLimitLayer::concurrency_by_key(downloads, ByAddress::default());
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn concurrency_by_key(limiter: impl Into<Arc<KeyedConcurrency>>, key: K) -> Self {
        let (limiter, key) = (limiter.into(), Arc::new(key));
        Self::of(InsideByKey { limiter, key })
    }
}
