//! What decides about requests.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};

use crate::answered::Ended;
use crate::settings::Settings;

/// What decides about requests: the limits of a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// The constructors of the layer make all that there are. No other crate can implement it.
pub trait Admission: Sealed + Sized {
    /// What a request holds that is served.
    type Grant: Grant;
    /// What is awaited if it can't decide at once.
    type Pending: Future;

    /// Decides at once. If the request may wait for at most `patience`, this returns
    /// [`Admit::MustWait`] where it would refuse the request.
    #[doc(hidden)]
    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self>;

    /// Begins to wait, or goes on.
    #[doc(hidden)]
    fn wait<B>(&self, request: &Request<B>, settings: &Settings, patience: Duration)
    -> Admit<Self>;

    /// Decides by what was awaited: `None` if the time was over first.
    #[doc(hidden)]
    fn conclude<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        outcome: Option<<Self::Pending as Future>::Output>,
        patience: Option<Duration>,
    ) -> Admit<Self>;
}

/// Keeps other crates from implementing [`Admission`].
pub trait Sealed {}

/// What was decided.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "not public")]
pub enum Admit<A: Admission> {
    /// The request is served, and there is nothing to do later.
    Free,
    /// The request is served.
    Granted(A::Grant),
    /// It is served after this time.
    Delayed(A::Grant, Duration),
    /// It may be granted if it waits.
    MustWait,
    /// It is to be decided again after this time.
    Retry(Duration),
    /// This is awaited first, for at most this time.
    Pending(A::Pending, Option<Duration>),
    /// It is refused.
    Refused(Box<Response<Bytes>>),
}

/// What a request holds while it is served.
#[doc(hidden)]
pub trait Grant {
    /// Writes the fields of the answer.
    fn write(&self, settings: &Settings, headers: &mut HeaderMap);

    /// Returns whether [`end`](Self::end) has to be called at the end of the answer's body.
    fn needs_end(&self) -> bool;

    /// Returns whether [`end`](Self::end) reads the headers of the answer.
    fn reads_headers(&self) -> bool;

    /// The request has ended.
    fn end(self, ended: Ended<'_>, settings: &Settings);

    /// The request was never served.
    fn cancel(self);
}
