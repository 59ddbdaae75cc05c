//! A policy that can be reloaded while it decides.

#[cfg(feature = "watch")]
mod watch;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tollgate::clock::SystemClock;

use crate::builder::PolicyBuilder;
use crate::check::warnings_with;
use crate::compile::{Given, compile};
use crate::decide::{Decision, decide, decide_async};
use crate::facts::Facts;
use crate::file::disk::{FileError, read_text};
use crate::file::{Format, PolicyFile, Rule};
use crate::limit::PolicyClock;
use crate::parse::read;
use crate::policy::Policy;
use crate::problem::{Problem, Problems};
use crate::state::RuleState;
#[cfg(feature = "watch")]
pub use watch::Watch;

/// A policy that can be reloaded while it decides.
///
/// A rule is known by its name. If its key, store and kind of algorithm stay the same, it keeps its
/// state, and a changed quota applies to each key from then on: a key keeps what it used. Otherwise
/// it starts anew, and the report says why. A policy with errors changes nothing, nor does one that
/// has lost all rules and does not say `rule = []`. Decisions never wait for a reload; a decision
/// made before the reload finishes under the old rules.
///
/// ```
/// use tollgate_policy::{LivePolicy, Policy, RuleState};
///
/// let rule = |limit: &str| format!("[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '{limit}'");
/// let live = LivePolicy::new(Policy::from_toml(&rule("5/h"))?);
/// let ann = [("user", "ann")];
/// assert_eq!(live.decide(&ann).remaining(), Some(4));
///
/// let reloaded = live.reload_toml(&rule("50/h"))?;
/// assert_eq!(reloaded.state("api"), Some(RuleState::Migrated));
/// assert_eq!(live.decide(&ann).remaining(), Some(48)); // two of 50 are used
///
/// let errors = live.reload_toml(&rule("3/fortnight")).unwrap_err();
/// assert!(errors.has_errors());
/// assert_eq!(live.decide(&ann).remaining(), Some(47));
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
pub struct LivePolicy<C = SystemClock> {
    current: ArcSwap<Policy<C>>,
    /// Held while the policy is reloaded.
    reloading: Mutex<()>,
    /// What a file said when it was last read: its text, or why it could not be read.
    last_read: Mutex<LastRead>,
}

type LastRead = Option<Result<String, io::ErrorKind>>;

/// The policy that a decision was made by: see [`LivePolicy::decide`].
pub struct Current<C>(Guard<Arc<Policy<C>>>);

impl<C> Deref for Current<C> {
    type Target = Policy<C>;

    #[inline]
    fn deref(&self) -> &Policy<C> {
        &self.0
    }
}

impl<C: PolicyClock> Current<C> {
    /// Decides by this policy: see [`LivePolicy::decide_together`].
    ///
    /// ```
    /// use tollgate_policy::{LivePolicy, Policy};
    ///
    /// let live = LivePolicy::new(Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '5/h'")?);
    /// let policy = live.current();
    /// assert_eq!(policy.rules().len(), 1);
    /// assert_eq!(policy.decide_together(&[()], None).remaining(), Some(4));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn decide_together<F: Facts>(
        self,
        sets: &[F],
        patience: Option<Duration>,
    ) -> Decision<Self, C> {
        decide(self, sets, patience)
    }
}

impl<C> fmt::Debug for Current<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// What a reload did with the state of each rule, and what is probably not meant in the new policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Reloaded {
    rules: Vec<(String, RuleState)>,
    warnings: Problems,
}

