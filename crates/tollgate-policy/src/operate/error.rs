//! Why a key of a rule can't be found, or changed.

use std::error::Error;
use std::fmt;

use crate::parse::known_names;
use crate::problem::quoted;

/// The reason why a key of a rule can't be found, asked or changed: see
/// [`Policy::key`](crate::Policy::key).
///
/// ```
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml("[[rule]]\nname = 'login'\nkey = 'client-ip'\nlimit = '5/min'")?;
/// let error = policy.key("logn", ["10.0.0.7"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "rule \"logn\" is not in the policy; did you mean `login`? Known: login"
/// );
/// let error = policy.key("login", ["localhost"]).unwrap_err();
/// assert_eq!(error.to_string(), "client-ip is \"localhost\", but must be an address");
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The policy has no such rule.
    UnknownRule {
        /// The name.
        rule: String,
        /// The names of the policy's rules.
        known: Vec<String>,
    },
    /// There must be one value for each part of the rule's key.
    Values {
        /// The name of the rule.
        rule: String,
        /// The parts of its key. Empty if the rule has no key.
        parts: Vec<String>,
        /// How many values there are.
        given: usize,
    },
    /// The part of a key must be an address.
    Address {
        /// The part.
        part: String,
        /// The value.
        value: String,
    },
    /// The rule has no key, so it has none to ban.
    NoKey {
        /// The name of the rule.
        rule: String,
    },
    /// No limit of the rule has this verb: it is a concurrency, the program registered it, or its
    /// store can't do it.
    Unable {
        /// The name of the rule.
        rule: String,
        /// The verb, such as `reset`.
        verb: &'static str,
    },
    /// The table has no slot for the ban.
    NoRoom {
        /// The name of the rule.
        rule: String,
    },
    /// The rule is on a store that is asked asynchronously: call the form of the verb that ends in
    /// `_async`.
    Asynchronous {
        /// The name of the rule.
        rule: String,
    },
    /// The store of the rule did not do it, or does not say that it did.
    Store {
        /// The name of the rule.
        rule: String,
        /// What the store says.
        why: String,
    },
}

impl KeyError {
    pub(crate) fn unknown_rule<'n>(rule: &str, known: impl Iterator<Item = &'n str>) -> Self {
        Self::UnknownRule {
            rule: rule.to_owned(),
            known: known.map(str::to_owned).collect(),
        }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownRule { rule, known } => {
                let known = known_names(rule, known.iter().map(String::as_str));
                write!(f, "rule {} is not in the policy{known}", quoted(rule))
            }
            Self::Values { rule, parts, given } => {
                let parts = match parts.len() {
                    0 => "no value: it has no key".to_owned(),
                    1 => format!("one value: {}", parts.join(", ")),
                    n => format!("{n} values: {}", parts.join(", ")),
                };
                let rule = quoted(rule);
                write!(f, "rule {rule} needs {parts}; the number given is {given}")
            }
            Self::Address { part, value } => {
                write!(f, "{part} is {}, but must be an address", quoted(value))
            }
            Self::NoKey { rule } => write!(f, "rule {} has no key to ban", quoted(rule)),
            Self::Unable { rule, verb } => {
                write!(f, "no limit of rule {} has `{verb}`", quoted(rule))
            }
            Self::NoRoom { rule } => {
                let rule = quoted(rule);
                write!(f, "the table of rule {rule} has no slot for the ban")
            }
            Self::Asynchronous { rule } => {
                let rule = quoted(rule);
                write!(
                    f,
                    "rule {rule} is on a store that is asked asynchronously: use the form that \
                     ends in `_async`"
                )
            }
            Self::Store { rule, why } => write!(f, "the store of rule {}: {why}", quoted(rule)),
        }
    }
}

impl Error for KeyError {}
