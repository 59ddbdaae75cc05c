//! Limits from a policy.

use std::fmt;
use std::ops::Deref;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::{Clock, SystemClock};
use tollgate::{Denied, Tick};
use tollgate_http::{
    AnswerFacts, Cause, ClientAddress, FieldValues, LimitStates, PathForm, Refusal, RequestFacts,
};
use tollgate_policy::file::ClientSettings;
use tollgate_policy::{
    Asked, Current, Decision, FactName, FactValue, FactValues, Facts, LivePolicy, Outcome, Policy,
    PolicyClock, Reason,
};

use crate::admission::{Admission, Admit, Decide, Grant};
use crate::answered::{self, Ended};
use crate::deciding::{Deciding, Undo, spawn};
use crate::head::Head;
use crate::report::{self, Decided as Reported};
use crate::settings::{ReadsRequests, Settings};

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) that follows a policy.
pub struct ByPolicy<C: Clock = SystemClock> {
    pub(crate) policy: Arc<LivePolicy<C>>,
    pub(crate) own: Option<OwnFacts>,
    pub(crate) of_answers: OwnAnswerFacts,
}

impl<C: Clock> Clone for ByPolicy<C> {
    fn clone(&self) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
            own: self.own.clone(),
            of_answers: Arc::clone(&self.of_answers),
        }
    }
}

/// Facts of answers that the program supplies, by name.
pub(crate) type OwnAnswerFacts = Arc<Vec<(Box<str>, AnswerFact)>>;
pub(crate) type AnswerFact = Arc<dyn Fn(&Ended<'_>) -> Option<u64> + Send + Sync>;

pub(crate) type OwnFacts =
    Arc<dyn for<'r> Fn(&RequestFacts<'r>, &FactName) -> Option<FactValue<'r>> + Send + Sync>;

/// The facts of a request, and those of the program.
struct AllFacts<'r> {
    request: RequestFacts<'r>,
    own: Option<&'r OwnFacts>,
}

impl Facts for AllFacts<'_> {
    #[inline]
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    #[inline]
    fn values(&self, name: &FactName) -> FactValues<'_> {
        let own = self.own.and_then(|own| own(&self.request, name));
        own.map_or_else(|| self.request.values(name), FactValues::from)
    }
}

impl<C: PolicyClock> ReadsRequests for LivePolicy<C> {
    fn facts<'r>(&self, head: Head<'r>, settings: &Settings) -> RequestFacts<'r> {
        facts_by(&self.current(), head, settings)
    }
}

/// What a policy's file says of clients, if it says it.
struct Client {
    address: Option<ClientAddress>,
    path: Option<PathForm>,
}

impl Client {
    fn of(settings: &ClientSettings) -> Self {
        Self {
            address: ClientAddress::of_policy(settings),
            path: settings.path.map(PathForm::from),
        }
    }
}

fn facts_by<'r, C>(policy: &Policy<C>, head: Head<'r>, settings: &Settings) -> RequestFacts<'r> {
    let made;
    let client = match policy.client_as(Client::of) {
        Some(client) => client,
        // The program has made something else of it.
        None => {
            made = Client::of(policy.client());
            &made
        }
    };
    let address = client.address.as_ref().unwrap_or(&settings.address);
    settings.facts_by(address, client.path.unwrap_or(settings.path), head)
}

