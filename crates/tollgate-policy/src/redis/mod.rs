//! The store `redis`: limits on Redis or Valkey, which many processes share.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tollgate_policy::redis::RedisStore;
//! use tollgate_policy::{Outcome, Policy};
//! use tollgate_redis::client::connect_lazily;
//! use tollgate_redis::{Keys, RedisServer};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     let client = connect_lazily("redis://127.0.0.1/")?;
//!     let server = RedisServer::new(client).with_budget(Duration::from_millis(20));
//!     let store = RedisStore::new(Arc::new(server), Keys::new("api")?);
//!     let policy = Policy::builder().store("redis", store).build_toml(
//!         r#"
//!         [[rule]]
//!         name     = "login"
//!         key      = "user"
//!         limit    = "5/min"
//!         count    = "failures"
//!         store    = "redis"
//!         fallback = "closed"
//!         "#,
//!     )?;
//!     let decision = policy.decide_async(&[("user", "ann")]).await;
//!     if decision.is_allowed() {
//!         // The password was wrong.
//!         decision.finish_async(Outcome::Failure, &()).await?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [The guide](crate::guide::policy#stores) has examples. It says what decides while the server
//! does not answer, what becomes of bans, overrides and dropped futures, and what the server sees
//! of keys. [`RedisStore::stored_keys`] tells what keys are called, and
//! [`RedisStore::without_server`] checks policies.

mod stored;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Denied;
use tollgate::outcome::{GrantInfo, Settled};
use tollgate::stats::{Metric, Metrics, Value};
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{
    Allowance, Decider, Fallback, FallbackError, Grant, Keys, LeaseError, Leasing, Limit,
    LimitError, ParseLimitError, RedisAll, RedisKey, RedisLimiter, RedisServer,
};

use crate::file;
use crate::limit::{
    ALGORITHMS, FallbackKind, LimitSpec, RemoteAsk, RemoteDenied, RemoteError, RemoteFuture,
    RemoteGrants, RemoteLimit, RemoteRefusal, RemoteStore,
};
use crate::parse::known_names;

pub use stored::{StoredKey, StoredKeyError};
use stored::{algorithm, name, user};

/// The algorithm that counts requests, not costs.
const CONCURRENCY: &str = "concurrency";

/// A store whose limits are on Redis or Valkey.
///
/// The text of a limit is one of [`tollgate_redis::Limit`]. All processes whose policies have the
/// same rule share its limits: a limit is known by the name of its rule, its position, its
/// algorithm and its plan. Each plan counts on its own. A request takes one slot of a concurrency,
/// whatever it costs.
///
/// Limits of one key are decided in one call: see [`RedisAll`]. Denials are
/// [remembered](RedisLimiter::remember_denials) for up to a second, unless the rule gives permits
/// back or says `remember = false`. A rule with `mode = "leased"` [leases](RedisLimiter::leased)
/// permits, and has an [allowance](Leasing::with_allowance) if it says so.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::Policy;
/// use tollgate_policy::redis::RedisStore;
/// use tollgate_redis::client::connect_lazily;
/// use tollgate_redis::{Keys, RedisServer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Arc::new(RedisServer::new(connect_lazily("redis://127.0.0.1/")?));
/// let store = RedisStore::new(server, Keys::new("api")?);
/// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '100/min'\nstore = 'redis'\n\
///             fallback = 'open'";
/// let policy = Policy::builder().store("redis", store).build_toml(text)?;
/// # let _ = policy;
/// # Ok(())
/// # }
/// ```
pub struct RedisStore<C> {
    server: Arc<RedisServer<C>>,
    keys: Keys,
}

/// A client without a server: see [`RedisStore::without_server`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServer;

impl Client for NoServer {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        Err(ClientError::NotSent("there is no server".into()))
    }
}

/// A limit of a rule: one limiter for each plan.
struct Plans<C>(Vec<Arc<Plan<C>>>);

struct Plan<C> {
    limiter: RedisLimiter<C>,
    /// How many requests may be inside at once, if it counts these and not costs.
    concurrency: Option<u64>,
    /// Whether processes have a part of each key, of which the server does not know.
    has_allowance: bool,
}

/// Grants, with what gives them back.
struct Grants<C> {
    limits: Vec<(Arc<Plan<C>>, Vec<u8>)>,
    grants: Vec<Grant>,
}

