//! Limits of stores that decide asynchronously, such as a server.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Denied;
use tollgate::outcome::{GrantInfo, Settled};
use tollgate::stats::Metric;

use super::own::KeyRef;
use super::own_of;
use super::spec::LimitSpec;

/// The future of a store's answer.
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The reason why a store could not settle or undo a grant.
pub type RemoteError = Box<dyn Error + Send + Sync>;

/// A limit that a store made: see [`RemoteStore::limit`].
pub type RemoteLimit = dyn Any + Send + Sync;

/// Which field of a limit a [`RemoteStore`] does not accept, and what the field must be instead.
/// The text follows the name of the field: `must be a rate`.
///
/// ```
/// use tollgate_policy::RemoteRefusal;
///
/// let refusal = RemoteRefusal::from("must be a rate");
/// assert_eq!(refusal, RemoteRefusal::Limit(0, "must be a rate".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteRefusal {
    /// A text of the limit, by its position in [`LimitSpec::limits`].
    Limit(usize, String),
    /// The fallback of the rule.
    Fallback(String),
}

impl From<&str> for RemoteRefusal {
    fn from(message: &str) -> Self {
        Self::Limit(0, message.into())
    }
}

/// What a request asks of one limit of a [`RemoteStore`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RemoteAsk<'a> {
    /// The limit that the store made for the rule, or for this key alone.
    pub limit: &'a RemoteLimit,
    /// The key.
    pub key: KeyRef<'a>,
    /// The position of the plan, or 0 if the limit has no plans.
    pub plan: usize,
    /// The number of permits.
    pub cost: u64,
}

/// A denial by a [`RemoteStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteDenied {
    /// The position of the limit that denies, among those that were asked.
    pub index: usize,
    /// The limit's answer.
    pub denied: Denied,
    /// Which fallback decided, if the store did not answer. Such a denial does not count towards a
    /// ban. A denial by `Closed` or `Open` means that the store is not available, not that the
    /// client sent too much.
    pub fallback: Option<FallbackKind>,
}

/// Which [fallback](crate::file::Fallback) decided, because a store did not answer.
///
/// ```
/// use tollgate_policy::FallbackKind;
///
/// assert_eq!(FallbackKind::Local.as_str(), "local");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FallbackKind {
    /// Every request is denied.
    Closed,
    /// Requests are granted, up to a number of permits or without a bound.
    Open,
    /// The process decides by its share of the limit.
    Local,
}

impl FallbackKind {
    /// Returns its name in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Local => "local",
        }
    }
}

/// A store whose limits are decided asynchronously, such as a server.
///
/// [`PolicyBuilder::store`](crate::PolicyBuilder::store) registers it, and
/// [`Policy::decide_async`](crate::Policy::decide_async) asks it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use tollgate::Denied;
/// use tollgate_policy::{
///     FallbackKind, LimitSpec, Policy, RemoteAsk, RemoteDenied, RemoteFuture, RemoteGrants,
///     RemoteLimit, RemoteRefusal, RemoteStore,
/// };
///
/// /// A store that is closed for maintenance.
/// #[derive(Debug)]
/// struct Closed;
///
/// impl RemoteStore for Closed {
///     fn limit(&self, _: &LimitSpec<'_>) -> Result<Arc<RemoteLimit>, Vec<RemoteRefusal>> {
///         Ok(Arc::new(()))
///     }
///
///     fn take<'a>(
///         &'a self,
///         asked: &'a [RemoteAsk<'a>],
///     ) -> RemoteFuture<'a, Result<Box<dyn RemoteGrants>, RemoteDenied>> {
///         let n = asked.first().map_or(0, |ask| ask.cost);
///         let denied = Denied::later(n, Duration::from_secs(60));
///         let fallback = Some(FallbackKind::Closed);
///         Box::pin(async move { Err(RemoteDenied { index: 0, denied, fallback }) })
///     }
///
///     fn ban_for<'a>(
///         &'a self,
///         _: RemoteAsk<'a>,
///         _: Duration,
///     ) -> RemoteFuture<'a, Option<Duration>> {
///         Box::pin(async { None })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tollgate_policy::Problems> {
/// let text = "[[rule]]\nname = 'a'\nlimit = '5/min'\nstore = 'closed'\nfallback = 'closed'";
/// let policy = Policy::builder().store("closed", Closed).build_toml(text)?;
/// let decision = policy.decide_async(&()).await;
/// assert_eq!(decision.denied_by(), Some("a"));
/// assert_eq!(decision.retry_after(), Some(Duration::from_secs(60)));
/// # Ok(())
/// # }
/// ```
pub trait RemoteStore: fmt::Debug + Send + Sync {
    /// Makes a limit. The store gets it back in each [`RemoteAsk`].
    ///
    /// # Errors
    ///
    /// Everything that must be different, if the store can't make the limit.
    fn limit(&self, spec: &LimitSpec<'_>) -> Result<Arc<RemoteLimit>, Vec<RemoteRefusal>>;

    /// Says whether the store hides keys by the secret of a policy: see
    /// [`LimitSpec::key_secret`].
    ///
    /// By default the store does not, and a policy with a secret is refused.
    ///
    /// # Errors
    ///
    /// What is wrong. The text follows the name of the field: `must be left out: ...`.
    fn take_key_secret(&self) -> Result<(), String> {
        Err("must be left out: the store does not hash keys".into())
    }

    /// Returns how many requests may be inside at once under a plan, if the limit is a concurrency.
    /// Each request then weighs 1, whatever it costs, and fields of answers say the number.
    ///
    /// The default is `None`: the limit is a rate, or the store does not know.
    fn concurrency(&self, limit: &RemoteLimit, plan: usize) -> Option<u64> {
        let _ = (limit, plan);
        None
    }

    /// Returns what the store counts about a limit under a plan, in this process: metrics of
    /// [`Policy::stats`](crate::Policy::stats), which are the same ones each time.
    ///
    /// The default has none.
    fn metrics(&self, limit: &RemoteLimit, plan: usize) -> Vec<(Metric, u64)> {
        let _ = (limit, plan);
        Vec::new()
    }

    /// Takes the permits of all limits, or of none.
    ///
    /// If the caller drops the future, the permits may stay taken.
    ///
    /// # Errors
    ///
    /// [`RemoteDenied`] if a limit denies them. The store keeps no permits of the others.
    fn take<'a>(
        &'a self,
        asked: &'a [RemoteAsk<'a>],
    ) -> RemoteFuture<'a, Result<Box<dyn RemoteGrants>, RemoteDenied>>;

    /// Bans a key for this long. If the store can't, it does nothing.
    ///
    /// Returns how long the request must wait then, as the store tells others: until the ban is
    /// over and the limit has its permits. `None` if the store does not know.
    fn ban_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
        long: Duration,
    ) -> RemoteFuture<'a, Option<Duration>>;

    /// Returns how many permits a key has now, for [`RuleKey::available_async`]. The default is
    /// `None`: the store can't say it.
    ///
    /// [`RuleKey::available_async`]: crate::operate::RuleKey::available_async
    fn available<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let _ = ask;
        None
    }

    /// Returns how long a key is still banned, for [`RuleKey::banned_for_async`]. The default is
    /// `None`: the store can't say it.
    ///
    /// [`RuleKey::banned_for_async`]: crate::operate::RuleKey::banned_for_async
    fn banned_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<Option<Duration>, RemoteError>>> {
        let _ = ask;
        None
    }

    /// Forgets a key, for [`RuleKey::reset_async`]. The default is `None`: the store can't do it.
    ///
    /// [`RuleKey::reset_async`]: crate::operate::RuleKey::reset_async
    fn reset<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<(), RemoteError>>> {
        let _ = ask;
        None
    }

    /// Gives as many permits of a key back as the cost of `ask` says, for
    /// [`Policy::refund_async`](crate::Policy::refund_async). Returns how many came back. The
    /// default is `None`: the store can't do it.
    fn refund<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let _ = ask;
        None
    }

    /// Takes as many permits of a key as the cost of `ask` says, even if the key goes into debt,
    /// for [`Policy::charge_async`](crate::Policy::charge_async). Returns how many were taken. The
    /// default is `None`: the store can't do it.
    fn charge<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let _ = ask;
        None
    }
}

