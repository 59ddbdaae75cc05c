//! The crate's policy, with what the page says that a program registers.

mod own;
mod store;

use std::sync::Arc;

use tollgate::{ManualClock, SlidingLog};
use tollgate_policy::{Asked, Decision, FactName, Outcome, Policy, Store};

use crate::guide::decided::{Decided, Decider};
use crate::guide::lines::{End, Pairs};
use own::{EveryOther, Own};
use store::{Outage, Switched};

pub(crate) struct Real {
    policy: Arc<Policy<ManualClock>>,
    outage: Outage,
}

impl Real {
    /// # Panics
    ///
    /// Panics if the policy has errors.
    pub(crate) fn new(text: &str) -> Self {
        let outage = Outage::default();
        let switch = outage.clone();
        let user = FactName::new("user");
        let builder = Policy::builder()
            .clock(ManualClock::new())
            .resolver("first-letter-of-user", move |facts| {
                let user = facts.fact(&user)?.as_text().get(..1)?.to_owned();
                Some(user.into())
            })
            .limit("every-other", |_| Ok(Own::boxed(EveryOther::default)))
            .limit("sliding-log", |spec| {
                let quota = spec.limits[0].parse().map_err(|error| format!("{error}"))?;
                let clock = spec.clock.clone();
                let log = move || SlidingLog::with_clock(quota, clock.clone());
                log().map_err(|error| error.to_string())?;
                Ok(Own::boxed(move || log().expect("made before")))
            })
            .store(
                "redis",
                Store::here(move |spec| Switched::boxed(spec, &switch)),
            );
        let policy = builder.build_toml(text);
        let policy = policy.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let policy = Arc::new(policy);
        Self { policy, outage }
    }
}

/// Returns the names of the rules, once each, in their order, and whether all limits of each would
/// allow the request.
fn by_rule<'a>(asked: impl Iterator<Item = Asked<'a>>) -> Vec<(String, bool)> {
    let mut rules: Vec<(String, bool)> = Vec::new();
    for asked in asked {
        match rules.iter_mut().find(|(name, _)| name == asked.rule()) {
            Some((_, allows)) => *allows &= asked.would_allow(),
            None => rules.push((asked.rule().to_owned(), asked.would_allow())),
        }
    }
    rules
}

impl Decider for Real {
    type Held = Decision<Arc<Policy<ManualClock>>, ManualClock>;

    fn decide(&mut self, facts: &Pairs) -> (Decided, Self::Held) {
        let decision = self.policy.decide_owned(facts);
        let asked = |in_shadow| {
            decision
                .asked()
                .filter(move |it| it.is_shadow() == in_shadow)
        };
        let allowed = match decision.exempted_by() {
            Some(entry) => vec![entry.to_owned()],
            None => by_rule(asked(false)).into_iter().map(|it| it.0).collect(),
        };
        let mut decided = match decision.denied_by() {
            Some(name) => Decided::denied(name.to_owned(), decision.retry_after()),
            None => Decided::allowed(allowed, decision.remaining()),
        };
        decided.status = decision.status();
        assert_eq!(decided.is_allowed, decision.is_allowed());
        decided.shadows = by_rule(asked(true));
        (decided, decision)
    }

    fn end(&mut self, held: Self::Held, end: &End) {
        let outcome = match end.fails {
            true => Outcome::Failure,
            false => Outcome::Success,
        };
        let _ = held.finish(outcome, &end.answer);
    }

    fn clock(&self) -> &ManualClock {
        self.policy.clock()
    }

    fn store_down(&mut self) {
        self.outage.begin();
    }
}
