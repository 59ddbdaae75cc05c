//! The end of a request that asked stores elsewhere.

use std::fmt;
use std::ops::Deref;

use tollgate::clock::Clock;
use tollgate::outcome::Settled;

use super::asks::Ask;
use super::decision::{Decision, Outcome};
use crate::fact::Facts;
use crate::file::Count;
use crate::limit::RemoteError;
use crate::policy::Policy;

impl<R, C> Decision<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    /// Ends an allowed request as [`finish`](Self::finish) does, also at the stores that decide
    /// asynchronously. Returns what came back and what was charged.
    ///
    /// If the future is dropped, grants of stores that have not answered stay as they are.
    ///
    /// # Errors
    ///
    /// [`RemoteError`] if a store could not settle its grants. All others are settled.
    pub async fn finish_async(
        self,
        outcome: Outcome,
        answer: &impl Facts,
    ) -> Result<Settled, RemoteError> {
        self.end_async(Some(outcome), answer).await
    }

    /// Settles an allowed request as [`settle`](Self::settle) does, also at the stores that decide
    /// asynchronously. Returns what came back and what was charged.
    ///
    /// # Errors
    ///
    /// [`RemoteError`] if a store could not settle its grants. All others are settled.
    pub async fn settle_async(self, answer: &impl Facts) -> Result<Settled, RemoteError> {
        self.end_async(None, answer).await
    }

    fn end_async(
        mut self,
        outcome: Option<Outcome>,
        answer: &impl Facts,
    ) -> impl Future<Output = Result<Settled, RemoteError>> {
        let remotes = match self.is_allowed() {
            true => self.remotes.take(),
            false => None,
        };
        let elsewhere = remotes.map(|remotes| {
            let policy = self.state.policy();
            let actual = |ask| policy.map_or(0, |policy| policy.actual(ask, outcome, answer));
            let costs: Vec<_> = remotes.members.iter().map(|it| actual(&it.ask)).collect();
            (remotes, costs)
        });
        let here = match self.is_allowed() {
            true => self.end(outcome, answer),
            false => Settled::default(),
        };
        async move {
            let Some((remotes, costs)) = elsewhere else {
                return Ok(here);
            };
            Ok(here.plus(remotes.settle(costs).await?))
        }
    }

    /// Gives all permits of an allowed request back, also those of stores that decide
    /// asynchronously. Returns how many came back, over all limits.
    ///
    /// # Errors
    ///
    /// [`RemoteError`] if a store could not give its permits back. All others are given back.
    pub async fn undo_async(mut self) -> Result<u64, RemoteError> {
        let remotes = self.remotes.take();
        let here = self.undo();
        match remotes {
            Some(mut remotes) => Ok(here.saturating_add(remotes.undo().await?)),
            None => Ok(here),
        }
    }
}

impl<C> Policy<C> {
    /// Returns what a request cost in the end.
    pub(crate) fn actual(&self, ask: &Ask, outcome: Option<Outcome>, answer: &impl Facts) -> u64 {
        let Some(rule) = self.rules.get(ask.rule) else {
            return ask.cost;
        };
        match (rule.count, outcome) {
            (Count::Failures, Some(Outcome::Success))
            | (Count::Successes, Some(Outcome::Failure)) => return 0,
            _ => {}
        }
        let settle = rule.cost.settle.as_ref();
        let answer = self.registry.resolve(answer);
        let actual = settle.and_then(|name| answer.fact(name)?.as_number());
        actual.unwrap_or(ask.cost)
    }
}