impl Reloaded {
    /// Iterates over the rules: those of the new policy in their order, and then those that are
    /// gone.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = (&str, RuleState)> {
        self.rules
            .iter()
            .map(|(name, state)| (name.as_str(), *state))
    }

    /// Returns what became of a rule.
    #[must_use]
    pub fn state(&self, rule: &str) -> Option<RuleState> {
        let mut rules = self.rules();
        rules.find_map(|(name, state)| (name == rule).then_some(state))
    }

    /// Returns the warnings of the new policy, which [`PolicyBuilder::check`] finds too.
    ///
    /// ```
    /// use tollgate_policy::{LivePolicy, Policy};
    ///
    /// let rule = "[[rule]]\nname = 'api'\nlimit = ";
    /// let live = LivePolicy::new(Policy::from_toml(&format!("{rule}'5/s'"))?);
    /// let reloaded = live.reload_toml(&format!("{rule}['5/s', '900/min']"))?;
    /// assert_eq!(
    ///     reloaded.warnings().to_string(),
    ///     "3:17: warning: rule \"api\": limit is \"900/min\", but never denies a request: \
    ///      \"5/s\" of rule \"api\" always denies it first"
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    #[must_use]
    pub const fn warnings(&self) -> &Problems {
        &self.warnings
    }
}

impl<C> LivePolicy<C> {
    /// Makes a policy reloadable.
    #[must_use]
    pub fn new(policy: Policy<C>) -> Self {
        Self {
            current: ArcSwap::from_pointee(policy),
            reloading: Mutex::new(()),
            last_read: Mutex::new(None),
        }
    }

    /// Returns whether a rule is on a store that decides asynchronously: see
    /// [`Policy::is_asynchronous`].
    #[must_use]
    pub fn is_asynchronous(&self) -> bool {
        self.current.load().is_asynchronous()
    }

    /// Returns the policy as it is now, to use it at once. It takes less time than
    /// [`load`](Self::load), whose result can be kept.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Current<C> {
        Current(self.current.load())
    }

    /// Returns the policy as it is now.
    #[must_use]
    pub fn load(&self) -> Arc<Policy<C>> {
        self.current.load_full()
    }
}

impl<C> From<Policy<C>> for LivePolicy<C> {
    fn from(policy: Policy<C>) -> Self {
        Self::new(policy)
    }
}

/// For types that share a policy that can be reloaded, such as the layers of `tollgate-tower`.
impl<C> From<Policy<C>> for Arc<LivePolicy<C>> {
    fn from(policy: Policy<C>) -> Self {
        Self::new(policy.into())
    }
}

impl<C: PolicyClock> LivePolicy<C> {
    /// Decides about a request by the policy as it is now: see [`Policy::decide`]. The decision
    /// keeps that policy alive, so it can move to another thread or task.
    pub fn decide<F: Facts>(&self, facts: &F) -> Decision<Current<C>, C> {
        self.decide_together(slice::from_ref(facts), None)
    }

    /// Decides about several sets of facts at once: see [`Policy::decide_together`]. If the caller
    /// waits and asks again, pass its `patience`: a denial that ends within this time does not
    /// count towards a ban.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_policy::{LivePolicy, Policy};
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '1/min'\n\
    ///             ban = { after = 2, for = '1h' }";
    /// let live = LivePolicy::new(Policy::from_toml(text)?);
    /// let ann = [("user", "ann")];
    /// assert!(live.decide(&ann).is_allowed());
    /// for _ in 0..9 {
    ///     let denied = live.decide_together(&[ann], Some(Duration::from_secs(60)));
    ///     assert!(denied.retry_after() <= Some(Duration::from_secs(60))); // there is no ban
    /// }
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn decide_together<F: Facts>(
        &self,
        sets: &[F],
        patience: Option<Duration>,
    ) -> Decision<Current<C>, C> {
        self.current().decide_together(sets, patience)
    }

    /// Decides about a request by the policy as it is now, and also asks stores that decide
    /// asynchronously: see [`Policy::decide_async`].
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate_redis::Keys;
    /// use tollgate_policy::{LivePolicy, Policy};
    /// use tollgate_policy::redis::RedisStore;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '9/h'\n\
    ///             store = 'redis'\nfallback = { open = { at_most = 2 } }";
    /// // Without a server, the fallback decides.
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let policy = Policy::builder().store("redis", store).build_toml(text)?;
    /// let live = LivePolicy::new(policy);
    /// let ann = [("user", "ann")];
    /// assert!(live.decide_async(&ann).await.is_allowed());
    /// let _ = live.reload_toml(&text.replace("at_most = 2", "at_most = 1"))?;
    /// assert!(live.decide_async(&ann).await.is_allowed());
    /// assert!(!live.decide_async(&ann).await.is_allowed());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "redis"))]
    /// # fn main() {}
    /// ```
    pub fn decide_async(
        &self,
        facts: &dyn Facts,
    ) -> impl Future<Output = Decision<Arc<Policy<C>>, C>> + use<C> {
        self.decide_together_async(&[facts], None)
    }

