//! How a request ended.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// How a request ended: what a limit reads to settle its cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ended<'a> {
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) taken: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Whether gRPC says that the call failed.
    pub(crate) has_failed: bool,
    pub(crate) end: End,
}

/// Where a request ended.
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

    /// Returns how many permits were taken for the request.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns how many bytes of the body were sent.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how long it took from the decision until the end of the body.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns where it ended.
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
