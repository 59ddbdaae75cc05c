//! A service that records when it serves each request, and a future that counts its polls.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate_tower::{Admission, RateLimitLayer, RateLimitService};
use tower::{Layer, Service};

use crate::clock::RuntimeClock;

/// Records the number of each request, and the time.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    clock: RuntimeClock,
    log: Arc<Mutex<Vec<(usize, Duration)>>>,
}

impl Service<Request<()>> for Served {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let number = *request.extensions().get::<usize>().unwrap();
        self.lock().push((number, self.clock.elapsed()));
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"a page")))))
    }
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Duration)>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) at: Duration,
    /// How often its future was polled.
    pub(crate) polls: u32,
}

/// A service behind a layer.
#[derive(Debug, Clone)]
pub(crate) struct Limited<A> {
    clock: RuntimeClock,
    served: Served,
    service: RateLimitService<Served, A>,
}

impl<A: Admission<Grant: Send, Pending: Send> + Clone + Send + Sync + 'static> Limited<A> {
    pub(crate) fn new(clock: RuntimeClock, layer: &RateLimitLayer<A>) -> Self {
        let log = Arc::default();
        let served = Served { clock, log };
        Self {
            clock,
            service: layer.layer(served.clone()),
            served,
        }
    }

    /// The requests that were served so far, and when.
    pub(crate) fn served(&self) -> Vec<(usize, Duration)> {
        self.served.lock().clone()
    }

    /// Calls the service, and returns a future that holds the answer for a time.
    pub(crate) fn call(
        &self,
        number: usize,
        holds: Duration,
    ) -> impl Future<Output = Ended> + Send + use<A> {
        let request = Request::get("/").header("x-key", "a").extension(number);
        let mut service = self.service.clone();
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(service.poll_ready(&mut context).is_ready());
        let mut answer = Box::pin(service.call(request.body(()).unwrap()));
        let clock = self.clock;
        async move {
            let mut polls = 0;
            let answer = std::future::poll_fn(|context| {
                polls += 1;
                answer.as_mut().poll(context)
            });
            let answer = answer.await.unwrap();
            let at = clock.elapsed();
            let retry_after = answer.headers().get("retry-after");
            let retry_after = retry_after.map(|value| value.to_str().unwrap().parse().unwrap());
            let status = answer.status().as_u16();
            tokio::time::sleep(holds).await;
            answer.into_body().collect().await.unwrap();
            Ended {
                status,
                retry_after,
                at,
                polls,
            }
        }
    }

    /// The same in a task of its own.
    pub(crate) fn spawn(&self, number: usize, holds: Duration) -> tokio::task::JoinHandle<Ended> {
        tokio::spawn(self.call(number, holds))
    }
}
