//! The end of a request.

use std::ops::Deref;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::compose::Members;
use tollgate::outcome::Settled;

use super::asks::{Ask, Asks};
use super::decision::Decision;
use super::state::State;
use crate::facts::Facts;
use crate::file::CountOf;
use crate::limit::PolicyClock;
use crate::policy::Policy;
use crate::rule::{CompiledRule, Outcome, What};

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Decision<R, C> {
    /// Returns whether [`finish`](Self::finish) has something to do: a rule counts only failures
    /// or successes, settles its cost by the answer, or has a concurrency. A program can drop other
    /// decisions at once.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'login'\nwhen = { path = '/login' }\nlimit = '5/h'\n\
    ///             count = 'failures'\n[[rule]]\nname = 'all'\nlimit = '9/s'";
    /// let policy = Policy::from_toml(text)?;
    /// assert!(policy.decide(&[("path", "/login")]).needs_finish());
    /// assert!(!policy.decide(&[("path", "/")]).needs_finish());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn needs_finish(&self) -> bool {
        let needs = |rule: &CompiledRule<C>, ask: &Ask| {
            let rate = match ask.what {
                What::Limit(limit) => rule.limits.get(limit).is_none_or(|limit| limit.is_rate()),
                What::Ban | What::Clock => true,
                What::Attempt => false,
            };
            !rate || rule.count != CountOf::All || rule.reads.cost.settle.is_some()
        };
        self.is_allowed() && self.any_ask(needs)
    }

    /// Returns whether [`finish`](Self::finish) reads facts of the answer, because a rule settles
    /// its cost by one, or names the answers that are failures.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'chat'\nlimit = '900/min'\n\
    ///             cost = { default = 5, settle = 'response-header:x-used' }";
    /// assert!(Policy::from_toml(text)?.decide(&()).reads_answer());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub fn reads_answer(&self) -> bool {
        let reads =
            |rule: &CompiledRule<C>| rule.reads.cost.settle.is_some() || rule.failures.is_some();
        self.is_allowed() && self.any_ask(|rule, _| reads(rule))
    }

    fn any_ask(&self, test: impl Fn(&CompiledRule<C>, &Ask) -> bool) -> bool {
        let Some(policy) = self.state.policy() else {
            return false;
        };
        let test = |ask: &Ask| {
            let rule = policy.rules.get(ask.rule);
            rule.is_some_and(|rule| test(rule, ask))
        };
        let here = self.state.asks();
        let elsewhere = self.remotes.as_ref();
        here.is_some_and(|asks| asks.list.iter().any(test))
            || elsewhere.is_some_and(|it| it.members.iter().any(|member| test(&member.ask)))
    }

    /// Ends an allowed request: settles its costs by the facts of the answer, gives back the
    /// permits of rules that do not count this outcome, and frees concurrency slots. A denied
    /// request took nothing, so nothing happens. Returns what came back and what was charged.
    pub fn finish(self, outcome: Outcome, answer: &impl Facts) -> Settled {
        self.end(Some(outcome), answer)
    }

    /// Settles the costs of an allowed request by the facts of the answer, whatever its outcome,
    /// and frees concurrency slots. Returns what came back and what was charged.
    pub fn settle(self, answer: &impl Facts) -> Settled {
        self.end(None, answer)
    }

    pub(crate) fn end(self, outcome: Option<Outcome>, answer: &impl Facts) -> Settled {
        self.strike_failures(outcome, answer);
        self.settle_here(outcome, answer)
    }

    /// Counts a failure for each rule that bans for them. Returns what it bans: the rule, the hash
    /// of the key, and for how long.
    pub(crate) fn strike_failures(
        &self,
        outcome: Option<Outcome>,
        answer: &impl Facts,
    ) -> SmallVec<[(usize, u64, Duration); 1]> {
        let asks = self.state.asks().filter(|_| self.is_allowed());
        let attempts = asks.into_iter().flat_map(|asks| {
            let attempts = asks.list.iter().filter(|ask| ask.what == What::Attempt);
            attempts.filter_map(|ask| Some((asks.policy.rules.get(ask.rule)?, ask)))
        });
        let banned = attempts.filter_map(|(rule, ask)| match rule.outcome(outcome, answer) {
            Some(Outcome::Failure) => Some((ask.rule, ask.hash, rule.strike(ask.hash)?)),
            _ => None,
        });
        banned.collect()
    }

    pub(crate) fn settle_here(self, outcome: Option<Outcome>, answer: &impl Facts) -> Settled {
        let costs = |asks: &Asks<R, C>| -> SmallVec<[u64; 8]> {
            let asked = asks.list.iter();
            asked
                .map(|ask| asks.policy.actual(ask, outcome, answer))
                .collect()
        };
        match self.state {
            State::Asked(asks, Ok(held)) => {
                let actual = costs(&asks).first().copied();
                let actual = actual.unwrap_or(held.granted.n());
                let now = asks.now();
                asks.with(0, |limit| limit.correct(held, actual, now))
                    .unwrap_or_default()
            }
            State::Granted(mut granted) => {
                let costs = costs(granted.composition().inner());
                // There is a cost for each limit.
                granted.settle(costs).unwrap_or_default()
            }
            State::Many(mut many) => {
                let costs = costs(&many.asks);
                many.settle(&costs)
            }
            _ => Settled::default(),
        }
    }

    /// Gives all permits of an allowed request back, as far as they can be. Returns how many came
    /// back, over all limits.
    pub fn undo(self) -> u64 {
        match self.state {
            State::Asked(asks, Ok(held)) => {
                let now = asks.now();
                asks.with(0, |limit| limit.give_back(held, now))
                    .unwrap_or(0)
            }
            mut several => several.undo(),
        }
    }
}

impl<C> Policy<C> {
    /// Returns what a request cost in the end.
    pub(crate) fn actual(&self, ask: &Ask, outcome: Option<Outcome>, answer: &impl Facts) -> u64 {
        let Some(rule) = self.rules.get(ask.rule) else {
            return ask.cost;
        };
        let count = match ask.what {
            What::Attempt => CountOf::Failures,
            _ => rule.count,
        };
        let outcome = outcome.filter(|_| count != CountOf::All);
        match (count, rule.outcome(outcome, answer)) {
            (CountOf::Failures, Some(Outcome::Success | Outcome::Neither))
            | (
                CountOf::Successes,
                Some(Outcome::Failure | Outcome::Neither | Outcome::Unanswered),
            ) => {
                return 0;
            }
            _ => {}
        }
        let settle = rule.reads.cost.settle.as_ref();
        let answer = self.registry.resolve(answer);
        let Some(actual) = settle.and_then(|name| answer.values(name).largest().0) else {
            return ask.cost;
        };
        let What::Limit(limit) = ask.what else {
            return ask.cost;
        };
        let most = rule.most_settled(limit, ask.plan, ask.hash);
        actual.min(most.max(ask.cost))
    }
}
