//! The policy, and what a service knows beside it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use futures_util::future::{self, BoxFuture, Either, Ready};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use tollgate_http::{Answers, Fields, PathForm};
use tollgate_policy::{Decision, Facts, LivePolicy, Policy};

use crate::budget::Budget;
use crate::client::Clients;
use crate::counters::Counters;
use crate::held::Held;
use crate::overrides::Overrides;
use crate::settings::Limits;

pub(crate) type Decided = Decision<Arc<Policy>>;
pub(crate) type Answer = Response<Full<Bytes>>;
/// An answer, or the future of one in a box. So the common answers are not moved with the space
/// that the largest future takes.
pub(crate) type Answering = Either<Ready<Answer>, BoxFuture<'static, Answer>>;

pub(crate) fn now(answer: Answer) -> Answering {
    Either::Left(future::ready(answer))
}

pub(crate) fn later(answer: impl Future<Output = Answer> + Send + 'static) -> Answering {
    Either::Right(Box::pin(answer))
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) counters: Counters,
    pub(crate) held: Held,
    /// The limits that Envoy's requests bring.
    pub(crate) overrides: Overrides,
    pub(crate) limits: Limits,
    /// The memory of bodies, and of answers.
    pub(crate) budget: Arc<Budget>,
    pub(crate) answers: Answers,
    pub(crate) clients: Clients,
    /// Whether the service is about to stop, so that load balancers send nothing more.
    pub(crate) drains: AtomicBool,
}

impl Service {
    pub(crate) fn new(
        policy: Arc<LivePolicy>,
        counters: Counters,
        held: Held,
        limits: Limits,
    ) -> Self {
        Self {
            policy,
            counters,
            held,
            overrides: Overrides::default(),
            budget: Arc::new(Budget::new(limits.pending_bytes)),
            limits,
            answers: Answers::new().fields(Fields::LIST),
            clients: Clients::default(),
            drains: AtomicBool::new(false),
        }
    }

    /// Says whether a load balancer should send requests.
    pub(crate) fn readiness(&self) -> Answer {
        match self.drains.load(Relaxed) {
            false => text(StatusCode::OK, "ready"),
            true => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "load balancers should send elsewhere",
            ),
        }
    }

    /// Ends a request for a caller that will not do it: its permits stay taken, and its places are
    /// free. A task tells the stores. If a store does not answer, a place is free when its lease is
    /// over.
    pub(crate) fn end(&self, decided: Decided) {
        if self.policy.is_asynchronous() && decided.needs_finish() {
            tokio::spawn(async move { drop(decided.settle_async(&()).await) });
        }
    }

    /// Reads the facts and decides. The future waits only for stores of other machines.
    pub(crate) fn decide_by<F: Facts>(&self, policy: Arc<Policy>, sets: &[F]) -> Deciding {
        match policy.is_asynchronous() {
            true => {
                let sets: Vec<&dyn Facts> = sets.iter().map(|set| set as &dyn Facts).collect();
                Deciding::Elsewhere(Box::pin(policy.decide_together_async_owned(&sets)))
            }
            false => Deciding::Here(policy.decide_together_owned(sets)),
        }
    }
}

/// Returns the form in which a policy's rules see paths.
pub(crate) fn path_form(policy: &Policy) -> PathForm {
    policy.client().path.map(PathForm::from).unwrap_or_default()
}

/// A decision that is made, or that stores are making.
#[expect(
    clippy::large_enum_variant,
    reason = "a decision that is made needs no box"
)]
pub(crate) enum Deciding {
    Here(Decided),
    Elsewhere(Pin<Box<dyn Future<Output = Decided> + Send>>),
}

impl Deciding {
    pub(crate) async fn get(self) -> Decided {
        match self {
            Self::Here(decided) => decided,
            Self::Elsewhere(future) => future.await,
        }
    }
}

/// An answer of one line of text.
pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Answer {
    let mut line = text.into();
    line.push('\n');
    of_kind(status, "text/plain; charset=utf-8", line)
}

/// An answer with a body.
pub(crate) fn of_kind(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
