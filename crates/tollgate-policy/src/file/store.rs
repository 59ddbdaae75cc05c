//! The server that has a policy's limits.

use std::time::Duration;

use super::secret::{Secret, SecretSource};
use super::{At, Fallback, PolicyFile, server_url};
use crate::problem::{Problem, Problems};

/// The server of Redis or Valkey that has the limits of rules on the store `redis`: the table
/// `[store]`.
///
/// A policy connects to no server. The program reads the file first, connects, and registers a
/// store as `redis`, such as the `RedisStore` of the feature `redis`. [The
/// guide](crate::guide::policy#the-server-in-the-file) shows how.
///
/// ```
/// use tollgate_policy::file::PolicyFile;
///
/// let text = "[store]\nredis = 'redis://10.0.0.5:6379'\nfallback = 'closed'\n\
///             [[rule]]\nname = 'api'\nlimit = '100/s'";
/// let file = PolicyFile::from_toml(text)?;
/// let store = file.store.as_ref().unwrap();
/// assert_eq!(store.resolve_url()?.reveal(), "redis://10.0.0.5:6379");
/// assert_eq!(store.namespace.as_str(), "tollgate");
/// assert_eq!(file.rules[0].store.as_str(), "redis");
/// assert_eq!(file.rules[0].fallback, store.fallback);
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// The server's URL, which may contain a password.
    pub redis: At<SecretSource>,
    /// The namespace of the keys on the server. It is one that `Keys::new` of `tollgate-redis`
    /// accepts: `tollgate`, unless the file says otherwise.
    pub namespace: At<String>,
    /// How long a decision may wait for the server. Without it, `tollgate-redis` says how long.
    pub budget: Option<At<Duration>>,
    /// What decides, while the server does not answer, for rules that have no fallback. Such a rule
    /// of a file that was read has it already.
    pub fallback: Option<At<Fallback>>,
}

/// The field of the server's URL.
const REDIS: &str = "store.redis";

impl StoreSettings {
    /// Returns the server's URL. A variable of the environment is read now.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let file = PolicyFile::from_toml("store = { redis = { env = 'NOT_SET' } }")?;
    /// assert_eq!(
    ///     file.store.unwrap().resolve_url().unwrap_err().to_string(),
    ///     "1:19: error: store.redis needs a value in the environment variable NOT_SET, which is \
    ///      not set"
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    ///
    /// One error, which does not contain the URL: the variable is not set or is not text, or the
    /// URL is not that of such a server.
    pub fn resolve_url(&self) -> Result<Secret, Problems> {
        let url = self.redis.resolve(server_url::check);
        url.map_err(|message| {
            let problem = Problem::error(REDIS, "", message);
            problem.at(self.redis.position).into()
        })
    }

    /// Returns whether the file has a password in clear text.
    pub(crate) fn shows_password(&self) -> bool {
        match &self.redis.value {
            SecretSource::Text(url) => server_url::has_password(url.reveal()),
            SecretSource::Env(_) => false,
        }
    }
}

impl PolicyFile {
    /// Returns what can't change while a program runs, but differs from the settings by which the
    /// program has connected.
    pub(crate) fn changed_store(&self, connected: Option<&StoreSettings>) -> Problems {
        const AFTER: &str = "can't change in a reload; restart the program";
        let mut problems = Problems::new();
        let mut refuse = |field: &str, position, message: &str| {
            problems.push(Problem::error(field, "", message).at(position));
        };
        match (connected, &self.store) {
            (None, None) => {}
            (Some(_), None) => refuse("store", None, &format!("is missing, but {AFTER}")),
            (None, Some(new)) => {
                let position = new.redis.position;
                refuse("store", position, &format!("is new, but {AFTER}"));
            }
            (Some(old), Some(new)) => {
                let address = new.redis.position;
                if old.redis != new.redis {
                    refuse(REDIS, address, AFTER);
                }
                if old.namespace != new.namespace {
                    let position = new.namespace.position.or(address);
                    refuse("store.namespace", position, AFTER);
                }
                if old.budget != new.budget {
                    let position = new.budget.and_then(|budget| budget.position);
                    refuse("store.budget", position.or(address), AFTER);
                }
            }
        }
        problems
    }
}
