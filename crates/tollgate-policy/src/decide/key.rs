//! The key of a request, read from its bytes.

use std::fmt;

use super::asks::Ask;
use crate::file::Rule;
use crate::rule::{CompiledRule, key_values};

/// The key that a request has in a rule: see [`Asked::key`](crate::Asked::key).
///
/// ```
/// use tollgate_policy::Policy;
///
/// let text = "[[rule]]\nname = 'api'\nkey = ['client-ip', 'user']\nlimit = '5/h'\n\
///             network = { v4 = 24 }";
/// let policy = Policy::from_toml(text)?;
/// let decision = policy.decide(&[("client-ip", "10.0.0.7"), ("user", "ann")]);
/// let key = decision.tightest().and_then(|asked| asked.key()).expect("it has a key");
/// let values = key.values();
/// assert_eq!(values, ["10.0.0.0/24", "ann"]);
/// // They are what operators call the key by.
/// let key = policy.key("api", values.iter().map(String::as_str))?;
/// assert_eq!(key.available()?[0].permits, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestKey<'d> {
    rule: &'d Rule,
    bytes: &'d [u8],
    hash: u64,
}

impl<'d> RequestKey<'d> {
    pub(crate) fn of<C>(rule: &'d CompiledRule<C>, ask: &Ask, keys: &'d [u8]) -> Option<Self> {
        let (start, end) = ask.key;
        let bytes = keys.get(start..end).filter(|bytes| !bytes.is_empty())?;
        Some(Self {
            rule: &rule.source,
            bytes,
            hash: ask.hash,
        })
    }

    /// Returns the hash by which the policy knows the key. It depends on a secret seed, which stays
    /// as it is when the policy is reloaded.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns a value for each part of the rule's key, as [`Policy::key`](crate::Policy::key) takes
    /// them: a network if the rule cuts addresses. A part that the request lacks is an empty text.
    #[must_use]
    pub fn values(&self) -> Vec<String> {
        key_values(self.rule, self.bytes)
    }
}

/// A client's values are not for logs.
impl fmt::Debug for RequestKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestKey").finish_non_exhaustive()
    }
}
