//! A service that does what each request says, and records what happened.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tollgate_tower::End;
use tower::Service;

use crate::random::Random;

/// What the service does with a request. It is an extension of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) id: usize,
    /// The number of polls until it answers, and before each frame.
    pub(crate) polls: u64,
    pub(crate) answer: Answer,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Status {
        status: u16,
        /// The header `x-cost`.
        cost: u64,
        frames: u64,
        ending: Ending,
    },
    Error,
    Panic,
    /// The method `call` panics.
    PanicInCall,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With `None`.
    Complete,
    /// `is_end_stream` is true after the last frame.
    Known,
    Trailers,
    Fails,
    Panics,
}

impl Script {
    pub(crate) fn random(id: usize, random: &mut Random) -> Self {
        let endings = [
            Ending::Complete,
            Ending::Complete,
            Ending::Known,
            Ending::Known,
            Ending::Trailers,
            Ending::Fails,
            Ending::Panics,
        ];
        let answer = match random.below(12) {
            0 => Answer::Error,
            1 => Answer::Panic,
            2 => Answer::PanicInCall,
            _ => Answer::Status {
                status: random.pick(&[200, 200, 401, 204, 302, 404, 500]),
                cost: random.pick(&[0, 0, 1, 2, 5, 14]),
                frames: random.below(3),
                ending: random.pick(&endings),
            },
        };
        Self {
            id,
            polls: random.below(4),
            answer,
        }
    }
}

/// What happened to a request, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Called(usize),
    Over(Over),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) id: usize,
    pub(crate) status: Option<StatusCode>,
    pub(crate) cost: u64,
    pub(crate) bytes: u64,
    pub(crate) end: End,
}

impl Over {
    /// Whether the request failed by what its client did, as the layer defines it.
    pub(crate) fn is_failure(&self) -> bool {
        self.status == Some(StatusCode::UNAUTHORIZED)
    }

    /// Whether the request succeeded, as the layer defines it.
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.as_u16() < 400) && self.end != End::Failed
    }

    /// Whether the client went away before its answer, so that a limit of failures keeps its
    /// permits.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.status.is_none() && self.end == End::Dropped
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.lock().push(event);
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock())
    }
}

/// The service. A call without `poll_ready` before it ends the process of the test.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    pub(crate) log: Log,
    is_ready: bool,
}

impl Clone for Scripted {
    fn clone(&self) -> Self {
        Self {
            log: self.log.clone(),
            is_ready: false,
        }
    }
}

/// The error of the service, with the number of the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Boom(pub(crate) usize);

impl fmt::Display for Boom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boom {}", self.0)
    }
}

impl Error for Boom {}

impl<B> Service<Request<B>> for Scripted {
    type Response = Response<ScriptedBody>;
    type Error = Boom;
    type Future = ScriptedFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Boom>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ScriptedFuture {
        if !std::mem::take(&mut self.is_ready) {
            eprintln!("a service was called that was not ready");
            std::process::abort();
        }
        let script = *request.extensions().get::<Script>().unwrap();
        self.log.push(Event::Called(script.id));
        let token = Token {
            log: self.log.clone(),
            over: Some(Over {
                id: script.id,
                status: None,
                cost: 0,
                bytes: 0,
                end: End::Dropped,
            }),
        };
        if matches!(script.answer, Answer::PanicInCall) {
            resume_unwind(Box::new("call"));
        }
        ScriptedFuture {
            polls: script.polls,
            script,
            token: Some(token),
        }
    }
}

/// Records the end of a request, once.
#[derive(Debug)]
struct Token {
    log: Log,
    over: Option<Over>,
}

impl Token {
    fn end(&mut self, end: End) {
        if let Some(over) = self.over.take() {
            self.log.push(Event::Over(Over { end, ..over }));
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}

#[derive(Debug)]
pub(crate) struct ScriptedFuture {
    polls: u64,
    script: Script,
    token: Option<Token>,
}

impl Future for ScriptedFuture {
    type Output = Result<Response<ScriptedBody>, Boom>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls > 0 {
            self.polls -= 1;
            return Poll::Pending;
        }
        let id = self.script.id;
        let (status, cost, frames, ending) = match self.script.answer {
            Answer::Status {
                status,
                cost,
                frames,
                ending,
            } => (status, cost, frames, ending),
            Answer::Error => {
                self.token.take().unwrap().end(End::Failed);
                return Poll::Ready(Err(Boom(id)));
            }
            Answer::Panic | Answer::PanicInCall => resume_unwind(Box::new("answer")),
        };
        let mut token = self.token.take().unwrap();
        if let Some(over) = &mut token.over {
            over.status = Some(StatusCode::from_u16(status).unwrap());
            over.cost = cost;
        }
        let body = ScriptedBody {
            id,
            polls: self.script.polls,
            left: self.script.polls,
            frames,
            ending: Some(ending),
            token,
        };
        let answer = Response::builder()
            .status(status)
            .header("x-scripted", id)
            .header("x-cost", cost);
        let mut answer = answer.body(body).unwrap();
        if answer.body().is_end_stream() {
            answer.body_mut().token.end(End::Complete);
        }
        Poll::Ready(Ok(answer))
    }
}

/// The bytes of each frame.
pub(crate) const FRAME: &[u8] = b"12345";

#[derive(Debug)]
pub(crate) struct ScriptedBody {
    id: usize,
    polls: u64,
    left: u64,
    frames: u64,
    ending: Option<Ending>,
    token: Token,
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Boom;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Boom>>> {
        if self.left > 0 {
            self.left -= 1;
            return Poll::Pending;
        }
        self.left = self.polls;
        if self.frames > 0 {
            self.frames -= 1;
            if let Some(over) = &mut self.token.over {
                over.bytes += u64::try_from(FRAME.len()).unwrap();
            }
            if self.is_end_stream() {
                self.token.end(End::Complete);
            }
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(FRAME)))));
        }
        match self.ending.take() {
            Some(Ending::Fails) => {
                self.token.end(End::Failed);
                Poll::Ready(Some(Err(Boom(self.id))))
            }
            Some(Ending::Panics) => resume_unwind(Box::new("body")),
            Some(Ending::Trailers) => {
                self.token.end(End::Complete);
                Poll::Ready(Some(Ok(Frame::trailers(HeaderMap::new()))))
            }
            Some(Ending::Complete | Ending::Known) | None => {
                self.token.end(End::Complete);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames == 0 && matches!(self.ending, Some(Ending::Known))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
