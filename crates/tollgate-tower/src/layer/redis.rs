//! Layers of a limit on Redis or Valkey.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tollgate::error::LimiterError;
use tollgate_redis::RedisLimiter;
use tollgate_redis::client::Client;

use super::RateLimitLayer;
use crate::key::RequestKey;
use crate::redis::ByRedis;

impl<C, K> RateLimitLayer<ByRedis<C, K>>
where
    C: Client + 'static,
    K: RequestKey,
    for<'r> K::Key<'r>: Display,
{
    /// A limit for each key on Redis or Valkey, which many processes share.
    ///
    /// The server knows a key by its text. While it does not answer, the
    /// [`Fallback`](tollgate_redis::Fallback) of the limit decides: what that denies is answered
    /// with 503, or with 429 if a local share is used up. A request without a key is refused with
    /// 400, unless [`missing`](Self::missing) says otherwise. Of a limit on
    /// [concurrency](tollgate_redis::Limit::concurrency), a request holds one slot until its
    /// answer's body ends, whatever [`cost`](Self::cost) says, and waits for none.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use tollgate::Quota;
    /// use tollgate_redis::client::connect_lazily;
    /// use tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
    /// use tollgate_tower::{ByAddress, RateLimitLayer};
    ///
    /// # fn limit() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Arc::new(RedisServer::new(connect_lazily("redis://127.0.0.1/")?));
    /// // 100 requests a minute for each address. In an outage, 10 processes grant a tenth each.
    /// let share = Fallback::Local { processes: 10, keys: 100_000 };
    /// let (keys, quota) = (Keys::new("shop")?, Quota::per_minute(100));
    /// let limiter = RedisLimiter::new(server, &keys, "api", quota, share)?;
    /// let limit = RateLimitLayer::redis(limiter, ByAddress::default()).name("api");
    /// # let _ = limit;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// For one limit for all requests, pass a constant key: `|_: &RequestFacts<'_>| Some("all")`.
    pub fn redis(limiter: impl Into<Arc<RedisLimiter<C>>>, key: K) -> Self {
        Self::of(ByRedis::new(limiter.into(), key))
    }

    /// Lets requests wait that the server denies, at most this long, and at most this many at once,
    /// of all keys together. A request asks again when its permits should be there. If others took
    /// them, it waits again while it may.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use tollgate_redis::{RedisLimiter, client::Connection};
    /// # use tollgate_tower::{ByAddress, RateLimitLayer};
    /// # fn limit(limiter: RedisLimiter<Connection>) -> Result<(), tollgate::error::LimiterError> {
    /// let limit = RateLimitLayer::redis(limiter, ByAddress::default());
    /// let limit = limit.wait(Duration::from_secs(2), 100)?;
    /// # let _ = limit;
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
