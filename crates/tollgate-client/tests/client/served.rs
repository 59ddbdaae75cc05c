//! Servers in this process, in tokio's paused time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::{Instant, sleep};
use tollgate::{AnyAlgorithm, Limiter};
use tollgate_http::{Answers, Cause, Fields, LimitState, Refusal};
use tower::{Service, service_fn};

use crate::clock::RuntimeClock;
use crate::fleet::Random;

/// A server whose answers say what is left of its one limit.
#[derive(Debug)]
pub(crate) struct Served {
    limiter: Limiter<AnyAlgorithm, RuntimeClock>,
    answers: Answers,
    latency: Duration,
    random: Mutex<u64>,
    is_shut: Mutex<bool>,
    /// What it granted and refused since it was last asked.
    counts: Mutex<(u64, u64)>,
}

impl Served {
    pub(crate) fn new(limit: &str, fields: Fields, latency: Duration) -> Arc<Self> {
        let algorithm: AnyAlgorithm = limit.parse().unwrap();
        Arc::new(Self {
            limiter: Limiter::with_clock(algorithm, RuntimeClock::new()),
            answers: Answers::new().fields(fields),
            latency,
            random: Mutex::new(1),
            is_shut: Mutex::default(),
            counts: Mutex::default(),
        })
    }

    /// Returns the service, with a network before it.
    pub(crate) fn service(
        self: &Arc<Self>,
    ) -> impl Service<Request<()>, Response = Response<Bytes>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static {
        let this = Arc::clone(self);
        service_fn(move |_: Request<()>| {
            let this = Arc::clone(&this);
            async move {
                sleep(this.way()).await;
                let answer = this.answer();
                sleep(this.way()).await;
                Ok(answer)
            }
        })
    }

    /// Another client takes all permits from now on, or no more.
    pub(crate) fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
    }

    pub(crate) fn answer(&self) -> Response<Bytes> {
        if *self.is_shut.lock().unwrap() {
            _ = self.limiter.try_acquire_n(self.limiter.available());
        }
        let decided = self.limiter.try_acquire();
        let state = LimitState::of_rate("all", self.limiter.quota());
        match decided {
            Ok(granted) => {
                self.counts.lock().unwrap().0 += 1;
                let mut answer = Response::new(Bytes::new());
                let states = [state.granted(granted.info())];
                self.answers.write(states.into_iter(), answer.headers_mut());
                answer
            }
            Err(denied) => {
                self.counts.lock().unwrap().1 += 1;
                let states = [state.denied(&denied, self.limiter.available())];
                let refusal = Refusal::new(Cause::Limit).limits(&states);
                let wait = denied.retry_after().unwrap();
                self.answers.refuse(&refusal.retry_after(wait))
            }
        }
    }

    fn way(&self) -> Duration {
        let mut seed = self.random.lock().unwrap();
        let mut random = Random(*seed);
        let way = random.below(self.latency / 2);
        *seed = random.0;
        way
    }

    /// Returns what was granted and refused, and begins to count anew.
    pub(crate) fn counts(&self) -> (u64, u64) {
        std::mem::take(&mut *self.counts.lock().unwrap())
    }
}

/// A server that answers by a script, and notes when it was asked.
#[derive(Clone)]
pub(crate) struct Script {
    answer: Arc<dyn Fn(usize) -> Response<()> + Send + Sync>,
    pub(crate) asked: Arc<Mutex<Vec<Instant>>>,
}

impl Script {
    /// Answers by this function of how many requests came before.
    pub(crate) fn new(answer: impl Fn(usize) -> Response<()> + Send + Sync + 'static) -> Self {
        Self {
            answer: Arc::new(answer),
            asked: Arc::default(),
        }
    }

    /// Answers each request with this status, and with these fields.
    pub(crate) fn always(status: u16, fields: &'static [(&'static str, &'static str)]) -> Self {
        Self::new(move |_| answer(status, fields))
    }

    pub(crate) fn service<B: Send + 'static>(
        &self,
    ) -> impl Service<Request<B>, Response = Response<()>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static {
        let this = self.clone();
        service_fn(move |_: Request<B>| {
            let mut asked = this.asked.lock().unwrap();
            let answer = (this.answer)(asked.len());
            asked.push(Instant::now());
            async move {
                sleep(Duration::from_millis(10)).await;
                Ok(answer)
            }
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

pub(crate) fn answer(status: u16, fields: &[(&str, &str)]) -> Response<()> {
    let mut answer = Response::builder().status(status);
    for (name, value) in fields {
        answer = answer.header(*name, *value);
    }
    answer.body(()).unwrap()
}

pub(crate) fn get(uri: &str) -> Request<()> {
    Request::get(uri).body(()).unwrap()
}
