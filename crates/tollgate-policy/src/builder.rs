//! Makes a policy, with the names that the program registers.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Keyed;
use tollgate::algorithm::{Algorithm, Debt, GiveBack};
use tollgate::clock::SystemClock;

use crate::compile::{Given, compile};
use crate::facts::{FactValue, Facts};
use crate::file::{Format, PolicyFile};
use crate::limit::{LimitSpec, OwnLimit, PolicyClock};
use crate::parse::read;
use crate::policy::{Policy, hasher};
use crate::problem::{Problem, Problems, quoted};
use crate::registry::{Registry, Store, StoreKind};
use crate::state::{Saved, StateError};

/// Makes a [`Policy`], with the names that the program registers.
///
/// ```
/// use tollgate_policy::{FactName, FactValue, Facts, Policy};
///
/// let customer = FactName::new("header:x-customer");
/// let builder = Policy::builder().resolver("tenant", move |facts| {
///     let tenant = facts.fact(&customer)?.as_text().split_once('/')?.0.to_owned();
///     Some(tenant.into())
/// });
/// let policy = builder.build_toml("[[rule]]\nname = 'a'\nkey = 'tenant'\nlimit = '1/h'")?;
/// let request = |customer: &'static str| [("header:x-customer", customer)];
/// assert!(policy.decide(&request("acme/ann")).is_allowed());
/// assert!(!policy.decide(&request("acme/bob")).is_allowed());
/// assert!(policy.decide(&request("globex/ann")).is_allowed());
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[must_use]
pub struct PolicyBuilder<C> {
    pub(crate) registry: Registry<C>,
    pub(crate) clock: C,
    saved: Option<Saved>,
    /// What was registered for another clock.
    early: Vec<String>,
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
    pub fn builder() -> PolicyBuilder<SystemClock> {
        PolicyBuilder::new(SystemClock)
    }
}

impl<C> PolicyBuilder<C> {
    fn new(clock: C) -> Self {
        Self {
            registry: Registry::default(),
            clock,
            saved: None,
            early: Vec::new(),
        }
    }

    /// Uses another clock. Call it before you register algorithms, limits and stores, which need to
    /// know it: building the policy fails otherwise.
    pub fn clock<D>(self, clock: D) -> PolicyBuilder<D> {
        let mut early = self.early;
        early.extend(self.registry.algorithms.into_keys());
        let mut registry = Registry {
            resolvers: self.registry.resolvers,
            ..Registry::default()
        };
        for (name, store) in self.registry.stores {
            match store.0 {
                StoreKind::Here(_) => early.push(name),
                StoreKind::Elsewhere(store) => {
                    let store = Store(StoreKind::Elsewhere(store));
                    registry.stores.insert(name, store);
                }
            }
        }
        PolicyBuilder {
            registry,
            clock,
            saved: self.saved,
            early,
        }
    }

    /// Restores the state that [`Policy::snapshot`] saved. A rule is known by its name, as in a
    /// reload; [`Policy::restored`] says what became of each rule. The time since the snapshot
    /// counts, by the time of day.
    ///
    /// ```
    /// use tollgate_policy::{Policy, RuleState};
    ///
    /// let rule = |limit: &str| format!("[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '{limit}'");
    /// let policy = Policy::from_toml(&rule("5/d"))?;
    /// let ann = [("user", "ann")];
    /// assert_eq!(policy.decide(&ann).remaining(), Some(4));
    /// let mut state = Vec::new();
    /// policy.snapshot(&mut state)?;
    ///
    /// // In the next process.
    /// let builder = Policy::builder().restore(&mut state.as_slice())?;
    /// let policy = builder.build_toml(&rule("3/d"))?;
    /// assert!(policy.restored().eq([("api", RuleState::Kept)]));
    /// assert_eq!(policy.decide(&ann).remaining(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StateError`] if the state can't be read.
    pub fn restore(self, reader: &mut impl io::Read) -> Result<Self, StateError> {
        let saved = Some(Saved::read(reader, None)?);
        Ok(Self { saved, ..self })
    }

    /// Restores a state that is `elapsed` old: see [`restore`](Self::restore). For clocks that do
    /// not follow the time of day.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the state can't be read.
    pub fn restore_after(
        self,
        reader: &mut impl io::Read,
        elapsed: Duration,
    ) -> Result<Self, StateError> {
        let saved = Some(Saved::read(reader, Some(elapsed))?);
        Ok(Self { saved, ..self })
    }

    /// Registers a resolver: it computes a fact from others. Rules use its name wherever they use
    /// the name of a fact that the program supplies: in conditions, keys, plans and costs.
    pub fn resolver(
        mut self,
        name: impl Into<String>,
        resolve: impl for<'f> Fn(&'f dyn Facts) -> Option<FactValue<'f>> + Send + Sync + 'static,
    ) -> Self {
        let resolve = Arc::new(resolve);
        self.registry.resolvers.insert(name.into(), resolve);
        self
    }
}

