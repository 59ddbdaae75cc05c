//! What decides about requests.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tollgate_http::FieldValues;

use crate::answered::Ended;
use crate::head::Head;
use crate::settings::{Place, Settings};

/// What decides about requests: the limits of a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// The constructors of the layer create all implementations. No other crate can implement it.
///
/// A function that returns a layer can name it for short:
///
/// ```
/// use tollgate::error::LimiterError;
/// use tollgate::{Keyed, Quota};
/// use tollgate_tower::{Admission, RateLimitLayer};
///
/// fn limit() -> Result<RateLimitLayer<impl Admission>, LimiterError> {
///     let table = Keyed::token_bucket(Quota::per_second(5), 100_000)?;
///     Ok(RateLimitLayer::by_address(table).name("address"))
/// }
/// # limit().unwrap();
/// ```
///
/// A struct that holds a layer has a [boxed](crate::RateLimitLayer::boxed) one.
pub trait Admission: Decide + Clone + Send + Sync + 'static {}

/// How limits decide.
///
/// No other crate can name this trait, so none can implement [`Admission`]. Its types are public,
/// as a public trait needs, and can't be named either.
pub trait Decide: Sized {
    /// What a request holds while it is served.
    type Grant: Grant + Send + 'static;
    /// A decision that does not say yet what happens to the request.
    type Outcome: Send + 'static;
    /// The future of an outcome that can't be known at once.
    type Pending: Future<Output = Self::Outcome> + Send + 'static;

    /// Returns whether requests need only their key: see [`first`](Self::first).
    fn is_plain(&self) -> bool {
        false
    }

    /// Decides with the key alone, if requests need no more. Almost all requests end here, so this
    /// is inlined and calls nothing with the request. Then the compiler need not copy the request.
    #[inline(always)]
    fn first<B>(&self, request: &Request<B>, settings: &Settings) -> First<Self::Outcome> {
        let _ = (request, settings);
        First::Undecided
    }

    /// Decides. If the request may wait for at most `patience`, this returns [`Admit::MustWait`] or
    /// [`Admit::Retry`] where it would refuse the request. `has_place` says whether the request has
    /// a place among those that wait.
    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self>;

    /// Turns an outcome of [`first`](Self::first), or of its future, into what the layer does.
    fn go_on(
        &self,
        outcome: Self::Outcome,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self>;

    /// Returns whether [`end`](Self::end) has to be called at the end of the answer's body.
    fn needs_end(&self, grant: &Self::Grant) -> bool;

    /// Returns whether [`end`](Self::end) reads the headers of the answer.
    fn reads_headers(&self, grant: &Self::Grant, settings: &Settings) -> bool;

    /// A request has ended.
    fn end(&self, grant: Self::Grant, ended: Ended<'_>, settings: &Settings);
}

/// What was decided with the key alone.
#[derive(Debug)]
pub enum First<O> {
    /// The request is served, and there is nothing to do later.
    Free,
    /// Something else was decided.
    Decided(O),
    /// Nothing was decided.
    Undecided,
}

/// What was decided.
#[expect(missing_debug_implementations, reason = "not public")]
pub enum Admit<A: Decide> {
    /// The request is served, and there is nothing to do later.
    Free,
    /// The request is served, its answer has these fields, and there is nothing else to do later.
    Said(FieldValues),
    /// The request is served, and its answer has these fields.
    Granted(A::Grant, FieldValues),
    /// The request is served after this time, and its answer has these fields.
    Delayed(Unserved<A::Grant>, FieldValues, Duration),
    /// The request may be granted if it waits. First it needs a place among the waiting requests.
    MustWait,
    /// Decide again after this time. The place is that of a request which had none.
    Retry(Duration, Option<Place>),
    /// The decision is this future's output.
    Pending(A::Pending),
    /// It is refused.
    Refused(Response<Bytes>),
    /// The request is served, and the program is not told of it now: it lacks a key and is exempt,
    /// or it would be refused, but the limit is in shadow.
    Untold,
}

impl<A: Decide> Admit<A> {
    /// Serves a request whose answer has these fields, if there are any.
    pub(crate) fn said(values: FieldValues) -> Self {
        match values.is_empty() {
            true => Self::Free,
            false => Self::Said(values),
        }
    }

    /// Serves a request after this time, unless it is in shadow: then it does not wait.
    pub(crate) fn granted(
        grant: A::Grant,
        values: FieldValues,
        delay: Duration,
        settings: &Settings,
    ) -> Self {
        match delay.is_zero() || settings.is_shadow {
            true => Self::Granted(grant, values),
            false => Self::Delayed(Unserved::new(grant), values, delay),
        }
    }
}

/// What a request holds while it is served.
pub trait Grant {
    /// The request was never served.
    fn cancel(self);
}

/// A grant of a request that waits. If it is dropped, its permits come back as far as possible.
#[expect(missing_debug_implementations, reason = "not public")]
pub struct Unserved<G: Grant>(Option<G>);

impl<G: Grant> Unserved<G> {
    pub(crate) const fn new(grant: G) -> Self {
        Self(Some(grant))
    }

    pub(crate) fn map<H: Grant>(mut self, map: impl FnOnce(G) -> H) -> Unserved<H> {
        Unserved(self.0.take().map(map))
    }

    pub(crate) fn serve(mut self) -> Option<G> {
        self.0.take()
    }
}

impl<G: Grant> Drop for Unserved<G> {
    fn drop(&mut self) {
        if let Some(grant) = self.0.take() {
            grant.cancel();
        }
    }
}