impl<C> RedisStore<C> {
    /// Creates a store on a server, which other limits may use too.
    pub fn new(server: Arc<RedisServer<C>>, keys: Keys) -> Self {
        Self { server, keys }
    }
}

impl RedisStore<NoServer> {
    /// Creates a store without a server, to check policies: it refuses what a store with a server
    /// refuses. All requests are decided by the fallbacks of their rules.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    /// use tollgate_policy::redis::RedisStore;
    /// use tollgate_redis::Keys;
    ///
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let text = "[[rule]]\nname = 'api'\nlimit = 'concurrency 5'\nstore = 'redis'\n\
    ///             fallback = 'closed'";
    /// let builder = Policy::builder().store("redis", store);
    /// assert_eq!(
    ///     builder.check_toml(text).to_string(),
    ///     "3:9: error: rule \"api\": limit is \"concurrency 5\", but lease is missing, as in \
    ///      `concurrency 5 lease 60s`"
    /// );
    /// # Ok::<(), tollgate_redis::KeysError>(())
    /// ```
    #[must_use]
    pub fn without_server(keys: Keys) -> Self {
        Self::new(Arc::new(RedisServer::new(NoServer)), keys)
    }
}

impl<C: Client + 'static> RedisStore<C> {
    fn plan(
        &self,
        spec: &LimitSpec<'_>,
        position: usize,
        text: &str,
    ) -> Result<Plan<C>, RemoteRefusal> {
        let refused = |message| RemoteRefusal::Limit(position, message);
        let limit: Limit = text.parse().map_err(|error| refused(message(&error)))?;
        let algorithm = algorithm(&limit, spec.is_override);
        let plan = spec.plans.get(position).copied();
        let concurrency = limit.quota().is_none().then(|| limit.permits());
        let name = name(spec.rule, spec.index, &algorithm, plan);
        let server = Arc::clone(&self.server);
        let keys = self.keys_under(spec.key_secret);
        let keys = keys.map_err(|error| refused(error.to_string()))?;
        let mut fallback = fallback(spec.fallback);
        if let (Fallback::Local { keys, .. }, true) = (&mut fallback, spec.is_override) {
            *keys = 1;
        }
        let limiter = RedisLimiter::new(server, &keys, &name, limit, fallback);
        let limiter = limiter.map_err(|error| match error {
            LimitError::Fallback(error) => RemoteRefusal::Fallback(of_fallback(error)),
            _ => refused(error.to_string()),
        })?;
        let limiter = match spec.remembers_denials {
            true => limiter.remember_denials(),
            false => limiter,
        };
        let limiter = match spec.is_leased {
            true => leased(limiter, spec, concurrency.is_some()).map_err(refused)?,
            false => limiter,
        };
        Ok(Plan {
            limiter,
            concurrency,
            has_allowance: spec.allowance.is_some(),
        })
    }
}

/// Lets a limit lease permits.
fn leased<C: Client + 'static>(
    limiter: RedisLimiter<C>,
    spec: &LimitSpec<'_>,
    is_concurrency: bool,
) -> Result<RedisLimiter<C>, String> {
    let mut leasing = Leasing::new();
    if spec.is_override {
        leasing = leasing.with_keys(1);
    }
    // Of a rule's limits, only the rates have an allowance.
    if let Some(allowance) = spec.allowance.filter(|_| !is_concurrency) {
        let keys = usize::try_from(allowance.keys.value).unwrap_or(usize::MAX);
        leasing = leasing.with_allowance(Allowance {
            // A file can't say more.
            percent: u32::try_from(allowance.percent.value).unwrap_or(u32::MAX),
            processes: u32::try_from(allowance.processes.value).unwrap_or(u32::MAX),
            keys: if spec.is_override { 1 } else { keys },
        });
    }
    limiter.leased(leasing).map_err(|error| match error {
        LeaseError::Limit => {
            "can't be leased; a token bucket, a fixed or sliding window and a concurrency can"
                .to_owned()
        }
        error => format!("can't be leased: {error}"),
    })
}

