//! A policy that decides.

use std::fmt;
use std::io;
use std::sync::Arc;

use tollgate::clock::{Clock, SystemClock, UtcClock};
use tollgate::keyed::{KeyHasher, SeededHasher};

use crate::builder::Builder;
use crate::decide::Asks;
use crate::decide::Decision;
use crate::decide::decide;
use crate::decide::decide_async;
use crate::fact::Facts;
use crate::file::{Apply, Entry};
use crate::keep::RuleState;
use crate::limit::{Hashed, KeyHash};
use crate::problem::Problems;
use crate::registry::Registry;
use crate::rule::CompiledRule;
use crate::secret::Secret;
use crate::state;
use crate::when::Matcher;

/// A policy that decides: rules, and the state of their limits.
///
/// ```
/// use std::time::Duration;
/// use tollgate::ManualClock;
/// use tollgate_policy::Policy;
///
/// let text = r#"
///     [[rule]]
///     name  = "login"
///     when  = { method = "POST", path = "/login" }
///     key   = "client-ip"
///     limit = "5/min"
/// "#;
/// let policy = Policy::builder().clock(ManualClock::new()).build_toml(text)?;
/// let request = [("method", "POST"), ("path", "/login"), ("client-ip", "10.0.0.7")];
/// for _ in 0..5 {
///     assert!(policy.decide(&request).is_allowed());
/// }
/// let denied = policy.decide(&request);
/// assert_eq!(denied.denied_by(), Some("login"));
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(12)));
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
pub struct Policy<C = SystemClock> {
    pub(crate) apply: Apply,
    /// Whether a rule is on a store that decides asynchronously.
    pub(crate) asynchronous: bool,
    pub(crate) deny: List,
    pub(crate) allow: List,
    pub(crate) rules: Vec<CompiledRule<C>>,
    pub(crate) matcher: Matcher,
    pub(crate) registry: Arc<Registry<C>>,
    pub(crate) hasher: Hashed,
    /// The secret by which stores hide keys.
    pub(crate) key_secret: Option<Secret>,
    pub(crate) clock: C,
    /// What became of the state of each rule, if it was restored.
    pub(crate) restored: Vec<RuleState>,
}

/// The list `deny` or `allow`.
pub(crate) struct List {
    pub(crate) names: Vec<Box<str>>,
    /// The status of each entry, if it has one.
    statuses: Vec<Option<u16>>,
    pub(crate) matcher: Matcher,
}

impl List {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        Self {
            names: entries
                .iter()
                .map(|entry| entry.name.as_str().into())
                .collect(),
            statuses: entries
                .iter()
                .map(|entry| entry.status.map(|status| status.value))
                .collect(),
            matcher: Matcher::new(entries.iter().map(|entry| Some(&entry.when))),
        }
    }

    pub(crate) fn name(&self, entry: usize) -> &str {
        self.names.get(entry).map_or("", |name| name)
    }

    pub(crate) fn status(&self, entry: usize) -> Option<u16> {
        self.statuses.get(entry).copied().flatten()
    }
}

impl Policy {
    /// Creates a policy from TOML, without registered names, on the system's clock.
    ///
    /// # Errors
    ///
    /// All errors of the text.
    pub fn from_toml(text: &str) -> Result<Self, Problems> {
        Self::builder().build_toml(text)
    }

    /// Returns a builder, for names that the program registers, and for another clock.
    pub fn builder() -> Builder<SystemClock> {
        Builder::new(SystemClock)
    }
}

