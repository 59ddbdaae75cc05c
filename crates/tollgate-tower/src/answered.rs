//! How a request ended.

use std::fmt;
use std::num::IntErrorKind;
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderValue, StatusCode};

/// How a request ended: what a limit reads to settle its cost.
#[derive(Clone, Copy, Default)]
pub struct Ended<'a> {
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) extensions: Option<&'a Extensions>,
    pub(crate) taken: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// The status of gRPC, if the answer has one.
    pub(crate) grpc: Option<u16>,
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

    /// Returns a header of the answer as a whole number: of several lines, the largest. A number
    /// beyond [`u64::MAX`] counts as `u64::MAX`.
    #[must_use]
    pub fn header_number(&self, name: &str) -> Option<u64> {
        let number = |line: &HeaderValue| match line.to_str().ok()?.trim().parse::<u64>() {
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
            number => number.ok(),
        };
        self.headers?.get_all(name).iter().filter_map(number).max()
    }

    /// Returns an extension of the answer. With an extension a service says what a request cost,
    /// and clients do not see it. If the cost is known only at the end of the body, the extension
    /// can be a counter that the body shares.
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

    /// Returns how many permits were taken for the request. Under a policy, this is the most that
    /// one limit took, apart from the limits of shadow rules.
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

    /// Returns the status of gRPC with the feature `tonic`, if the answer has one: 0 is `OK`.
    #[must_use]
    pub const fn grpc_status(&self) -> Option<u16> {
        self.grpc
    }

    /// Returns whether the request failed because of what the client did: the status is 401, 403 or
    /// 422. With the feature `tonic`, a gRPC call also failed if it ended with `UNAUTHENTICATED`,
    /// `PERMISSION_DENIED` or `INVALID_ARGUMENT`.
    ///
    /// Errors of the service, such as 500, are not failures: otherwise they could ban its clients.
    /// 404 is not a failure either, since each client gets it for a page that is not there.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        let Some(status) = self.status else {
            return false;
        };
        matches!(status.as_u16(), 401 | 403 | 422) || matches!(self.grpc, Some(3 | 7 | 16))
    }

    /// Returns whether the request succeeded: its status is below 400, its body did not fail, and
    /// gRPC does not say otherwise. A request may neither fail nor succeed.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        let Some(status) = self.status else {
            return false;
        };
        let has_failed = matches!(self.end, End::Failed) || !matches!(self.grpc, None | Some(0));
        status.as_u16() < 400 && !has_failed
    }

    /// Returns how the request counts. `fails` says whether the program counts it as a failure.
    pub(crate) fn outcome(&self, fails: bool) -> Outcome {
        match (self.status, self.end) {
            // An abandoned request. Its permits stay taken: otherwise a client could send requests
            // without end and close each. But it bans no client: the service may have been slow.
            (None, End::Dropped) => Outcome::Unanswered,
            _ if fails => Outcome::Failure,
            _ if self.is_success() => Outcome::Success,
            _ => Outcome::Neither,
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

/// What a request counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    Neither,
    Unanswered,
}
