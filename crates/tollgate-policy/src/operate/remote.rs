//! The verbs of a key, on stores that are asked asynchronously.

use std::time::Duration;

use super::{Available, KeyError, RuleKey};
use crate::limit::{
    Fixed, KeyRef, PolicyClock, Remote, RemoteAsk, RemoteError, RemoteFuture, RuleLimit, own_of,
};

impl<'p, C: PolicyClock> RuleKey<'p, C> {
    /// Returns how many permits the key has now: see [`available`](Self::available).
    ///
    /// ```no_run
    /// # use tollgate_policy::{Policy, operate::KeyError};
    /// # #[cfg(feature = "redis")]
    /// # async fn show(policy: Policy) -> Result<(), KeyError> {
    /// let ann = policy.key("login", ["ann"])?;
    /// for of_limit in ann.available_async().await? {
    ///     println!("{}: {} left", of_limit.limit, of_limit.permits);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError::Store`] if the store does not answer, or [`KeyError::Unable`] if it can't say
    /// it.
    pub async fn available_async(&self) -> Result<Vec<Available<'p>>, KeyError> {
        let mut all = self.available_here();
        for (plan, text, remote) in self.remotes() {
            let permits = remote.store.available(self.ask(plan, remote));
            all.push(Available {
                limit: text,
                plan: self
                    .rule
                    .plan_name(plan)
                    .filter(|_| own_of(&remote.overrides, self.hash).is_none()),
                permits: self.answer("available", permits).await?,
            });
        }
        self.unless_banned(&mut all);
        Ok(all)
    }

    /// Returns how long the key is still banned: see [`banned_for`](Self::banned_for).
    ///
    /// # Errors
    ///
    /// As for [`available_async`](Self::available_async).
    pub async fn banned_for_async(&self) -> Result<Option<Duration>, KeyError> {
        let mut longest = self.banned_here();
        for (plan, _, remote) in self.remotes() {
            let banned = remote.store.banned_for(self.ask(plan, remote));
            longest = longest.max(self.answer("banned_for", banned).await?);
        }
        Ok(longest)
    }

    /// Bans the key for this duration: see [`ban_for`](Self::ban_for). On a store, each limit and
    /// plan of the rule bans it, so other processes deny it too.
    ///
    /// # Errors
    ///
    /// [`KeyError::Store`] if the store does not say that the key is banned, and the errors of
    /// [`ban_for`](Self::ban_for).
    pub async fn ban_for_async(&self, long: Duration) -> Result<(), KeyError> {
        let mut remotes = self.remotes().peekable();
        if self.rule.reads.key.is_empty() {
            return Err(KeyError::NoKey { rule: self.name() });
        }
        // A rule on a store has a table of this process only if it has `ban`.
        if self.rule.ban.is_some() || remotes.peek().is_none() {
            self.ban_here(long)?;
        }
        for (plan, _, remote) in remotes {
            let banned = remote.store.ban_for(self.ask(plan, remote), long).await;
            banned.ok_or_else(|| self.store("it does not say that the key is banned"))?;
        }
        Ok(())
    }

    /// Forgets all that is known of the key: see [`reset`](Self::reset). On a store, each limit and
    /// plan of the rule does, and the answer is true.
    ///
    /// # Errors
    ///
    /// [`KeyError::Store`] if the store does not answer: then a part may be reset. The errors of
    /// [`reset`](Self::reset) too.
    pub async fn reset_async(&self) -> Result<bool, KeyError> {
        let mut known = self.reset_here();
        for (plan, _, remote) in self.remotes() {
            let reset = remote.store.reset(self.ask(plan, remote));
            self.answer("reset", reset).await?;
            known = Some(true);
        }
        known.ok_or_else(|| self.unable("reset"))
    }

    /// Returns the limits that stores hold: the plan, the text, and the limit.
    pub(super) fn remotes(&self) -> impl Iterator<Item = (usize, &'p str, &'p Remote)> {
        let rule = self.rule;
        let own = self.own_text();
        let limits = rule.limits.iter().zip(&rule.texts).enumerate();
        limits.flat_map(move |(index, (limit, texts))| {
            let remote = match &**limit {
                RuleLimit::Remote(remote) => Some(remote),
                _ => None,
            };
            let own = own.filter(|_| rule.in_place_of(index, self.hash).is_some());
            // An override takes the place of all plans.
            let plans = own.map_or(texts.len(), |_| 1);
            let texts = texts.iter().take(plans);
            let texts = texts.map(move |text| own.unwrap_or(text));
            let texts = texts.enumerate();
            let texts = texts.filter(|(_, text)| Fixed::of(text).is_none());
            texts.filter_map(move |(plan, text)| Some((plan, text, remote?)))
        })
    }

    fn ask(&self, plan: usize, remote: &'p Remote) -> RemoteAsk<'_> {
        let (limit, plan) = remote.of_key(self.hash, plan);
        RemoteAsk {
            limit: &**limit,
            key: KeyRef {
                bytes: &self.bytes,
                hash: self.hash,
            },
            plan,
            cost: 1,
        }
    }

    /// Waits for the answer of a store, if it has the verb.
    async fn answer<T>(
        &self,
        verb: &'static str,
        answer: Option<RemoteFuture<'_, Result<T, RemoteError>>>,
    ) -> Result<T, KeyError> {
        let answer = answer.ok_or_else(|| self.unable(verb))?.await;
        answer.map_err(|why| self.store(why))
    }

    fn store(&self, why: impl ToString) -> KeyError {
        KeyError::Store {
            rule: self.name(),
            why: why.to_string(),
        }
    }
}
