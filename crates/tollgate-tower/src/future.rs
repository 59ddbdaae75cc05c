//! The future of an answer.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};
use tollgate_http::FieldValues;
use tower_service::Service;

use crate::admission::{Admission, Admit, Unserved};
use crate::body::ResponseBody;
use crate::decision::LayerDecision;
use crate::head::Head;
use crate::settings::{Place, Settings};
use crate::ticket::{Held, Ticket};

pin_project! {
    /// The future of an answer, which is the service's own or a refusal.
    ///
    /// If it is dropped while the request waits, the request leaves the line, and its permits come
    /// back unless other requests wait behind it.
    pub struct ResponseFuture<S, A, B>
    where
        S: Service<Request<B>>,
        A: Admission,
    {
        #[pin]
        state: State<S, A, B>,
    }
}

pin_project! {
    /// Most requests are free, or need no more than the values of their fields, or are refused. The
    /// others keep what they need in a box, so that this is small and moves fast.
    #[project = StateProject]
    enum State<S, A, B>
    where
        S: Service<Request<B>>,
        A: Admission,
    {
        /// The service answers, and there is nothing else to do.
        Free {
            #[pin]
            future: S::Future,
        },
        /// The service answers, and its answer gets fields.
        Said {
            #[pin]
            future: S::Future,
            values: FieldValues,
        },
        Limited {
            limited: Pin<Box<Limited<S, A, B>>>,
        },
        Refused {
            response: Option<Response<Bytes>>,
        },
    }
}

pin_project! {
    #[project = LimitedProject]
    enum Limited<S, A, B>
    where
        S: Service<Request<B>>,
        A: Admission,
    {
        /// The service answers.
        Serving {
            #[pin]
            future: S::Future,
            ticket: Ticket<A>,
        },
        /// The request waits for its turn, with a grant or for another attempt.
        Asleep {
            sleep: Pin<Box<Sleep>>,
            waiting: Option<Box<Waiting<S, A, B>>>,
        },
        /// The decision is awaited.
        Pending {
            #[pin]
            pending: A::Pending,
            waiting: Option<Box<Waiting<S, A, B>>>,
        },
        Refused {
            response: Option<Response<Bytes>>,
        },
    }
}

/// A wait without an end ends after this time: 30 years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A request that waits.
pub(crate) struct Waiting<S, A: Admission, B> {
    pub(crate) request: Request<B>,
    /// The service that is ready.
    pub(crate) service: S,
    limits: Held<A>,
    is_shadow: bool,
    /// The request's place among the waiting requests.
    place: Option<Place>,
    grant: Option<(Unserved<A::Grant>, FieldValues)>,
    /// When it stops waiting.
    until: Option<Instant>,
}

impl<S, A: Admission, B> Waiting<S, A, B> {
    pub(crate) fn new(
        request: Request<B>,
        service: S,
        limits: Held<A>,
        is_shadow: bool,
        place: Option<Place>,
    ) -> Self {
        let until = limits.settings(is_shadow).wait.as_ref().map(|wait| {
            let now = Instant::now();
            let far = || now.checked_add(FAR).unwrap_or(now);
            now.checked_add(wait.time).unwrap_or_else(far)
        });
        Self {
            request,
            service,
            limits,
            is_shadow,
            place,
            grant: None,
            until,
        }
    }

    fn settings(&self) -> &Settings {
        self.limits.settings(self.is_shadow)
    }

    /// Returns how long it may still wait.
    fn patience(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map(left)
    }

    /// Decides again.
    fn decide(&self) -> Admit<A> {
        let (admission, settings) = (&self.limits.admission, self.settings());
        let (patience, has_place) = (self.patience(), self.place.is_some());
        admission.admit(Head::of(&self.request), settings, patience, has_place)
    }
}

