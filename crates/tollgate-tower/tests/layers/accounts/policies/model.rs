//! A policy kept by hand, beside that of a layer.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request};
use tollgate::clock::Clock;
use tollgate::{Denied, Tick};
use tollgate_http::{AnswerFacts, Answers, LimitStates, Refusal, RequestFacts};
use tollgate_policy::{Current, Decision, LivePolicy, Outcome, Policy, Reason};

use crate::accounts::scripted::{Event, Over};
use crate::clock::RuntimeClock;

pub(crate) type Made = Decision<Current<RuntimeClock>, RuntimeClock>;

/// A request, as the test knows it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) request: Request<()>,
    /// When it stops waiting.
    pub(crate) until: Option<Duration>,
    pub(crate) has_place: bool,
    pub(crate) stage: Stage,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// It is served, or sleeps until this millisecond.
    Allowed(Box<Made>, Tick, Option<u128>),
    /// It is decided again at this millisecond.
    Retries(u128),
    Refused,
}

/// The same policy, kept by hand.
pub(crate) struct Model {
    pub(crate) policy: LivePolicy<RuntimeClock>,
    pub(crate) clock: RuntimeClock,
    pub(crate) answers: Answers,
    /// For how long requests may wait, in milliseconds, and how many.
    pub(crate) wait: Option<(u64, usize)>,
    pub(crate) known: HashMap<usize, Known>,
}

pub(crate) fn policy(text: &str, clock: RuntimeClock) -> LivePolicy<RuntimeClock> {
    let policy = Policy::builder().clock(clock).build_toml(text);
    LivePolicy::new(policy.expect("a policy"))
}

impl Model {
    /// The timer has a resolution of a millisecond.
    fn wakes(&self, after: Duration) -> u128 {
        (self.clock.elapsed() + after)
            .as_nanos()
            .div_ceil(1_000_000)
    }

    /// Decides about a request. Returns the headers of its refusal.
    pub(crate) fn decide(&mut self, id: usize) -> Option<HeaderMap> {
        let now = self.clock.elapsed();
        let places = self.known.values().filter(|known| known.has_place).count();
        let mut known = self.known.remove(&id).unwrap();
        let patience = known.until.map(|until| until.saturating_sub(now));
        let has_place = known.has_place || places < self.wait.map_or(0, |wait| wait.1);
        let facts = RequestFacts::new(&known.request);
        // A denial that the request waits for does not count towards a ban.
        let patience = patience.filter(|_| has_place);
        let decision = self.policy.decide_together(&[facts], patience);
        let mut refusal = None;
        known.stage = if decision.is_allowed() {
            let sleeps = decision.delay() > Duration::ZERO;
            let wakes = sleeps.then(|| self.wakes(decision.delay()));
            Stage::Allowed(Box::new(decision), self.clock.now(), wakes)
        } else {
            match decision.reason() {
                Some(Reason::Limit {
                    denied: Denied::Later { retry_after, .. },
                    ..
                }) if patience.is_some_and(|patience| retry_after <= patience) && has_place => {
                    known.has_place = true;
                    Stage::Retries(self.wakes(retry_after))
                }
                _ => {
                    refusal = Some(self.refusal(&decision));
                    known.has_place = false;
                    Stage::Refused
                }
            }
        };
        self.known.insert(id, known);
        refusal
    }

    fn refusal(&self, decision: &Made) -> HeaderMap {
        let states = LimitStates::of(decision);
        let refusal = Refusal::of_decision(decision).expect("it is denied");
        let answer = self.answers.refuse(&refusal.limits(&states));
        answer.into_parts().0.headers
    }

    /// Whether a request sleeps, and whether its sleep is over.
    pub(crate) fn sleep(&self, id: usize) -> (bool, bool) {
        let now = self.clock.elapsed().as_millis();
        match self.known.get(&id).map(|known| &known.stage) {
            Some(Stage::Allowed(_, _, Some(wakes)) | Stage::Retries(wakes)) => {
                (true, *wakes <= now)
            }
            _ => (false, false),
        }
    }

    /// Whether a request is served as soon as its sleep is over.
    pub(crate) fn is_served_next(&self, id: usize) -> bool {
        matches!(
            self.known.get(&id).map(|it| &it.stage),
            Some(Stage::Allowed(..))
        )
    }

    pub(crate) fn happened(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Called(id) => {
                    let known = self.known.get_mut(&id).unwrap();
                    known.has_place = false;
                    match &mut known.stage {
                        Stage::Allowed(_, _, wakes) => *wakes = None,
                        other => panic!("{id} is served, but {other:?}"),
                    }
                }
                Event::Over(over) => {
                    let known = self.known.remove(&over.id).unwrap();
                    self.finish(&over, known);
                }
            }
        }
    }

    fn finish(&self, over: &Over, known: Known) {
        let Stage::Allowed(decision, at, None) = known.stage else {
            panic!("{} was not served", over.id);
        };
        let outcome = match (over.is_failure(), over.is_success()) {
            (true, _) => Outcome::Failure,
            (false, true) => Outcome::Success,
            _ if over.is_unanswered() => Outcome::Unanswered,
            _ => Outcome::Neither,
        };
        let Some(status) = over.status else {
            decision.finish(outcome, &());
            return;
        };
        let headers =
            HeaderMap::from_iter([("x-cost".parse().unwrap(), HeaderValue::from(over.cost))]);
        let time = self.clock.now().saturating_since(at);
        let facts = AnswerFacts::new(status, &headers)
            .bytes(over.bytes)
            .time(time);
        decision.finish(outcome, &facts);
    }

    /// The client went away. Others may wait behind it, so its permits stay taken.
    pub(crate) fn cancel(&mut self, id: usize) {
        self.known.remove(&id);
    }
}
