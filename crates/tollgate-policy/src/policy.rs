//! A policy that decides.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use tollgate::clock::SystemClock;
use tollgate::keyed::SeededHasher;

use crate::choose::Chooser;
use crate::file::secret::Secret;
use crate::file::{ClientSettings, PolicyFile, Rule, StoreSettings};
use crate::limit::Hashed;
use crate::registry::Registry;
use crate::rule::CompiledRule;
use crate::state::RuleState;

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
    pub(crate) chooser: Chooser,
    /// Whether a rule is on a store that decides asynchronously.
    pub(crate) asynchronous: bool,
    pub(crate) rules: Vec<CompiledRule<C>>,
    pub(crate) registry: Arc<Registry<C>>,
    pub(crate) hasher: Hashed,
    pub(crate) file: PolicyFile,
    /// What a program made of the file's settings of clients.
    pub(crate) client: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The secret by which stores hide keys.
    pub(crate) key_secret: Option<Secret>,
    pub(crate) clock: C,
    /// What became of the state of each rule, if it was restored.
    pub(crate) restored: Vec<RuleState>,
}

impl<C> Policy<C> {
    /// Iterates over the rules with what became of their state, if it was
    /// [restored](crate::PolicyBuilder::restore).
    pub fn restored(&self) -> impl Iterator<Item = (&str, RuleState)> {
        let names = self.rules.iter().map(|rule| &*rule.name);
        names.zip(self.restored.iter().copied())
    }

    /// Returns what the file says, which [`explain`](crate::explain()) and
    /// [`warnings`](crate::warnings) take.
    ///
    /// ```
    /// use tollgate_policy::{Policy, explain};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'api'\nlimit = '5/s'")?;
    /// assert_eq!(explain(policy.file(), &()).summary, "asks api");
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub const fn file(&self) -> &PolicyFile {
        &self.file
    }

    /// Iterates over the rules as the file says them, in their order: names, limits, keys, stores
    /// and the rest.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = ['client-ip', 'path']\nlimit = '5/s'";
    /// let policy = Policy::from_toml(text)?;
    /// let rule = policy.rules().next().unwrap();
    /// let key: Vec<&str> = rule.key.iter().map(|part| part.as_str()).collect();
    /// assert_eq!((rule.name.as_str(), rule.limits[0].as_str()), ("api", "5/s"));
    /// assert_eq!((key, rule.store.as_str()), (vec!["client-ip", "path"], "memory"));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter().map(|rule| &rule.source)
    }

    /// Returns whether a rule is on a store that decides asynchronously. Such a policy needs
    /// [`decide_async`](Self::decide_async).
    #[must_use]
    pub const fn is_asynchronous(&self) -> bool {
        self.asynchronous
    }

    /// Returns how the program should find the client of a request, as the file says it.
    #[must_use]
    pub const fn client(&self) -> &ClientSettings {
        &self.file.client
    }

    /// Returns what a program makes of [`client`](Self::client). It is made once for each policy
    /// that is loaded, so that requests need not do it. `None` if something of another type was
    /// made before.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml("[client]\nhops = 2\nheader = 'x-forwarded-for'")?;
    /// let hops = policy.client_as(|client| client.hops.map_or(0, |hops| hops.value));
    /// assert_eq!(hops, Some(&2_u8));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn client_as<T>(&self, make: impl FnOnce(&ClientSettings) -> T) -> Option<&T>
    where
        T: Any + Send + Sync,
    {
        let made = || Box::new(make(&self.file.client)) as Box<dyn Any + Send + Sync>;
        let made = self.client.get_or_init(made);
        made.downcast_ref()
    }

    /// Returns the server that has the limits of rules on the store `redis`, as the file says it.
    /// The policy does not connect to it: see [`StoreSettings`].
    #[must_use]
    pub const fn store(&self) -> Option<&StoreSettings> {
        self.file.store.as_ref()
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
            .field("apply", &self.chooser.apply)
            .field("deny", &self.chooser.deny.names)
            .field("allow", &self.chooser.allow.names)
            .field("client", &self.file.client)
            .field("store", &self.file.store)
            .field("rules", &self.rules)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// Returns a hasher for the keys of a policy, with this seed or a random one.
pub(crate) fn hasher(seed: Option<[u64; 2]>) -> Hashed {
    Hashed(seed.map_or_else(SeededHasher::random, SeededHasher::new))
}