impl<C: PolicyClock> PolicyBuilder<C> {
    /// Registers an algorithm. A limit whose text begins with its name is made from the rest of the
    /// text. It can't be the limit of a plan.
    ///
    /// ```
    /// use tollgate::{FixedWindow, Quota};
    /// use tollgate_policy::Policy;
    ///
    /// let builder = Policy::builder().algorithm("hourly", |text| {
    ///     let n = text.parse().map_err(|_| "must have a number, as in `hourly 5`")?;
    ///     FixedWindow::new(Quota::per_hour(n)).map_err(|_| "must be at least 1")
    /// });
    /// let policy = builder.build_toml("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'hourly 5'")?;
    /// assert_eq!(policy.decide(&[("user", "ann")]).remaining(), Some(4));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn algorithm<A, E>(
        self,
        name: impl Into<String>,
        parse: impl Fn(&str) -> Result<A, E> + Send + Sync + 'static,
    ) -> Self
    where
        A: Algorithm + GiveBack + Debt + fmt::Debug + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.limit(name, move |spec| {
            let [text] = spec.limits.as_slice() else {
                return Err(String::from(
                    "must be an algorithm of this crate: it is a plan",
                ));
            };
            let algorithm = parse(text).map_err(|error| error.to_string())?;
            let capacity = if spec.has_key { spec.capacity } else { 1 };
            let table = Keyed::with_clock(algorithm, capacity, spec.clock.clone());
            let table = table.map_err(|error| error.to_string())?;
            let table = table.with_overflow(spec.overflow);
            Ok(Box::new(table.with_hasher(spec.hasher.clone())))
        })
    }

    /// Registers a limit of your own, whose state is not that of an
    /// [`algorithm`](Self::algorithm): a [`KeyedLimit`](crate::KeyedLimit), or an [`OwnLimit`] such
    /// as a table. A limit whose text begins with its name is made from the rest of the text.
    /// `make` returns an error if it can't make the limit: a text that says what must be different.
    ///
    /// ```
    /// use tollgate::{AnyAlgorithm, Keyed};
    /// use tollgate_policy::Policy;
    ///
    /// let builder = Policy::builder().limit("by-plan", |spec| {
    ///     let plans = spec.limits.iter().map(|text| text.parse());
    ///     let plans: Result<Vec<AnyAlgorithm>, _> = plans.collect();
    ///     let plans = plans.map_err(|error| error.to_string())?;
    ///     let table = Keyed::with_plans(plans, spec.capacity, *spec.clock);
    ///     let table = table.map_err(|error| error.to_string())?;
    ///     Ok(Box::new(table.with_hasher(spec.hasher.clone())))
    /// });
    /// let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'by-plan 5/h'";
    /// let policy = builder.build_toml(text)?;
    /// assert_eq!(policy.decide(&[("user", "ann")]).remaining(), Some(4));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn limit(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&LimitSpec<'_, C>) -> Result<Box<dyn OwnLimit<C>>, String> + Send + Sync + 'static,
    ) -> Self {
        self.registry.algorithms.insert(name.into(), Arc::new(make));
        self
    }

    /// Registers a store, which makes the limits of rules that name it in `store`. If the name is
    /// registered twice, the last store is used.
    ///
    /// A [`RemoteStore`](crate::RemoteStore) decides asynchronously: requests that its rules apply
    /// to need [`Policy::decide_async`]. [`Store::here`] makes a store in this process.
    pub fn store(mut self, name: impl Into<String>, store: impl Into<Store<C>>) -> Self {
        self.registry.stores.insert(name.into(), store.into());
        self
    }

    /// Makes a policy from TOML.
    ///
    /// # Errors
    ///
    /// All errors of the text.
    pub fn build_toml(self, text: &str) -> Result<Policy<C>, Problems> {
        let (file, problems) = read(text, Format::Toml);
        self.build_from(&file, problems)
    }

    /// Makes a policy from what a file says.
    ///
    /// # Errors
    ///
    /// All errors that [`PolicyFile::from_toml`] does not find, such as those of limits.
    pub fn build(self, file: &PolicyFile) -> Result<Policy<C>, Problems> {
        self.build_from(file, Problems::new())
    }

    pub(crate) fn build_from(
        self,
        file: &PolicyFile,
        mut problems: Problems,
    ) -> Result<Policy<C>, Problems> {
        for name in &self.early {
            let message = "must be registered after the call of `clock`";
            problems.push(Problem::error("a registered name", quoted(name), message));
        }
        let given = Given {
            registry: Arc::new(self.registry),
            clock: self.clock,
            hasher: hasher(self.saved.as_ref().map(|saved| saved.seed)),
            previous: None,
            saved: self.saved.as_ref(),
        };
        let compiled = compile(file, given, &mut problems);
        let restored = self.saved.as_ref().map(|_| compiled.states);
        let policy = Policy {
            restored: restored.unwrap_or_default(),
            ..compiled.policy
        };
        problems.or(policy)
    }
}

impl<C> fmt::Debug for PolicyBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyBuilder")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