impl<S, A, B> Waiting<S, A, B>
where
    S: Service<Request<B>>,
    A: Admission,
{
    /// Follows decisions until the request is served, is refused or sleeps.
    fn go_on(mut self: Box<Self>, mut decided: Admit<A>) -> Limited<S, A, B> {
        loop {
            decided = match decided {
                Admit::Untold => return self.serve(Ticket::empty()),
                Admit::Free => return self.tell_and_serve(Ticket::empty()),
                Admit::Said(values) => return self.tell_and_serve(Ticket::said(values)),
                Admit::Granted(grant, values) => {
                    let ticket = Ticket::new(grant, values, &self.limits, self.is_shadow);
                    return self.tell_and_serve(ticket);
                }
                Admit::Delayed(grant, values, delay) => {
                    self.grant = Some((grant, values));
                    return self.sleep(delay);
                }
                Admit::Refused(response) => {
                    let response = Some(response);
                    return Limited::Refused { response };
                }
                Admit::Pending(pending) => {
                    let waiting = Some(self);
                    return Limited::Pending { pending, waiting };
                }
                Admit::MustWait => self.decide(),
                Admit::Retry(wait, place) => {
                    self.place = self.place.or(place);
                    return self.sleep(wait);
                }
            }
        }
    }

    fn sleep(self: Box<Self>, time: Duration) -> Limited<S, A, B> {
        Limited::Asleep {
            sleep: Box::pin(sleep(time)),
            waiting: Some(self),
        }
    }

    /// Serves the request. If the program's function panics, the ticket ends.
    fn tell_and_serve(self: Box<Self>, ticket: Ticket<A>) -> Limited<S, A, B> {
        let settings = self.settings();
        settings.tell(Head::of(&self.request), || LayerDecision::Allowed);
        self.serve(ticket)
    }

    #[expect(clippy::boxed_local, reason = "it is large, and is not moved")]
    fn serve(self: Box<Self>, ticket: Ticket<A>) -> Limited<S, A, B> {
        let Self {
            request,
            mut service,
            ..
        } = *self;
        Limited::Serving {
            future: service.call(request),
            ticket,
        }
    }

    /// Goes on after a sleep.
    fn woken(mut self: Box<Self>) -> Limited<S, A, B> {
        let granted = self.grant.take();
        match granted.and_then(|(grant, values)| Some((grant.serve()?, values))) {
            Some((grant, values)) => self.go_on(Admit::Granted(grant, values)),
            None => {
                let decided = self.decide();
                self.go_on(decided)
            }
        }
    }

    /// Goes on with the outcome that was awaited.
    fn concluded(self: Box<Self>, outcome: A::Outcome) -> Limited<S, A, B> {
        let (admission, settings) = (&self.limits.admission, self.settings());
        let (patience, has_place) = (self.patience(), self.place.is_some());
        let decided = admission.go_on(
            outcome,
            Head::of(&self.request),
            settings,
            patience,
            has_place,
        );
        self.go_on(decided)
    }
}

impl<S, A, B> ResponseFuture<S, A, B>
where
    S: Service<Request<B>>,
    A: Admission,
{
    #[inline]
    pub(crate) const fn free(future: S::Future) -> Self {
        let state = State::Free { future };
        Self { state }
    }

    pub(crate) fn serving(future: S::Future, ticket: Ticket<A>) -> Self {
        match ticket.only_said() {
            Ok(values) => Self::said(future, values),
            Err(ticket) => Self::limited(Limited::Serving { future, ticket }),
        }
    }

    pub(crate) const fn said(future: S::Future, values: FieldValues) -> Self {
        let state = State::Said { future, values };
        Self { state }
    }

    pub(crate) const fn refused(response: Response<Bytes>) -> Self {
        let response = Some(response);
        let state = State::Refused { response };
        Self { state }
    }

    pub(crate) fn waiting(waiting: Waiting<S, A, B>, decided: Admit<A>) -> Self {
        Self::limited(Box::new(waiting).go_on(decided))
    }

    fn limited(limited: Limited<S, A, B>) -> Self {
        let limited = Box::pin(limited);
        let state = State::Limited { limited };
        Self { state }
    }
}

impl<S, A, B, R> Future for ResponseFuture<S, A, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    A: Admission,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R, A>>, S::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProject::Free { future } => future.poll(cx).map_ok(ResponseBody::free),
            StateProject::Said { future, values } => {
                let mut response = ready!(future.poll(cx))?;
                mem::take(values).write(response.headers_mut());
                Poll::Ready(Ok(ResponseBody::free(response)))
            }
            StateProject::Limited { limited } => limited.as_mut().poll(cx),
            StateProject::Refused { response } => refusal(response.take()),
        }
    }
}

/// Returns a refusal. Polled again after its end, a future may do anything but panic.
fn refusal<B: Body, A: Admission, E>(
    response: Option<Response<Bytes>>,
) -> Poll<Result<Response<ResponseBody<B, A>>, E>> {
    match response {
        Some(response) => Poll::Ready(Ok(response.map(ResponseBody::refused))),
        None => Poll::Pending,
    }
}

impl<S, A, B, R> Future for Limited<S, A, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    A: Admission,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R, A>>, S::Error>;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project() {
                LimitedProject::Serving { future, ticket } => {
                    let result = ready!(future.poll(cx));
                    return Poll::Ready(ResponseBody::of_answer(result, ticket));
                }
                LimitedProject::Refused { response } => return refusal(response.take()),
                LimitedProject::Asleep { sleep, waiting } => {
                    ready!(sleep.as_mut().poll(cx));
                    waiting.take().map(Waiting::woken)
                }
                LimitedProject::Pending { pending, waiting } => {
                    let outcome = ready!(pending.poll(cx));
                    waiting.take().map(|waiting| waiting.concluded(outcome))
                }
            };
            match next {
                Some(next) => self.set(next),
                None => return Poll::Pending,
            }
        }
    }
}

impl<S, A, B> fmt::Debug for ResponseFuture<S, A, B>
where
    S: Service<Request<B>>,
    A: Admission,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Free { .. } | State::Said { .. } => "Serving",
            State::Limited { limited } => match &**limited {
                Limited::Serving { .. } => "Serving",
                Limited::Asleep { .. } => "Asleep",
                Limited::Pending { .. } => "Pending",
                Limited::Refused { .. } => "Refused",
            },
            State::Refused { .. } => "Refused",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}