    /// Decides as [`decide_together`](Self::decide_together) does, and also asks stores that decide
    /// asynchronously.
    pub fn decide_together_async(
        &self,
        sets: &[&dyn Facts],
        patience: Option<Duration>,
    ) -> impl Future<Output = Decision<Arc<Policy<C>>, C>> + use<C> {
        decide_async(self.load(), sets, patience)
    }
}

impl<C: PolicyClock> LivePolicy<C> {
    /// Reads a policy from a file, in the [`Format`] that the end of its name says.
    ///
    /// ```
    /// use tollgate_policy::{LivePolicy, Policy};
    ///
    /// # let path = std::env::temp_dir().join(format!("from-file-{}.toml", std::process::id()));
    /// # std::fs::write(&path, "[[rule]]\nname = 'api'\nlimit = '5/h'")?;
    /// let live = LivePolicy::from_file(&path, Policy::builder())?;
    /// assert_eq!(live.decide(&()).remaining(), Some(4));
    ///
    /// # std::fs::write(&path, "[[rule]]\nname = 'api'\nlimit = '3/fortnight'")?;
    /// // Later, when a signal arrives:
    /// if let Err(error) = live.reload_file(&path) {
    ///     eprintln!("the limits stay as they are: {error}");
    /// }
    /// assert_eq!(live.decide(&()).remaining(), Some(3));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file can't be read, or is not a policy.
    pub fn from_file(path: impl AsRef<Path>, builder: PolicyBuilder<C>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let text = read_text(path).map_err(|error| FileError::read(path, error))?;
        let (file, problems) = read(&text, Format::of_path(path));
        let policy = builder.build_from(&file, problems);
        let policy = policy.map_err(|problems| FileError::policy(path, problems))?;
        Ok(Self {
            last_read: Mutex::new(Some(Ok(text))),
            ..Self::new(policy)
        })
    }

    /// Reloads the policy from a file: see [`from_file`](Self::from_file).
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file can't be read, or is not a policy. In that case nothing has
    /// changed.
    pub fn reload_file(&self, path: impl AsRef<Path>) -> Result<Reloaded, FileError> {
        let mut last = self.lock_last_read();
        let now = read_text(path.as_ref());
        self.reload_read(path.as_ref(), now, &mut last)
    }