/// What a [`RemoteStore`] granted: one grant for each limit that was asked. Dropping it keeps the
/// permits taken.
pub trait RemoteGrants: fmt::Debug + Send + Sync {
    /// Returns the numbers of one grant, by its position among the limits that were asked.
    fn info(&self, index: usize) -> Option<GrantInfo>;

    /// Returns which fallback made one grant, if the store did not answer. The default is `None`.
    fn fallback(&self, index: usize) -> Option<FallbackKind> {
        let _ = index;
        None
    }

    /// Returns whether the remaining permits of one grant are those of the limit. If not, they are
    /// those that this process holds of it, and clients are not told of them. The default is
    /// `true`.
    fn is_remaining_known(&self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// Corrects the grants to their actual costs, which are in the order of the limits, and gives
    /// back each concurrency. Returns the sum of what came back and what was charged.
    ///
    /// # Errors
    ///
    /// The reason why the store could not settle all grants.
    fn settle(
        self: Box<Self>,
        actual: Vec<u64>,
    ) -> RemoteFuture<'static, Result<Settled, RemoteError>>;

    /// Gives all permits back, as far as they can be. Returns how many came back.
    ///
    /// # Errors
    ///
    /// The reason why the store could not give all back.
    fn undo(self: Box<Self>) -> RemoteFuture<'static, Result<u64, RemoteError>>;
}

/// A limit of a rule, and its store.
pub(crate) struct Remote {
    pub(crate) store: Arc<dyn RemoteStore>,
    pub(crate) limit: Arc<RemoteLimit>,
    /// The limits of single keys, in the order of their hashes. A concurrency has none.
    pub(crate) overrides: Vec<(u64, Arc<RemoteLimit>)>,
}

impl Remote {
    /// Returns the limit of a key, and the position of the key's plan in it.
    pub(crate) fn of_key(&self, hash: u64, plan: usize) -> (&Arc<RemoteLimit>, usize) {
        own_of(&self.overrides, hash).map_or((&self.limit, plan), |own| (own, 0))
    }

    /// Returns how many requests may be inside at once, if it is a concurrency.
    pub(crate) fn concurrency(&self, plan: usize) -> Option<u64> {
        self.store.concurrency(&*self.limit, plan)
    }

    /// Returns what the store counts about a plan. Keys with limits of their own count with the
    /// first one.
    pub(crate) fn metrics(&self, plan: usize) -> Vec<(Metric, u64)> {
        let mut sums = self.store.metrics(&*self.limit, plan);
        for (_, own) in self.overrides.iter().filter(|_| plan == 0) {
            for (metric, value) in self.store.metrics(&**own, 0) {
                match sums.iter_mut().find(|(summed, _)| *summed == metric) {
                    Some((_, sum)) => *sum = sum.saturating_add(value),
                    None => sums.push((metric, value)),
                }
            }
        }
        sums
    }
}
