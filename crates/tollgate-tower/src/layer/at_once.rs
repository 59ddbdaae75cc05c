//! Layers none of whose requests waits.

use std::marker::PhantomData;

use super::RateLimitLayer;
use crate::inside::{Inside, InsideByKey};
use crate::keep::AtOnce;
use crate::key::RequestKey;
use crate::rate::{Rate, Source};

impl<A> RateLimitLayer<A> {
    fn with_mode<M>(mut self) -> RateLimitLayer<A, M> {
        self.settings.wait = None;
        RateLimitLayer {
            admission: self.admission,
            settings: self.settings,
            mode: PhantomData,
        }
    }
}

impl<S: Source> RateLimitLayer<Rate<S>> {
    /// Lets no request wait, so that the service need not be `Clone`. It is the last function to
    /// call.
    ///
    /// A queue, such as [`LeakyBucket::queue`](tollgate::LeakyBucket::queue), grants requests that
    /// have to wait. Such requests are refused here, and their permits come back.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, Service, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    /// use tower::util::BoxService;
    ///
    /// let page = service_fn(async |_: Request<()>| Response::builder().body(String::new()));
    /// let page = BoxService::new(page); // it is no `Clone`
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1))?;
    /// let mut service = RateLimitLayer::shared(limiter).at_once().layer(page);
    /// assert_eq!(service.call(Request::new(())).await?.status(), 200);
    /// assert_eq!(service.call(Request::new(())).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn at_once(mut self) -> RateLimitLayer<Rate<S>, AtOnce> {
        self.admission.at_once();
        self.with_mode()
    }
}

impl RateLimitLayer<Inside> {
    /// Lets no request wait, so that the service need not be `Clone`. It is the last function to
    /// call.
    ///
    /// ```
    /// use tollgate::Concurrency;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let limit = RateLimitLayer::concurrency(Concurrency::new(64)?).at_once();
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn at_once(self) -> RateLimitLayer<Inside, AtOnce> {
        self.with_mode()
    }
}

impl<K: RequestKey> RateLimitLayer<InsideByKey<K>> {
    /// Asks for no clone of the service, since no request waits. It is the last function to call.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    /// use tollgate_tower::{ByAddress, RateLimitLayer};
    ///
    /// let downloads = KeyedConcurrency::new(4, 10_000)?;
    /// let limit = RateLimitLayer::concurrency_by_key(downloads, ByAddress::default()).at_once();
    /// # let _ = limit;
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn at_once(self) -> RateLimitLayer<InsideByKey<K>, AtOnce> {
        self.with_mode()
    }
}
