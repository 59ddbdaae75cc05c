//! What the keys of a policy's rules are called on the server.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use tollgate_redis::{Keys, KeysError, Limit};

use super::RedisStore;
use crate::file::secret::Secret;
use crate::file::{At, PolicyFile};
use crate::limit::{Fixed, is_concurrency};
use crate::operate::{KeyError, bytes_of};
use crate::parse::MEMORY;
use crate::problem::{Problem, Problems, quoted};
use crate::rule::KeySpec;

/// A key that a rule stores on the server: see [`RedisStore::stored_keys`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredKey {
    /// The text of the limit.
    pub limit: String,
    /// The name of the plan, if the rule has plans and the key no override.
    pub plan: Option<String>,
    /// The name of the key, in printable ASCII.
    pub key: String,
}

/// The reason why a rule has no keys for some values: see [`RedisStore::stored_keys`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredKeyError {
    /// The rule has no such key.
    Key(KeyError),
    /// The rule is in memory.
    InMemory {
        /// The name of the rule.
        rule: String,
    },
    /// The policy can't be used.
    Policy(Problems),
}

impl fmt::Display for StoredKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(error) => error.fmt(f),
            Self::InMemory { rule } => {
                let rule = quoted(rule);
                write!(f, "rule {rule} is in memory, so no server stores its keys")
            }
            Self::Policy(problems) => problems.fmt(f),
        }
    }
}

impl Error for StoredKeyError {}

impl<C> RedisStore<C> {
    /// Returns the keys that a rule stores for the values of its key, so that an operator can look
    /// at them or delete them: one for each limit, or for each plan. An override has one in place
    /// of all plans.
    ///
    /// Pass the values that an override of the key would have: one for each part of the rule's key,
    /// in its order. The policy must be one that this store accepts.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    /// use tollgate_policy::redis::RedisStore;
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = RedisStore::without_server(Keys::new("api")?);
    /// let text = "[[rule]]\nname = 'login'\nkey = 'user'\nlimit = '5/min'\nstore = 'redis'\n\
    ///             fallback = 'closed'";
    /// let keys = store.stored_keys(&PolicyFile::from_toml(text)?, "login", &["alice"])?;
    /// assert_eq!(keys[0].key, "api:{sQBspkE8zIeukU9kOO1yEw}:login/0/token-bucket");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoredKeyError`] if there is no such rule on a store, if it needs other values, or if the
    /// policy can't be used.
    pub fn stored_keys(
        &self,
        file: &PolicyFile,
        rule: &str,
        values: &[&str],
    ) -> Result<Vec<StoredKey>, StoredKeyError> {
        let mut rules = file.rules.iter();
        let Some(rule) = rules.find(|known| known.name.value == rule) else {
            let known = file.rules.iter().map(|known| known.name.as_str());
            return Err(StoredKeyError::Key(KeyError::unknown_rule(rule, known)));
        };
        if rule.store.as_str() == MEMORY {
            let rule = rule.name.value.clone();
            return Err(StoredKeyError::InMemory { rule });
        }
        let key = bytes_of(rule, values).map_err(StoredKeyError::Key)?;
        let own = KeySpec::of(rule).override_of(rule, &key);
        let user = user(&key);
        let secret = file.resolve_key_secret();
        let secret = secret.map_err(StoredKeyError::Policy)?;
        let keys = self.keys_under(secret.as_ref());
        let keys = keys.map_err(|error| wrong("key-secret", error.to_string()))?;
        let limits = rule.limits.iter().enumerate();
        let limits = limits.map(|(index, text)| (index, None, text));
        let plans = rule.plan.iter().flat_map(|plan| &plan.limits);
        let plans = plans.map(|(plan, text)| (0, Some(plan), text));
        let texts = limits.chain(plans).map(|(index, plan, text)| {
            // An override takes the place of each rate, under all plans.
            match own.filter(|_| !is_concurrency(text)) {
                Some(own) => (index, None, &own.limit, true),
                None => (index, plan, text, false),
            }
        });
        // The others keep nothing on the server.
        let texts = texts.filter(|(_, _, text, _)| Fixed::of(text).is_none());
        let stored = texts.map(|(index, plan, text, is_override)| {
            let limit: Limit = text
                .parse()
                .map_err(|error| wrong("limit", format!("{error}")))?;
            let plan = plan.map(|plan: &At<String>| plan.value.clone());
            let algorithm = algorithm(&limit, is_override);
            let name = name(&rule.name, index, &algorithm, plan.as_deref());
            let key = String::from_utf8_lossy(&keys.key(&name, &user)).into_owned();
            let limit = text.value.clone();
            Ok(StoredKey { limit, plan, key })
        });
        let mut stored: Vec<_> = stored.collect::<Result<_, _>>()?;
        // The plans of a key with an override have one key together.
        stored.dedup();
        Ok(stored)
    }

    /// Returns the names of keys under the secret of a policy, if it has one.
    pub(super) fn keys_under(&self, secret: Option<&Secret>) -> Result<Keys, KeysError> {
        let keys = self.keys.clone();
        match secret {
            Some(secret) => keys.with_secret(secret.reveal()),
            None => Ok(keys),
        }
    }
}

fn wrong(field: &str, message: String) -> StoredKeyError {
    StoredKeyError::Policy(Problem::error(field, "", message).into())
}

/// Returns the name of a limit's algorithm. That of an override is the name of no other algorithm,
/// because a bucket that takes over the time of a slower one could deny for as long as that one.
pub(super) fn algorithm(limit: &Limit, is_override: bool) -> String {
    let written = limit.to_string();
    let name = written.split(' ').next().unwrap_or_default();
    let before = if is_override { "override/" } else { "" };
    format!("{before}{name}")
}

/// Returns the name of a limit on the server. Different limits have different names: only the last
/// part can have a slash.
pub(super) fn name(rule: &str, index: usize, algorithm: &str, plan: Option<&str>) -> String {
    let rule = rule.replace('%', "%25").replace('/', "%2F");
    match plan {
        Some(plan) => format!("{rule}/{index}/{algorithm}/{plan}"),
        None => format!("{rule}/{index}/{algorithm}"),
    }
}

/// Returns the user of a key on the server. A key that is one text is that text, as in programs
/// without a policy, and can be readable. Others begin with a byte that is not printable, so they
/// are different.
pub(super) fn user(key: &[u8]) -> Vec<u8> {
    let text = key.strip_prefix(&[1]);
    let text = text.filter(|text| text.first().is_some_and(u8::is_ascii_graphic));
    text.unwrap_or(key).to_vec()
}
