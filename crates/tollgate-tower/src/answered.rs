//! How a request ended.

use std::fmt;
use std::time::Duration;

use http::{Extensions, HeaderMap, StatusCode};

/// How a request ended: what a limit reads to settle its cost.
#[derive(Clone, Copy, Default)]
pub struct Ended<'a> {
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) extensions: Option<&'a Extensions>,
    pub(crate) taken: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Whether gRPC says that the call failed.
    pub(crate) has_failed: bool,
    pub(crate) end: End,
}

/// How the answer to a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum End {
    /// The whole answer was sent, as far as the service knows.
    Complete,
    /// The service failed, or the body of its answer did.
    Failed,
    /// The answer was dropped before its end, such as when the client went away or the service
    /// panicked. An answer whose body is not wanted, such as one to `HEAD`, also ends so.
    #[default]
    Dropped,
}

impl Ended<'_> {
    /// Returns the status, or `None` if there was no answer.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Returns the headers of the answer, or `None` if there was no answer.
    #[must_use]
    pub const fn headers(&self) -> Option<&HeaderMap> {
        self.headers
    }

    /// Returns a header of the answer as a whole number.
    #[must_use]
    pub fn header_number(&self, name: &str) -> Option<u64> {
        let value = self.headers?.get(name)?.to_str().ok()?;
        value.trim().parse().ok()
    }

    /// Returns an extension of the answer. With it a service says what a request cost, and clients
    /// do not see it. If the cost is known only at the end of the body, the extension can be a
    /// counter that the body shares.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// #[derive(Clone, Default)]
    /// struct Tokens(Arc<AtomicU64>);
    ///
    /// async fn model(_: Request<()>) -> Result<Response<String>, http::Error> {
    ///     let tokens = Tokens::default();
    ///     tokens.0.fetch_add(30, Relaxed); // here, or while the body is sent
    ///     Response::builder().extension(tokens).body("four".into())
    /// }
    ///
    /// let limiter = Arc::new(Limiter::token_bucket(Quota::per_day(1000))?);
    /// let limit = RateLimitLayer::shared(Arc::clone(&limiter)).cost(|_| 100).settle(|ended| {
    ///     let tokens = ended.extension::<Tokens>();
    ///     tokens.map_or(ended.taken(), |tokens| tokens.0.load(Relaxed))
    /// });
    /// let answer = limit.layer(service_fn(model)).oneshot(Request::new(())).await?;
    /// drop(answer); // its body ends
    /// assert_eq!(limiter.available(), 970);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions?.get()
    }

    /// Returns how many permits were taken for the request. The limits of a policy may have taken
    /// different numbers: of those this is the largest, without those of shadow rules.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns how many bytes of the body were sent: those that the server has taken. Some may
    /// still be in its buffers, and in those of the kernel.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how long it took from the decision until the end of the body.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns how the answer ended.
    #[must_use]
    pub const fn end(&self) -> End {
        self.end
    }

    /// Returns whether the request failed: there was no answer, its status is 400 or above, or its
    /// body failed. With the feature `tonic`, a call of gRPC also failed if its status is not `OK`.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.status {
            None => true,
            Some(status) => status.as_u16() >= 400 || self.has_failed || self.end == End::Failed,
        }
    }
}

impl fmt::Debug for Ended<'_> {
    /// Does not show headers and extensions, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended")
            .field("status", &self.status)
            .field("taken", &self.taken)
            .field("bytes", &self.bytes)
            .field("elapsed", &self.elapsed)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