impl<C: Client + 'static> RemoteStore for RedisStore<C> {
    fn limit(&self, spec: &LimitSpec<'_>) -> Result<Arc<RemoteLimit>, Vec<RemoteRefusal>> {
        let (mut plans, mut refusals) = (Vec::new(), Vec::new());
        for (position, text) in spec.limits.iter().enumerate() {
            match self.plan(spec, position, text) {
                Ok(plan) => plans.push(Arc::new(plan)),
                // The plans have one fallback.
                Err(refusal) if refusals.contains(&refusal) => {}
                Err(refusal) => refusals.push(refusal),
            }
        }
        match refusals.is_empty() {
            true => Ok(Arc::new(Plans(plans))),
            false => Err(refusals),
        }
    }

    fn take_key_secret(&self) -> Result<(), String> {
        match (self.keys.has_secret(), self.keys.has_readable_users()) {
            (true, _) => Err("must be left out: the program gives the store a secret".into()),
            (_, true) => Err("must be left out: the program lets users be readable".into()),
            _ => Ok(()),
        }
    }

    fn concurrency(&self, limit: &RemoteLimit, plan: usize) -> Option<u64> {
        plan_of::<C>(limit, plan)?.concurrency
    }

    fn metrics(&self, limit: &RemoteLimit, plan: usize) -> Vec<(Metric, u64)> {
        let plan = plan_of::<C>(limit, plan);
        let Some(stats) = plan.and_then(|plan| plan.limiter.lease_stats()) else {
            return Vec::new();
        };
        let metrics = Metric::ALL.iter();
        let values = metrics.filter_map(|metric| match stats.value(*metric)? {
            Value::Whole(value) => Some((*metric, value)),
            Value::Real(_) => None,
        });
        values.collect()
    }

    fn take<'a>(
        &'a self,
        asked: &'a [RemoteAsk<'a>],
    ) -> RemoteFuture<'a, Result<Box<dyn RemoteGrants>, RemoteDenied>> {
        Box::pin(async move {
            let mut limits = Vec::with_capacity(asked.len());
            let mut costs = Vec::with_capacity(asked.len());
            for (index, ask) in asked.iter().enumerate() {
                let plan = plan_of::<C>(ask.limit, ask.plan).ok_or(RemoteDenied {
                    index,
                    denied: Denied::no_such_plan(ask.cost),
                    fallback: None,
                })?;
                costs.push(plan.concurrency.map_or(ask.cost, |_| 1));
                limits.push((Arc::clone(plan), user(ask.key.bytes())));
            }
            let taken = match all(&limits) {
                Some(all) => all.try_acquire_each(&costs).await,
                None => Ok(Vec::new()),
            };
            match taken {
                Ok(grants) => Ok(Box::new(Grants { limits, grants }) as Box<dyn RemoteGrants>),
                Err(denial) => Err(RemoteDenied {
                    index: denial.index(),
                    denied: denial.denied(),
                    fallback: kind(denial.decider()),
                }),
            }
        })
    }

    fn ban_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
        long: Duration,
    ) -> RemoteFuture<'a, Option<Duration>> {
        Box::pin(async move {
            let plan = plan_of::<C>(ask.limit, ask.plan)?;
            let key = plan.limiter.key(user(ask.key.bytes()));
            // A server that does not answer can't ban.
            key.ban_for(long).await.ok()?;
            let cost = plan.concurrency.map_or(ask.cost, |_| 1);
            let denial = key.check_n(cost).await.err()?;
            match denial.decider().is_fallback() {
                true => None,
                false => denial.denied().retry_after(),
            }
        })
    }

    fn available<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let key = key_of::<C>(ask)?;
        Some(Box::pin(async move { Ok(key.available().await?) }))
    }

    fn banned_for<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<Option<Duration>, RemoteError>>> {
        let key = key_of::<C>(ask)?;
        Some(Box::pin(async move { Ok(key.banned_for().await?) }))
    }

    fn reset<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<(), RemoteError>>> {
        let key = key_of::<C>(ask)?;
        Some(Box::pin(async move { Ok(key.reset().await?) }))
    }

    fn refund<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let key = key_of::<C>(ask)?;
        Some(Box::pin(async move { Ok(key.refund(ask.cost).await?) }))
    }

    fn charge<'a>(
        &'a self,
        ask: RemoteAsk<'a>,
    ) -> Option<RemoteFuture<'a, Result<u64, RemoteError>>> {
        let key = key_of::<C>(ask)?;
        Some(Box::pin(async move { Ok(key.charge(ask.cost).await?.n()) }))
    }
}

