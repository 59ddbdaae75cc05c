//! Limits from a policy.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request};
use tollgate::Tick;
use tollgate::clock::{Clock, SystemClock};
use tollgate_http::{AnswerFacts, Cause, LimitStates, Refusal, RequestFacts};
use tollgate_policy::{
    Asked, Current, Decision, FactName, Facts, LivePolicy, Outcome, Policy, PolicyClock, Reason,
    Value,
};

use crate::admission::{Admission, Admit, Grant, Sealed};
use crate::answered::Ended;
use crate::report;
use crate::settings::Settings;

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) that follows a policy.
pub struct ByPolicy<C: Clock = SystemClock> {
    pub(crate) policy: Arc<LivePolicy<C>>,
    pub(crate) own: Option<OwnFacts>,
}

impl<C: Clock> Clone for ByPolicy<C> {
    fn clone(&self) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
            own: self.own.clone(),
        }
    }
}

pub(crate) type OwnFacts =
    Arc<dyn for<'r> Fn(&RequestFacts<'r>, &FactName) -> Option<Value<'r>> + Send + Sync>;

/// The facts of a request, and those of the program.
struct AllFacts<'r> {
    request: RequestFacts<'r>,
    own: Option<&'r OwnFacts>,
}

impl Facts for AllFacts<'_> {
    #[inline]
    fn fact(&self, name: &FactName) -> Option<Value<'_>> {
        let own = self.own.and_then(|own| own(&self.request, name));
        own.or_else(|| self.request.fact(name))
    }
}

/// A decision of a policy whose stores decide at once, or of one whose stores do not.
enum Decided<C: Clock + fmt::Debug + Send + Sync> {
    Here(Decision<Current<C>, C>),
    Elsewhere(Decision<Arc<Policy<C>>, C>),
}

/// Uses a decision of either kind.
macro_rules! each {
    ($decided:expr, $decision:pat => $use:expr) => {
        match $decided {
            Decided::Here($decision) => $use,
            Decided::Elsewhere($decision) => $use,
        }
    };
}

impl<C: PolicyClock> ByPolicy<C> {
    fn facts<'r, B>(&'r self, request: &'r Request<B>, settings: &Settings) -> AllFacts<'r> {
        AllFacts {
            request: settings.facts(request),
            own: self.own.as_ref(),
        }
    }

    fn decide<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        let facts = self.facts(request, settings);
        let elsewhere =
            || -> <Self as Admission>::Pending { Box::pin(self.policy.decide_async(&facts)) };
        if self.policy.is_asynchronous() {
            return Admit::Pending(elsewhere(), None);
        }
        let decision = self.policy.decide(&facts);
        if let Some(Reason::Asynchronous { .. }) = decision.reason() {
            // The policy was reloaded between the two calls.
            return Admit::Pending(elsewhere(), None);
        }
        self.decided(Decided::Here(decision), request, settings, patience)
    }

    /// Turns a decision into what the layer does.
    fn decided<B>(
        &self,
        decided: Decided<C>,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        each!(&decided, decision => {
            if decision.is_allowed() {
                report_asked(decision.asked());
                let delay = decision.delay();
                let needs_end = decision.needs_finish();
                if !needs_end && delay == Duration::ZERO && !settings.answers.has_fields() {
                    return Admit::Free;
                }
                let reads_headers = decision.reads_answer();
                let grant = PolicyGrant {
                    start: reads_headers.then(|| self.policy.load().clock().now()),
                    policy: Arc::clone(&self.policy),
                    decided: Box::new(decided),
                    needs_end,
                    reads_headers,
                };
                return match delay {
                    Duration::ZERO => Admit::Granted(grant),
                    delay => Admit::Delayed(grant, delay),
                };
            }
            if let (Some(wait), Some(patience)) = (decision.retry_after(), patience) {
                if wait <= patience {
                    return Admit::Retry(wait);
                }
            }
            report_asked(decision.asked().filter(Asked::is_shadow));
            let states = LimitStates::of(decision);
            let refusal = decision.reason();
            let refusal = refusal.map_or(Refusal::new(Cause::Misconfigured), |reason| {
                Refusal::of_reason(&reason)
            });
            let refusal = refusal.limits(&states);
            report::denied(decision.denied_by().unwrap_or(&settings.name), refusal.cause());
            Admit::Refused(Box::new(settings.refuse(request, &refusal)))
        })
    }
}

