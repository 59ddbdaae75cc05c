//! The service that limits requests before another one.

#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tollgate_http::{Cause, Refusal};
use tower_service::Service;

use crate::admission::{Admission, Admit, First};
use crate::body::ResponseBody;
use crate::decision::LayerDecision;
use crate::future::{ResponseFuture, Waiting};
use crate::head::Head;
use crate::keep::{Keep, MayWait};
use crate::settings::Settings;
use crate::ticket::{Held, Limits, Ticket};

/// A service that limits requests before they reach another one. A
/// [`RateLimitLayer`](crate::RateLimitLayer) makes it.
///
/// Clones share their limits. This service is ready when the inner service is. It decides when it
/// is called, so a request that is refused or waits does not block other requests. A request that
/// waits keeps the service that was ready. If that holds something for it, such as a slot of
/// tower's `Buffer` or a permit of its `ConcurrencyLimit`, put that layer outside of this one.
pub struct RateLimitService<S, A, M = MayWait> {
    service: S,
    limits: Held<A>,
    /// Whether each clone is for a connection of its own.
    is_first: bool,
    mode: PhantomData<M>,
}

impl<S, A, M> RateLimitService<S, A, M> {
    /// Makes the service that a server clones for each connection.
    pub(crate) fn new(service: S, limits: Limits<A>) -> Self {
        Self {
            service,
            limits: Held::new(Arc::new(limits)),
            is_first: true,
            mode: PhantomData,
        }
    }

    /// Returns the service whose requests are limited.
    pub const fn get_ref(&self) -> &S {
        &self.service
    }

    /// Returns the service whose requests are limited.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.service
    }

    /// Returns the service, without its limits.
    pub fn into_inner(self) -> S {
        self.service
    }
}

impl<S: Clone, A, M> Clone for RateLimitService<S, A, M> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            limits: match self.is_first {
                true => self.limits.of_another(),
                false => self.limits.clone(),
            },
            is_first: false,
            mode: PhantomData,
        }
    }
}

impl<S: fmt::Debug, A, M> fmt::Debug for RateLimitService<S, A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("service", &self.service)
            .field("settings", self.limits.settings(false))
            .finish_non_exhaustive()
    }
}

impl<S, A, M, B, R> Service<Request<B>> for RateLimitService<S, A, M>
where
    S: Service<Request<B>, Response = Response<R>> + Keep<M>,
    A: Admission,
    R: Body,
{
    type Response = Response<ResponseBody<R, A>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, A, B>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let limits = &*self.limits;
        let first = match limits.is_plain {
            true => limits.admission.first(&request, limits.settings(false)),
            false => First::Undecided,
        };
        match first {
            First::Free => ResponseFuture::free(self.service.call(request)),
            First::Decided(outcome) => {
                self.decide(request, |admission, settings, head, patience| {
                    admission.go_on(outcome, head, settings, patience, false)
                })
            }
            First::Undecided => self.decide(request, |admission, settings, head, patience| {
                admission.admit(head, settings, patience, false)
            }),
        }
    }
}

impl<S, A: Admission, M> RateLimitService<S, A, M> {
    /// Does what `first` decides about a request.
    #[inline(never)]
    fn decide<B>(
        &mut self,
        request: Request<B>,
        first: impl FnOnce(&A, &Settings, Head<'_>, Option<Duration>) -> Admit<A>,
    ) -> ResponseFuture<S, A, B>
    where
        S: Service<Request<B>> + Keep<M>,
    {
        let head = Head::of(&request);
        let limits = &self.limits;
        if limits.settings(false).exempts(head) {
            return ResponseFuture::free(self.service.call(request));
        }
        let is_shadow = limits.shadows(head);
        let (admission, settings) = (&limits.admission, limits.settings(is_shadow));
        let patience = settings.wait.as_ref().map(|wait| wait.time);
        let mut place = None;
        let mut decided = first(admission, settings, head, patience);
        if let Admit::MustWait = decided {
            place = settings.place();
            match &place {
                Some(_) => settings.report().waited(),
                None => decided = admission.admit(head, settings, None, false),
            }
        }
        match decided {
            Admit::Free => {
                settings.tell(head, || LayerDecision::Allowed);
                ResponseFuture::free(self.service.call(request))
            }
            Admit::Untold => ResponseFuture::free(self.service.call(request)),
            Admit::Said(values) => {
                settings.tell(head, || LayerDecision::Allowed);
                ResponseFuture::said(self.service.call(request), values)
            }
            Admit::Granted(grant, values) => {
                // If the program's function panics, the ticket ends.
                let ticket = Ticket::new(grant, values, limits, is_shadow);
                settings.tell(head, || LayerDecision::Allowed);
                ResponseFuture::serving(self.service.call(request), ticket)
            }
            Admit::Refused(response) => ResponseFuture::refused(response),
            // The service that was ready is the one to call later.
            decided => match self.service.keep() {
                Some(ready) => {
                    let waiting = Waiting::new(request, ready, limits.clone(), is_shadow, place);
                    ResponseFuture::waiting(waiting, decided)
                }
                // Unreachable: a limit that knows that no request waits does not ask for a wait.
                None => {
                    let refusal = Refusal::new(Cause::Misconfigured).rule(&settings.name);
                    ResponseFuture::refused(settings.write_refusal(Head::of(&request), &refusal))
                }
            },
        }
    }
}

#[cfg(feature = "tonic")]
impl<S: tonic::server::NamedService, A, M> tonic::server::NamedService
    for RateLimitService<S, A, M>
{
    const NAME: &'static str = S::NAME;
}
