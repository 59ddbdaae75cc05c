//! Requests that a test polls and drops by hand.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tollgate_tower::{Admission, RateLimitService, ResponseBody, ResponseFuture};
use tower::Service;

use crate::accounts::scripted::{Event, Scripted, ScriptedBody};

type Answered<A> = Response<ResponseBody<ScriptedBody, A>>;

enum Stage<A: Admission> {
    Future(Pin<Box<ResponseFuture<Scripted, A, ()>>>),
    Body(Pin<Box<ResponseBody<ScriptedBody, A>>>),
}

/// Requests on their way, and the service that gets them.
pub(crate) struct Flights<A: Admission> {
    service: RateLimitService<Scripted, A>,
    all: Vec<(usize, Stage<A>)>,
}

/// What came of a poll.
#[derive(Debug)]
pub(crate) enum Polled {
    /// The request is on its way.
    Flies,
    /// The layer refused it.
    Refused(Response<Bytes>),
    /// The service answered, and its body is on its way.
    Answered(http::response::Parts),
    /// It is over.
    Over,
}

impl<A: Admission> Flights<A> {
    pub(crate) fn new(service: RateLimitService<Scripted, A>) -> Self {
        Self {
            service,
            all: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn id(&self, index: usize) -> usize {
        self.all[index].0
    }

    pub(crate) fn index_of(&self, id: usize) -> Option<usize> {
        self.all.iter().position(|flight| flight.0 == id)
    }

    /// Returns what happened at the service since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.service.get_ref().log.take()
    }

    /// Sends a request, and does not poll its future.
    pub(crate) fn call(&mut self, id: usize, request: Request<()>) {
        let mut context = Context::from_waker(Waker::noop());
        let ready = <_ as Service<Request<()>>>::poll_ready(&mut self.service, &mut context);
        assert!(ready.is_ready());
        let future = catch_unwind(AssertUnwindSafe(|| self.service.call(request)));
        if let Ok(future) = future {
            self.all.push((id, Stage::Future(Box::pin(future))));
        }
    }

    /// Polls a request. One that panics is dropped afterwards.
    pub(crate) fn poll(&mut self, index: usize) -> Polled {
        let mut context = Context::from_waker(Waker::noop());
        let stage = &mut self.all[index].1;
        match stage {
            Stage::Future(future) => {
                let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
                match polled {
                    Ok(Poll::Pending) => Polled::Flies,
                    Ok(Poll::Ready(Ok(answer))) => self.answered(index, answer),
                    Ok(Poll::Ready(Err(_))) | Err(_) => self.end(index),
                }
            }
            Stage::Body(body) => {
                let polled =
                    catch_unwind(AssertUnwindSafe(|| body.as_mut().poll_frame(&mut context)));
                match polled {
                    Ok(Poll::Pending | Poll::Ready(Some(Ok(_)))) => Polled::Flies,
                    _ => self.end(index),
                }
            }
        }
    }

    fn answered(&mut self, index: usize, answer: Answered<A>) -> Polled {
        let (parts, mut body) = answer.into_parts();
        if parts.headers.contains_key("x-scripted") {
            self.all[index].1 = Stage::Body(Box::pin(body));
            return Polled::Answered(parts);
        }
        let mut context = Context::from_waker(Waker::noop());
        let frame = Pin::new(&mut body).poll_frame(&mut context);
        let Poll::Ready(Some(Ok(frame))) = frame else {
            panic!("a refusal has a body of one frame");
        };
        let text = frame.into_data().unwrap();
        self.all.swap_remove(index);
        Polled::Refused(Response::from_parts(parts, text))
    }

    fn end(&mut self, index: usize) -> Polled {
        self.all.swap_remove(index);
        Polled::Over
    }

    /// The client goes away.
    pub(crate) fn drop_at(&mut self, index: usize) {
        self.all.swap_remove(index);
    }
}