/// Reports the rules that were asked.
fn report_asked<'a>(asked: impl Iterator<Item = Asked<'a>>) {
    if !report::IS_ON {
        return;
    }
    let mut last = None;
    for asked in asked {
        match (asked.is_shadow(), asked.would_allow()) {
            (true, false) => report::shadow(asked.rule()),
            (false, _) if last != Some(asked.rule()) => report::allowed(asked.rule()),
            _ => {}
        }
        last = Some(asked.rule());
    }
}

impl<C: Clock> Sealed for ByPolicy<C> {}

impl<C: PolicyClock> Admission for ByPolicy<C> {
    type Grant = PolicyGrant<C>;
    /// The store's answer. A decision of such a policy goes over the network, beside which the box
    /// costs nothing.
    type Pending = Pin<Box<dyn Future<Output = Decision<Arc<Policy<C>>, C>> + Send>>;

    fn admit<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        match self.decide(request, settings, patience) {
            Admit::Retry(_) => Admit::MustWait,
            decided => decided,
        }
    }

    fn wait<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        patience: Duration,
    ) -> Admit<Self> {
        self.decide(request, settings, Some(patience))
    }

    fn conclude<B>(
        &self,
        request: &Request<B>,
        settings: &Settings,
        outcome: Option<Decision<Arc<Policy<C>>, C>>,
        patience: Option<Duration>,
    ) -> Admit<Self> {
        match outcome {
            Some(decision) => {
                self.decided(Decided::Elsewhere(decision), request, settings, patience)
            }
            None => self.admit(request, settings, None),
        }
    }
}

impl<C: Clock> fmt::Debug for ByPolicy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPolicy").finish_non_exhaustive()
    }
}

/// What a request holds that a policy allows.
#[doc(hidden)]
pub struct PolicyGrant<C: PolicyClock> {
    decided: Box<Decided<C>>,
    policy: Arc<LivePolicy<C>>,
    needs_end: bool,
    reads_headers: bool,
    /// When the request was allowed, if its time may count.
    start: Option<Tick>,
}

impl<C: PolicyClock> fmt::Debug for PolicyGrant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(&*self.decided, decision => fmt::Debug::fmt(decision, f))
    }
}

impl<C: PolicyClock> Grant for PolicyGrant<C> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        if settings.answers.has_fields() {
            let states = each!(&*self.decided, decision => LimitStates::of(decision));
            settings.answers.write(states.iter().copied(), headers);
        }
    }

    fn needs_end(&self) -> bool {
        self.needs_end
    }

    fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    fn end(self, ended: Ended<'_>, settings: &Settings) {
        let elapsed = self.start.map_or(Duration::ZERO, |start| {
            self.policy.load().clock().now().saturating_since(start)
        });
        let ended = Ended { elapsed, ..ended };
        let outcome = match settings.failed(&ended) {
            true => Outcome::Failure,
            false => Outcome::Success,
        };
        match *self.decided {
            Decided::Here(decision) => {
                match answer_facts(&ended) {
                    Some(facts) => decision.finish(outcome, &facts),
                    None => decision.finish(outcome, &()),
                };
            }
            Decided::Elsewhere(decision) => {
                let headers = ended.headers.cloned();
                let (status, bytes) = (ended.status, ended.bytes);
                spawn(async move {
                    let headers = headers.as_ref();
                    let ended = Ended {
                        status,
                        headers,
                        bytes,
                        elapsed,
                        ..Ended::default()
                    };
                    // A store that does not answer keeps the grant as it is.
                    let _ = match answer_facts(&ended) {
                        Some(facts) => decision.finish_async(outcome, &facts).await,
                        None => decision.finish_async(outcome, &()).await,
                    };
                });
            }
        }
    }

    fn cancel(self) {
        match *self.decided {
            Decided::Here(decision) => {
                decision.undo();
            }
            Decided::Elsewhere(decision) => spawn(async move {
                let _ = decision.undo_async().await;
            }),
        }
    }
}

/// Returns the facts of an answer, if there was one and a rule reads it.
fn answer_facts<'a>(ended: &Ended<'a>) -> Option<AnswerFacts<'a>> {
    let facts = AnswerFacts::new(ended.status?, ended.headers?);
    Some(facts.bytes(ended.bytes).time(ended.elapsed))
}

/// Goes on in a task of its own. Without a runtime, nothing is settled.
fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(future);
    }
}