impl<C: Client + 'static> RemoteGrants for Grants<C> {
    fn info(&self, index: usize) -> Option<GrantInfo> {
        self.grants.get(index).map(|grant| grant.granted().info())
    }

    fn fallback(&self, index: usize) -> Option<FallbackKind> {
        kind(self.grants.get(index)?.decider())
    }

    fn is_remaining_known(&self, index: usize) -> bool {
        let grant = self.grants.get(index);
        let plan = self.limits.get(index).map(|(plan, _)| plan);
        let has_allowance = plan.is_some_and(|plan| plan.has_allowance);
        grant.is_none_or(|grant| grant.decider() != Decider::Lease && !has_allowance)
    }

    fn settle(
        self: Box<Self>,
        actual: Vec<u64>,
    ) -> RemoteFuture<'static, Result<Settled, RemoteError>> {
        Box::pin(async move {
            let limits = self.limits.iter();
            // The slots of a concurrency come back.
            let actual = limits
                .zip(actual)
                .map(|((plan, _), actual)| plan.concurrency.map_or(actual, |_| 0));
            let actual: Vec<_> = actual.collect();
            let mut sum = Settled::default();
            if let Some(all) = all(&self.limits) {
                for settled in all.settle_each(self.grants, &actual).await? {
                    sum = sum.plus(settled);
                }
            }
            Ok(sum)
        })
    }

    fn undo(self: Box<Self>) -> RemoteFuture<'static, Result<u64, RemoteError>> {
        Box::pin(async move {
            match all(&self.limits) {
                Some(all) => Ok(all.undo(self.grants).await?.into_iter().sum()),
                None => Ok(0),
            }
        })
    }
}

/// Returns the limits, to be decided together. A rule is asked once for each key of a request, so
/// no limit occurs twice. `None` if there are none.
fn all<C: Client>(limits: &[(Arc<Plan<C>>, Vec<u8>)]) -> Option<RedisAll<'_, C>> {
    let keys = limits.iter().map(|(plan, user)| plan.limiter.key(user));
    let keys: Vec<RedisKey<'_, C>> = keys.collect();
    RedisAll::new(keys).ok()
}

/// Returns the key of one limit on the server.
fn key_of<C: Client + 'static>(ask: RemoteAsk<'_>) -> Option<RedisKey<'_, C>> {
    let plan = plan_of::<C>(ask.limit, ask.plan)?;
    Some(plan.limiter.key(user(ask.key.bytes())))
}

fn plan_of<C: Client + 'static>(limit: &RemoteLimit, plan: usize) -> Option<&Arc<Plan<C>>> {
    limit.downcast_ref::<Plans<C>>()?.0.get(plan)
}

/// Says what the text of a limit must be.
fn message(error: &ParseLimitError) -> String {
    match error {
        ParseLimitError::UnknownAlgorithm { name } => {
            let known = ALGORITHMS.into_iter().chain(["sliding-log", CONCURRENCY]);
            let known = known_names(name, known);
            format!("must begin with an algorithm of the server or a rate{known}")
        }
        _ => error.to_string(),
    }
}

/// Says what a fallback must be.
fn of_fallback(error: FallbackError) -> String {
    match error {
        FallbackError::Concurrency => {
            "must be \"closed\", \"open\" or { open = { at_most = 100, per = \"1m\" } }: a \
             concurrency has no local share"
                .into()
        }
        _ => format!("can't be used: {error}"),
    }
}

/// Returns which fallback decided.
fn kind(decider: Decider) -> Option<FallbackKind> {
    match decider {
        Decider::Closed => Some(FallbackKind::Closed),
        Decider::Open => Some(FallbackKind::Open),
        Decider::Local => Some(FallbackKind::Local),
        _ => None,
    }
}

fn fallback(fallback: &file::Fallback) -> Fallback {
    match fallback {
        file::Fallback::Closed => Fallback::Closed,
        file::Fallback::Open => Fallback::Open,
        file::Fallback::OpenAtMost { at_most, per } => Fallback::OpenAtMost {
            at_most: at_most.value,
            per: per.as_ref().map(|per| per.value),
        },
        file::Fallback::Local { processes, keys } => Fallback::Local {
            // A file can't say more.
            processes: u32::try_from(processes.value).unwrap_or(u32::MAX),
            keys: usize::try_from(keys.value).unwrap_or(usize::MAX),
        },
    }
}

impl<C> fmt::Debug for RedisStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Grants<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.grants).finish()
    }
}
