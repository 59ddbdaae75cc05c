//! How a policy decides about a request: which rules apply, what they ask, and the answer.

mod acquire;
mod acquire_async;
mod adjust;
mod asked;
mod asks;
mod collect;
mod decision;
mod finish;
mod finish_async;
mod key;
mod many;
mod remotes;
mod state;
mod strike;
mod visits;

use std::slice;
use std::sync::Arc;

use crate::facts::Facts;
use crate::limit::PolicyClock;
use crate::policy::Policy;

pub(crate) use acquire::decide;
pub(crate) use acquire_async::decide_async;
pub use asked::Asked;
pub use decision::{Decision, Reason};
pub use key::RequestKey;
pub(crate) use visits::With;

impl<C: PolicyClock> Policy<C> {
    /// Decides about a request, and takes the permits of all limits that apply, or none.
    ///
    /// It neither allocates nor locks if the keys have at most 64 bytes and at most three limits
    /// apply, and the facts don't.
    pub fn decide<F: Facts>(&self, facts: &F) -> Decision<&Self, C> {
        decide(self, slice::from_ref(facts), None)
    }

    /// Decides about several sets of facts at once, such as the descriptors of Envoy: each rule
    /// that applies to any of them is asked, and all permits are taken, or none. A rule is asked
    /// once for each key, for the largest of its costs. An entry of the list `deny` that holds for
    /// one set denies all, and an entry of `allow` exempts the sets for which it holds.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'user'\nwhen = { user = true }\nkey = 'user'\nlimit = '1/h'\n\
    ///             [[rule]]\nname = 'tenant'\nkey = 'tenant'\nlimit = '9/h'";
    /// let policy = Policy::from_toml(text)?;
    /// let descriptors = [[("user", "ann")], [("tenant", "acme")]];
    /// assert!(policy.decide_together(&descriptors).is_allowed());
    ///
    /// // Ann has no permit left, so nothing is taken from the tenant.
    /// assert_eq!(policy.decide_together(&descriptors).denied_by(), Some("user"));
    /// assert_eq!(policy.decide(&[("tenant", "acme")]).remaining(), Some(7));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn decide_together<F: Facts>(&self, sets: &[F]) -> Decision<&Self, C> {
        decide(self, sets, None)
    }

    /// Decides as [`decide`](Self::decide) does. The decision keeps the policy alive, so it can
    /// move to another thread or task.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'export'\nkey = 'user'\nlimit = 'concurrency 1'";
    /// let policy = Arc::new(Policy::from_toml(text)?);
    /// let ann = [("user", "ann")];
    /// let decision = policy.decide_owned(&ann);
    /// assert!(!policy.decide(&ann).is_allowed());
    /// std::thread::spawn(move || drop(decision)).join().unwrap();
    /// assert!(policy.decide(&ann).is_allowed());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn decide_owned<F: Facts>(self: &Arc<Self>, facts: &F) -> Decision<Arc<Self>, C> {
        self.decide_together_owned(slice::from_ref(facts))
    }

    /// Decides about several sets of facts at once, as [`decide_together`](Self::decide_together)
    /// does. The decision keeps the policy alive.
    pub fn decide_together_owned<F: Facts>(self: &Arc<Self>, sets: &[F]) -> Decision<Arc<Self>, C> {
        decide(Arc::clone(self), sets, None)
    }

    /// Decides about a request, and also asks stores that decide asynchronously: see
    /// [`RemoteStore`](crate::RemoteStore).
    ///
    /// The facts are read now, and everything else happens when the future is polled. It asks the
    /// limits of this process first: if one denies the request, no store is asked. Then it asks
    /// each store with one call, in the order of the rules. If a store denies the request, the
    /// permits of all others are given back. Shadow rules are asked last, each with one call
    /// that takes all of its permits or none.
    ///
    /// If the future is dropped before it is ready, the permits of this process are given back.
    /// Those that a store granted may stay taken.
    ///
    /// End the decision with [`Decision::finish_async`].
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::Policy;
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// let ann = [("user", "ann")];
    /// for expected in [true, true, false] {
    ///     let decision = policy.decide_async(&ann).await;
    ///     assert_eq!(decision.is_allowed(), expected);
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
    pub fn decide_async<'p>(
        &'p self,
        facts: &dyn Facts,
    ) -> impl Future<Output = Decision<&'p Self, C>> + use<'p, C> {
        decide_async(self, &[facts], None)
    }

    /// Decides about several sets of facts at once, as [`decide_together`](Self::decide_together)
    /// does, and also asks stores as [`decide_async`](Self::decide_async) does.
    pub fn decide_together_async<'p>(
        &'p self,
        sets: &[&dyn Facts],
    ) -> impl Future<Output = Decision<&'p Self, C>> + use<'p, C> {
        decide_async(self, sets, None)
    }

    /// Decides as [`decide_async`](Self::decide_async) does. The decision and the future keep the
    /// policy alive.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate_redis::Keys;
    /// use std::sync::Arc;
    /// use tollgate_policy::Policy;
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// let policy = Arc::new(policy);
    /// let task = tokio::spawn(policy.decide_async_owned(&[("user", "ann")]));
    /// assert!(task.await?.is_allowed());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
    pub fn decide_async_owned(
        self: &Arc<Self>,
        facts: &dyn Facts,
    ) -> impl Future<Output = Decision<Arc<Self>, C>> + use<C> {
        self.decide_together_async_owned(&[facts])
    }

    /// Decides about several sets of facts at once, and also asks stores as
    /// [`decide_async`](Self::decide_async) does. The decision and the future keep the policy
    /// alive.
    pub fn decide_together_async_owned(
        self: &Arc<Self>,
        sets: &[&dyn Facts],
    ) -> impl Future<Output = Decision<Arc<Self>, C>> + use<C> {
        decide_async(Arc::clone(self), sets, None)
    }
}
