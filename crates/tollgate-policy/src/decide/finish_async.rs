//! The end of a request that asked stores elsewhere.

use std::ops::Deref;

use tollgate::outcome::Settled;

use super::asks::Ask;
use super::decision::Decision;
use crate::facts::Facts;
use crate::limit::{PolicyClock, RemoteError};
use crate::policy::Policy;
use crate::rule::Outcome;

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Decision<R, C> {
    /// Ends an allowed request as [`finish`](Self::finish) does, also at the stores that decide
    /// asynchronously. Returns what came back and what was charged.
    ///
    /// If the future is dropped, grants of stores that have not answered stay as they are.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::{Outcome, Policy};
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }\ncount = 'failures'";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// for _ in 0..5 {
    ///     let decision = policy.decide_async(&[("user", "ann")]).await;
    ///     assert!(decision.is_allowed());
    ///     // The password was right: nothing is counted.
    ///     let settled = decision.finish_async(Outcome::Success, &()).await?;
    ///     assert_eq!(settled.returned, 1);
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
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
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::Policy;
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }\n\
    ///             cost = { estimate = 'estimate', settle = 'used' }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// let decision = policy.decide_async(&[("user", "ann"), ("estimate", "2")]).await;
    /// assert!(decision.is_allowed());
    /// let settled = decision.settle_async(&[("used", "1")]).await?;
    /// assert_eq!(settled.returned, 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
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
        let banned = self.strike_failures(outcome, answer);
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
            true => self.settle_here(outcome, answer),
            false => Settled::default(),
        };
        async move {
            let Some((remotes, costs)) = elsewhere else {
                return Ok(here);
            };
            for (rule, hash, long) in banned {
                let is_of = |ask: &Ask| (ask.rule, ask.hash) == (rule, hash);
                remotes.ban(is_of, long).await;
            }
            Ok(here.plus(remotes.settle(costs).await?))
        }
    }

    /// Gives all permits of an allowed request back, also those of stores that decide
    /// asynchronously. Returns how many came back, over all limits.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::Policy;
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// for _ in 0..5 {
    ///     let decision = policy.decide_async(&[("user", "ann")]).await;
    ///     assert!(decision.is_allowed());
    ///     assert_eq!(decision.undo_async().await?, 1);
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
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
