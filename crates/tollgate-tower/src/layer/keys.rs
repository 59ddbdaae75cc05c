//! Layers of keys: what they do with requests that lack a key, and what they say of keys.

use super::RateLimitLayer;
use crate::key::HasKey;
use crate::rate::{PerKey, Rate, Source};
use crate::settings::MissingKey;

impl<A: HasKey> RateLimitLayer<A> {
    /// Sets what happens to a request that lacks the key of its limit: it is refused with 400,
    /// unless this says otherwise. Rules of a policy have a field for it.
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
    /// use tollgate_tower::{ByHeader, MissingKey, RateLimitLayer};
    ///
    /// let limits = Keyed::token_bucket(Quota::per_hour(60).burst(1), 100_000)?;
    /// let by_key = ByHeader(HeaderName::from_static("x-api-key"));
    /// let limit = RateLimitLayer::by_key(limits, by_key).missing(MissingKey::Share);
    /// let service = limit.layer(service_fn(hello));
    /// // All requests without an API key have one limit.
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(Request::new(())).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn missing(mut self, missing: MissingKey) -> Self {
        self.settings.missing = missing;
        self
    }
}

impl<A, C, S, K> RateLimitLayer<Rate<PerKey<A, C, S, K>>>
where
    PerKey<A, C, S, K>: Source,
{
    /// Says in fields which of the table's limits a request used: the parameter `pk`, which is a
    /// keyed hash of the request's key. A client that sends for several keys can then tell their
    /// limits apart. Each process has other hashes, since it has limits of its own.
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
    /// # Ok::<(), tollgate::error::LimiterError>(())
    /// ```
    pub fn partitions(mut self) -> Self {
        self.admission.partitions = true;
        self
    }
}
