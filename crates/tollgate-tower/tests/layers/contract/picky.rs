//! A service that holds the layers above it to tower's contract.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::Service;

/// Each clone has a number of its own. It becomes ready only every third time that it is asked,
/// stays ready until it is called, and panics if it is called before.
#[derive(Debug)]
pub(crate) struct Picky {
    log: Log,
    number: usize,
    asked: usize,
    is_ready: bool,
}

/// What happened to each clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Clones>>);

#[derive(Debug, Default)]
pub(crate) struct Clones {
    made: usize,
    pub(crate) polled: HashMap<usize, usize>,
    /// The numbers of the clones, in the order of their calls.
    pub(crate) called: Vec<usize>,
    /// The clones that are ready and were not called since.
    pub(crate) ready: Vec<usize>,
}

/// The error of a service that is asked too often.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted(pub(crate) usize);

impl std::fmt::Display for Exhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "clone {} is exhausted", self.0)
    }
}

impl std::error::Error for Exhausted {}

impl Picky {
    pub(crate) fn new() -> Self {
        Self::of(Log::default())
    }

    fn of(log: Log) -> Self {
        let number = {
            let mut clones = log.lock();
            clones.made += 1;
            clones.made - 1
        };
        Self {
            log,
            number,
            asked: 0,
            is_ready: false,
        }
    }

    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }
}

impl Log {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Clones> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        Self::of(self.log.clone())
    }
}

impl Drop for Picky {
    fn drop(&mut self) {
        self.log.lock().ready.retain(|ready| *ready != self.number);
    }
}

impl Service<Request<()>> for Picky {
    type Response = Response<Full<Bytes>>;
    type Error = Exhausted;
    type Future = Ready<Result<Self::Response, Exhausted>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Exhausted>> {
        *self.log.lock().polled.entry(self.number).or_default() += 1;
        if self.is_ready {
            return Poll::Ready(Ok(()));
        }
        self.asked += 1;
        if !self.asked.is_multiple_of(3) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_ready = true;
        self.log.lock().ready.push(self.number);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        assert!(
            self.is_ready,
            "clone {} was called, and was not ready",
            self.number
        );
        self.is_ready = false;
        let mut clones = self.log.lock();
        clones.called.push(self.number);
        clones.ready.retain(|ready| *ready != self.number);
        ready(match request.uri().path() {
            "/error" => Err(Exhausted(self.number)),
            _ => Ok(Response::new(Full::new(Bytes::from(
                self.number.to_string(),
            )))),
        })
    }
}
