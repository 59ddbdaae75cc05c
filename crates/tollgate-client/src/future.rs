use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tollgate::Tick;
use tollgate::clock::Clock;
use tower::Service;

use super::copy::CopyRequest;
use super::error::ClientLimitError;
use super::memory::{Answered, GroupKey};
use super::message::{ClientRequest, ClientResponse};
use super::retry::{Retry, Verdict, backoff};
use super::settings::Shared;
use super::turn::{NoTurn, Turn};

pin_project! {
    /// The future of [`ClientLimit`](super::ClientLimit). A request that is dropped while it waits
    /// has taken nothing. If it is polled again after it has completed, it stays pending forever.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ClientFuture<S, Request, C>
    where
        S: Service<Request>,
    {
        shared: Arc<Shared>,
        service: S,
        copier: C,
        key: GroupKey,
        // The server may get the request twice.
        may_repeat: bool,
        // A hash of its URL, if answers say which URL answered.
        url: Option<u64>,
        // How often it has been sent.
        attempts: u32,
        // What is sent next.
        request: Option<Request>,
        #[pin]
        stage: Stage<S::Future>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F> {
        // Waits until the request may go. The service is ready.
        Turn { #[pin] turn: Turn },
        // Waits for the answer to a request that went at this tick.
        Call { #[pin] call: F, flight: Flight },
        // Waits before the request is sent again.
        Backoff { #[pin] sleep: Sleep },
        // Waits until the service is ready again.
        Ready,
        Ended,
    }
}

impl<S: Service<Request>, Request: ClientRequest, C> ClientFuture<S, Request, C> {
    /// Sends a request with a service that is ready.
    pub(super) fn new(shared: Arc<Shared>, service: S, copier: C, request: Request) -> Self {
        let head = request.head();
        let (key, may_repeat) = (shared.key(&head), shared.may_repeat(&head));
        let url = request.url().map(|url| shared.memory.url(url));
        let turn = Turn::new(Arc::clone(&shared), key);
        Self {
            shared,
            service,
            copier,
            key,
            may_repeat,
            url,
            attempts: 0,
            request: Some(request),
            stage: Stage::Turn { turn },
        }
    }
}

/// A request that has no answer yet. If it is dropped, none comes.
struct Flight {
    shared: Arc<Shared>,
    key: GroupKey,
    /// When it went.
    sent: Tick,
    is_over: bool,
}

impl Flight {
    /// Notes that the request has its answer or an error. Returns when it was sent.
    fn ends(&mut self) -> Tick {
        self.is_over = true;
        self.sent
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.memory.failed(self.key, self.sent);
        }
    }
}

/// What happens after an attempt.
enum Next<T> {
    End(T),
    /// Send again after this wait.
    Again(Duration),
}

impl<S, Request, C> ClientFuture<S, Request, C>
where
    S: Service<Request, Response: ClientResponse>,
{
    /// Decides what to do with the result of an attempt.
    fn judge(
        self: Pin<&mut Self>,
        result: Result<S::Response, S::Error>,
        sent: Tick,
    ) -> Next<Result<S::Response, S::Error>> {
        let this = self.project();
        let (shared, attempt) = (&**this.shared, *this.attempts);
        // There is a copy only if the request may be sent again.
        let has_copy = this.request.is_some();
        let (retry, wait, held) = match &result {
            Ok(answer) => {
                let verdict = Verdict::of(answer);
                let now = shared.settings.clock.now();
                let answered = Answered {
                    sent,
                    now,
                    said: &verdict.said,
                    is_refused: verdict.is_refused,
                    is_unavailable: verdict.is_unavailable,
                    hold: verdict.hold,
                };
                let next = shared.memory.answered(*this.key, &answered);
                let is_held = verdict.is_refused || verdict.hold.is_some();
                let (wait, held) = match is_held {
                    true => (Duration::ZERO, next.saturating_since(now)),
                    false => (backoff(attempt), Duration::ZERO),
                };
                let retry = match (verdict.retry, *this.url, answer.url()) {
                    // After a redirect, the first server may have done what was asked.
                    (Retry::Yes, Some(asked), Some(url)) if shared.memory.url(url) != asked => {
                        Retry::IfRepeatable
                    }
                    (retry, ..) => retry,
                };
                (retry, wait, held)
            }
            Err(_) => {
                shared.memory.failed(*this.key, sent);
                (Retry::IfRepeatable, backoff(attempt), Duration::ZERO)
            }
        };
        let may_retry = match retry {
            Retry::No => false,
            Retry::IfRepeatable => *this.may_repeat,
            Retry::Yes => true,
        };
        let max_wait = shared.settings.max_wait;
        let is_soon = held <= max_wait && wait <= max_wait;
        if has_copy && may_retry && is_soon && shared.settings.budget.withdraw() {
            Next::Again(wait)
        } else {
            Next::End(result)
        }
    }
}

impl<S, Request, C> Future for ClientFuture<S, Request, C>
where
    S: Service<Request, Response: ClientResponse>,
    Request: ClientRequest,
    C: CopyRequest<Request>,
{
    type Output = Result<S::Response, ClientLimitError<S::Error>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            match this.stage.as_mut().project() {
                StageProjection::Turn { turn } => {
                    let turn = ready!(turn.poll(context));
                    let (Ok(()), Some(request)) = (&turn, this.request.take()) else {
                        this.stage.set(Stage::Ended);
                        let max_wait = this.shared.settings.max_wait;
                        return match turn {
                            Err(NoTurn::WaitTooLong(wait)) => {
                                Poll::Ready(Err(ClientLimitError::WaitTooLong { wait, max_wait }))
                            }
                            Err(NoTurn::Quota(denied)) => {
                                Poll::Ready(Err(ClientLimitError::Quota(denied)))
                            }
                            Ok(()) => Poll::Pending,
                        };
                    };
                    if *this.attempts == 0 {
                        // A request that is not sent pays for no retry.
                        this.shared.settings.budget.deposit();
                    }
                    *this.attempts = this.attempts.saturating_add(1);
                    if *this.attempts < this.shared.settings.max_attempts {
                        *this.request = this.copier.copy(&request);
                    }
                    let call = this.service.call(request);
                    let flight = Flight {
                        shared: Arc::clone(this.shared),
                        key: *this.key,
                        sent: this.shared.settings.clock.now(),
                        is_over: false,
                    };
                    this.stage.set(Stage::Call { call, flight });
                }
                StageProjection::Call { call, flight } => {
                    let result = ready!(call.poll(context));
                    let sent = flight.ends();
                    match self.as_mut().judge(result, sent) {
                        Next::End(result) => {
                            self.project().stage.set(Stage::Ended);
                            return Poll::Ready(result.map_err(ClientLimitError::Inner));
                        }
                        Next::Again(Duration::ZERO) => {
                            self.as_mut().project().stage.set(Stage::Ready)
                        }
                        Next::Again(wait) => {
                            let sleep = tokio::time::sleep(wait);
                            self.as_mut().project().stage.set(Stage::Backoff { sleep });
                        }
                    }
                }
                StageProjection::Backoff { sleep } => {
                    ready!(sleep.poll(context));
                    this.stage.set(Stage::Ready);
                }
                StageProjection::Ready => {
                    if let Err(error) = ready!(this.service.poll_ready(context)) {
                        this.stage.set(Stage::Ended);
                        return Poll::Ready(Err(ClientLimitError::Inner(error)));
                    }
                    let turn = Turn::new(Arc::clone(this.shared), *this.key);
                    this.stage.set(Stage::Turn { turn });
                }
                StageProjection::Ended => return Poll::Pending,
            }
        }
    }
}

impl<S: Service<Request>, Request, C> fmt::Debug for ClientFuture<S, Request, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFuture")
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