/// A decision of a policy: `Here` if all of its stores decide at once, `Elsewhere` if some do not.
enum Decided<C: PolicyClock> {
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

impl<C: PolicyClock> From<Decision<Current<C>, C>> for Decided<C> {
    fn from(decision: Decision<Current<C>, C>) -> Self {
        Self::Here(decision)
    }
}

impl<C: PolicyClock> From<Decision<Arc<Policy<C>>, C>> for Decided<C> {
    fn from(decision: Decision<Arc<Policy<C>>, C>) -> Self {
        Self::Elsewhere(decision)
    }
}

impl<C: PolicyClock> ByPolicy<C> {
    /// Turns a decision into what the layer does. If the request would wait, but has no place,
    /// `again` may decide again.
    #[inline]
    fn decided<R: Deref<Target = Policy<C>>>(
        &self,
        decision: Decision<R, C>,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
        again: impl FnOnce() -> Option<Admit<Self>>,
    ) -> Admit<Self>
    where
        Decided<C>: From<Decision<R, C>>,
    {
        if decision.is_allowed() {
            report_asked(decision.asked(), settings);
            let delay = decision.delay();
            if delay > Duration::ZERO && !has_place && !settings.is_shadow {
                report_delay(decision.asked(), settings);
            }
            let values = match settings.answers.has_fields() {
                true => {
                    let states = LimitStates::of(&decision);
                    settings.answers.values(states.iter().copied())
                }
                false => FieldValues::default(),
            };
            let needs_end = decision.needs_finish();
            if !needs_end && delay == Duration::ZERO {
                return Admit::said(values);
            }
            let reads_headers = decision.reads_answer();
            let reads_time = reads_headers || (needs_end && settings.is_failure.is_some());
            let grant = PolicyGrant {
                start: reads_time.then(|| self.policy.current().clock().now()),
                decided: Box::new(decision.into()),
                needs_end,
                reads_headers,
            };
            return Admit::granted(grant, values, delay, settings);
        }
        let wait = |patience| match decision.reason()? {
            Reason::Limit {
                rule,
                denied: Denied::Later { retry_after, .. },
            } if retry_after <= patience => Some((rule, retry_after)),
            _ => None,
        };
        if let Some((rule, retry_after)) = patience.and_then(wait) {
            if has_place {
                return Admit::Retry(retry_after, None);
            }
            if let Some(place) = settings.place() {
                settings.report_of(rule).waited();
                return Admit::Retry(retry_after, Some(place));
            }
            // Another request took the last place.
            if let Some(decided) = again() {
                return decided;
            }
        }
        report_asked(decision.asked().filter(Asked::is_shadow), settings);
        let is_said = settings.answers.says_limits() || settings.on_decision.is_some();
        let states = is_said.then(|| LimitStates::of(&decision));
        let refusal = Refusal::of_decision(&decision);
        let refusal = refusal.unwrap_or(Refusal::new(Cause::Misconfigured));
        let refusal = refusal.limits(states.as_deref().unwrap_or_default());
        let refused = settings.refuse(head, &refusal);
        if let Some(fallback) = decision.fallback().filter(|_| !settings.is_shadow) {
            let rule = decision.denied_by().unwrap_or(&settings.name);
            settings
                .report_of(rule)
                .fallback(fallback.as_str(), Reported::Denied);
        }
        refused
    }
}

/// Reports the rules that were asked, each once. The limits of a rule lie side by side.
fn report_asked<'a>(asked: impl Iterator<Item = Asked<'a>>, settings: &Settings) {
    if !report::IS_ON {
        return;
    }
    let mut asked = asked.peekable();
    while let Some(first) = asked.next() {
        let rule = first.rule();
        let report = settings.report_of(rule);
        let mut would_allow = first.would_allow();
        while let Some(next) = asked.next_if(|next| next.rule() == rule) {
            would_allow &= next.would_allow();
        }
        match (first.is_shadow(), would_allow) {
            (true, true) => report.shadow_allowed(),
            (true, false) => report.shadow(),
            (false, _) => {
                report.allowed();
                if let Some(fallback) = first.fallback() {
                    report.fallback(fallback.as_str(), Reported::Allowed);
                }
            }
        }
    }
}

/// Reports the rule that delays a request the most.
fn report_delay<'a>(asked: impl Iterator<Item = Asked<'a>>, settings: &Settings) {
    let delay = |asked: &Asked<'_>| asked.grant().map(|grant| grant.delay());
    if let Some(slowest) = asked.max_by_key(delay) {
        settings.report_of(slowest.rule()).waited();
    }
}

/// Returns the most permits that one limit took.
fn most_taken<'a>(asked: impl Iterator<Item = Asked<'a>>) -> u64 {
    let granted = asked.filter(|asked| !asked.is_shadow());
    let taken = granted.filter_map(|asked| asked.grant()).map(|it| it.n());
    taken.max().unwrap_or(0)
}

impl<C: PolicyClock> Undo for Decision<Arc<Policy<C>>, C> {
    async fn undo(self) {
        let _ = self.undo_async().await;
    }
}

impl<C: PolicyClock> Admission for ByPolicy<C> {}