impl<C: Clock + fmt::Debug + Send + Sync> Policy<C> {
    /// Decides about a request, and takes the permits of all limits that apply, or none.
    ///
    /// It neither allocates nor locks if the keys have at most 64 bytes and at most three limits
    /// apply, and the facts don't.
    pub fn decide<F: Facts>(&self, facts: &F) -> Decision<&Self, C> {
        decide(self, facts, None)
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
        decide(Arc::clone(self), facts, None)
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
    /// let policy = Policy::builder().remote_store("redis", store).build_toml(text)?;
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
        let mut asks = Asks::new(self);
        let why = asks.collect(&facts);
        decide_async(asks, why)
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
    /// let policy = Policy::builder().remote_store("redis", store).build_toml(text)?;
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
        let mut asks = Asks::new(Arc::clone(self));
        let why = asks.collect(&facts);
        decide_async(asks, why)
    }
}

impl<C: Clock> Policy<C> {
    /// Forgets a key of a rule: its limits are as they were before its first request, its denials
    /// do not count, and a ban ends. Returns whether anything was known of the key.
    ///
    /// The key has the values that an override of it would have. Rules without a key, concurrency
    /// limits and limits that the program registered remain as they are.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'login'\nkey = 'client-ip'\nlimit = '1/h'\n\
    ///             ban = { after = 1, for = '1d' }";
    /// let policy = Policy::from_toml(text)?;
    /// let request = [("client-ip", "10.0.0.7")];
    /// assert!(policy.decide(&request).is_allowed());
    /// assert!(!policy.decide(&request).is_allowed());
    ///
    /// assert!(policy.forget("login", ["10.0.0.7"]));
    /// assert!(policy.decide(&request).is_allowed());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn forget<'k>(&self, rule: &str, key: impl IntoIterator<Item = &'k str>) -> bool {
        let mut rules = self.rules.iter();
        let Some(rule) = rules.find(|known| *known.name == *rule) else {
            return false;
        };
        let key = rule.key.of_values(key);
        let key = KeyHash(self.hasher.0.hash_key(key.as_slice()));
        rule.forget(&key)
    }
}

impl<C: PolicyClock> Policy<C> {
    /// Writes the state of all limits, for [`Builder::restore`]. It contains the secret seed of the
    /// keys' hashes: keep it secret too. Decisions go on meanwhile; grants that they make may be
    /// missing from it.
    ///
    /// Bans are saved, and so are the denials that count towards a ban. Requests that are inside a
    /// concurrency limit, and limits that the program registered, are not.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn snapshot(&self, writer: &mut impl io::Write) -> io::Result<()> {
        let seed = self.hasher.seed().unwrap_or_default();
        state::write(seed, &self.rules, writer)
    }
}

impl<C> Policy<C> {
    /// Iterates over the rules with what became of their state, if it was
    /// [restored](Builder::restore).
    pub fn restored(&self) -> impl Iterator<Item = (&str, RuleState)> {
        self.rules().zip(self.restored.iter().copied())
    }

    /// Returns the names of the rules, in their order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.name)
    }

    /// Returns whether a rule is on a store that decides asynchronously. Such a policy needs
    /// [`decide_async`](Self::decide_async).
    #[must_use]
    pub const fn is_asynchronous(&self) -> bool {
        self.asynchronous
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the status of denials by a rule, if it has one.
    pub(crate) fn rule_status(&self, rule: usize) -> Option<u16> {
        let status = self.rules.get(rule)?.source.status;
        status.map(|status| status.value)
    }

    pub(crate) fn rule_name(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("", |rule| &rule.name)
    }
}

impl<C> fmt::Debug for Policy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("apply", &self.apply)
            .field("deny", &self.deny.names)
            .field("allow", &self.allow.names)
            .field("rules", &self.rules)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// Returns a hasher for the keys of a policy, with this seed or a random one.
pub(crate) fn hasher(seed: Option<[u64; 2]>) -> Hashed {
    Hashed(seed.map_or_else(SeededHasher::random, SeededHasher::new))
}

/// What a policy needs of its clock.
pub trait PolicyClock: Clock + UtcClock + Clone + fmt::Debug + Send + Sync + 'static {}

impl<C: Clock + UtcClock + Clone + fmt::Debug + Send + Sync + 'static> PolicyClock for C {}