    /// Reloads the policy from a file if the file no longer says what it said when it was
    /// last read. Call it at intervals, or when the file may have changed.
    ///
    /// It returns `None` if nothing has changed. So an error is returned once, until the file
    /// changes again; [`reload_file`](Self::reload_file) tries again in any case.
    ///
    /// ```
    /// use tollgate_policy::{LivePolicy, Policy, RuleState};
    ///
    /// # let path = std::env::temp_dir().join(format!("if-changed-{}.toml", std::process::id()));
    /// # std::fs::write(&path, "[[rule]]\nname = 'api'\nlimit = '5/h'")?;
    /// let live = LivePolicy::from_file(&path, Policy::builder())?;
    /// assert!(live.reload_if_changed(&path).is_none());
    ///
    /// std::fs::write(&path, "[[rule]]\nname = 'api'\nlimit = '3/h'")?;
    /// let reloaded = live.reload_if_changed(&path).expect("another limit")?;
    /// assert_eq!(reloaded.state("api"), Some(RuleState::Migrated));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reload_if_changed(&self, path: impl AsRef<Path>) -> Option<Result<Reloaded, FileError>> {
        let mut last = self.lock_last_read();
        let now = read_text(path.as_ref());
        let is_same = match (&*last, &now) {
            (Some(Ok(last)), Ok(now)) => last == now,
            (Some(Err(last)), Err(now)) => *last == now.kind(),
            _ => false,
        };
        (!is_same).then(|| self.reload_read(path.as_ref(), now, &mut last))
    }

    fn lock_last_read(&self) -> MutexGuard<'_, LastRead> {
        // A thread that panicked has not stored what it read, so the next one tries again.
        let last = self.last_read.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }

    fn reload_read(
        &self,
        path: &Path,
        now: io::Result<String>,
        last: &mut LastRead,
    ) -> Result<Reloaded, FileError> {
        let text = match now {
            Ok(text) => text,
            Err(error) => {
                *last = Some(Err(error.kind()));
                return Err(FileError::read(path, error));
            }
        };
        let (file, problems) = read(&text, Format::of_path(path));
        let reloaded = self.reload_from(&file, problems);
        *last = Some(Ok(text));
        let mut reloaded = reloaded.map_err(|problems| FileError::policy(path, problems))?;
        reloaded.warnings = reloaded.warnings.with_file(path.display().to_string());
        Ok(reloaded)
    }

    /// Reloads the policy from TOML.
    ///
    /// # Errors
    ///
    /// All errors of the text. In that case nothing has changed.
    pub fn reload_toml(&self, text: &str) -> Result<Reloaded, Problems> {
        let (file, problems) = read(text, Format::Toml);
        self.reload_from(&file, problems)
    }

    /// Reloads the policy from what a file says.
    ///
    /// # Errors
    ///
    /// All errors of the policy. If it has no rules, and neither `deny` nor `allow`, but the policy
    /// as it is now has some, that is an error unless [`PolicyFile::no_rules`] says that it is
    /// meant. So is another address, namespace or budget in [`PolicyFile::store`], to which the
    /// program has not connected. If there is an error, nothing has changed.
    pub fn reload(&self, file: &PolicyFile) -> Result<Reloaded, Problems> {
        self.reload_from(file, Problems::new())
    }

    fn reload_from(&self, file: &PolicyFile, mut problems: Problems) -> Result<Reloaded, Problems> {
        // A thread that panicked changed nothing that matters.
        let _one = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let old = self.current.load_full();
        let given = Given {
            registry: Arc::clone(&old.registry),
            clock: old.clock.clone(),
            hasher: old.hasher.clone(),
            previous: Some(&old),
            saved: None,
        };
        if !problems.has_errors() {
            problems.append(file.changed_store(old.store()));
            if is_lost(&old, file) {
                problems.push(Problem::error("rule", "", NO_RULES));
            }
        }
        let compiled = compile(file, given, &mut problems);
        if problems.has_errors() {
            return Err(problems);
        }
        for change in compiled.changes {
            change.apply();
        }
        let name = |rule: &Rule| rule.name.value.clone();
        let new: HashSet<&str> = file.rules.iter().map(|rule| rule.name.as_str()).collect();
        let gone = old.rules().filter(|rule| !new.contains(rule.name.as_str()));
        let gone = gone.map(|rule| (name(rule), RuleState::Removed));
        let kept = file.rules.iter().map(name).zip(compiled.states);
        let rules = kept.chain(gone).collect();
        self.current.store(Arc::new(compiled.policy));
        let is_registered = |name: &str| old.registry.resolvers.contains_key(name);
        problems.append(warnings_with(file, is_registered));
        Ok(Reloaded {
            rules,
            warnings: problems,
        })
    }
}

const NO_RULES: &str = "is missing, and so are `deny` and `allow`, but the policy has some; if no \
                        rule is meant, write `rule = []`";

/// Returns whether a file has nothing of what a policy has, and does not say that it is meant: it
/// is probably cut.
fn is_lost<C>(policy: &Policy<C>, file: &PolicyFile) -> bool {
    let lists = [&policy.chooser.deny, &policy.chooser.allow];
    let has_none = policy.rules.iter().all(|rule| rule.source.is_limit)
        && lists.iter().all(|list| list.names.is_empty());
    let has_no_rules = file.rules.iter().all(|rule| rule.is_limit);
    let is_empty = has_no_rules && file.deny.is_empty() && file.allow.is_empty();
    is_empty && !file.no_rules && !has_none
}

impl<C> fmt::Debug for LivePolicy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LivePolicy").field(&self.load()).finish()
    }
}