impl<C: PolicyClock> Decide for ByPolicy<C> {
    type Grant = PolicyGrant<C>;
    type Outcome = Decision<Arc<Policy<C>>, C>;
    type Pending = Deciding<Decision<Arc<Policy<C>>, C>>;

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        let policy = self.policy.current();
        let facts = AllFacts {
            request: facts_by(&policy, head, settings),
            own: self.own.as_ref(),
        };
        // If there is no place to wait, the denial counts towards a ban.
        let patience = patience.filter(|_| has_place || settings.has_place());
        if policy.is_asynchronous() {
            let decision = self.policy.decide_together_async(&[&facts], patience);
            return Admit::Pending(Deciding::new(decision));
        }
        // A denial that the request waits for does not count towards a ban.
        let sets = slice::from_ref(&facts);
        let decision = policy.decide_together(sets, patience);
        self.decided(decision, head, settings, patience, has_place, || {
            Some(self.admit(head, settings, None, has_place))
        })
    }

    fn go_on(
        &self,
        outcome: Decision<Arc<Policy<C>>, C>,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        // A store is not asked twice.
        self.decided(outcome, head, settings, patience, has_place, || None)
    }

    fn needs_end(&self, grant: &Self::Grant) -> bool {
        grant.needs_end
    }

    fn reads_headers(&self, grant: &Self::Grant, settings: &Settings) -> bool {
        grant.reads_headers || (grant.needs_end && settings.is_failure.is_some())
    }

    fn end(&self, grant: Self::Grant, ended: Ended<'_>, settings: &Settings) {
        let elapsed = grant.start.map_or(Duration::ZERO, |start| {
            self.policy.current().clock().now().saturating_since(start)
        });
        let taken = each!(&*grant.decided, decision => most_taken(decision.asked()));
        let ended = Ended {
            elapsed,
            taken,
            ..ended
        };
        let outcome = match settings.outcome(&ended) {
            answered::Outcome::Success => Outcome::Success,
            answered::Outcome::Failure => Outcome::Failure,
            answered::Outcome::Neither => Outcome::Neither,
            answered::Outcome::Unanswered => Outcome::Unanswered,
        };
        match *grant.decided {
            Decided::Here(decision) => {
                decision.finish(outcome, &AnswerOf::new(&ended, &self.of_answers));
            }
            Decided::Elsewhere(decision) => {
                let headers = ended.headers.cloned();
                let extensions = ended.extensions.cloned();
                let of_answers = Arc::clone(&self.of_answers);
                let Ended {
                    status,
                    bytes,
                    grpc,
                    end,
                    ..
                } = ended;
                spawn(async move {
                    let ended = Ended {
                        status,
                        headers: headers.as_ref(),
                        extensions: extensions.as_ref(),
                        taken,
                        bytes,
                        elapsed,
                        grpc,
                        end,
                    };
                    let answer = AnswerOf::new(&ended, &of_answers);
                    // If a store does not answer, its grant stays as it is.
                    let _ = decision.finish_async(outcome, &answer).await;
                });
            }
        }
    }
}

impl<C: Clock> fmt::Debug for ByPolicy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPolicy").finish_non_exhaustive()
    }
}

/// What a request holds that a policy allows.
pub struct PolicyGrant<C: PolicyClock> {
    decided: Box<Decided<C>>,
    needs_end: bool,
    reads_headers: bool,
    /// When the request was allowed, if a fact of the answer may be the time that it took.
    start: Option<Tick>,
}

impl<C: PolicyClock> fmt::Debug for PolicyGrant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(&*self.decided, decision => fmt::Debug::fmt(decision, f))
    }
}

impl<C: PolicyClock> Grant for PolicyGrant<C> {
    /// Only a `leaky-queue` delays. Others may wait behind the request, so its permits stay taken.
    fn cancel(self) {}
}

/// The facts of an answer, and those of the program.
struct AnswerOf<'a> {
    ended: &'a Ended<'a>,
    /// There are none if there was no answer.
    facts: Option<AnswerFacts<'a>>,
    own: &'a OwnAnswerFacts,
}

impl<'a> AnswerOf<'a> {
    fn new(ended: &'a Ended<'a>, own: &'a OwnAnswerFacts) -> Self {
        let facts = ended.status.zip(ended.headers);
        let facts = facts.map(|(status, headers)| AnswerFacts::new(status, headers));
        Self {
            facts: facts.map(|facts| {
                let facts = facts.bytes(ended.bytes).time(ended.elapsed);
                ended.grpc.map_or(facts, |status| facts.grpc_status(status))
            }),
            ended,
            own,
        }
    }
}

impl Facts for AnswerOf<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        let mut own = self.own.iter();
        match (
            own.find(|(known, _)| **known == *name.as_str()),
            &self.facts,
        ) {
            (Some((_, fact)), _) => fact(self.ended).map(FactValue::from).into(),
            (None, Some(facts)) => facts.values(name),
            (None, None) => FactValues::NONE,
        }
    }
}
