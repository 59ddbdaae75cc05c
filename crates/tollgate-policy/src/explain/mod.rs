//! Explains what a policy does with a request: which rules apply and why the others do not.
//!
//! ```
//! use tollgate_policy::explain;
//! use tollgate_policy::file::PolicyFile;
//!
//! let file = PolicyFile::from_toml(
//!     r#"
//!     [[rule]]
//!     name  = "login"
//!     when  = { method = "POST" }
//!     key   = "client-ip"
//!     limit = "5/min"
//!
//!     [[rule]]
//!     name  = "all"
//!     limit = "100/s"
//!     "#,
//! )?;
//! let facts = [("method", "GET"), ("client-ip", "10.0.0.7")];
//! assert_eq!(
//!     explain(&file, &facts).to_string(),
//!     "asks all\n\
//!      login: does not apply: method is GET, not POST\n\
//!      all: applies: it has no conditions; key: none; limit: 100/s; cost: 1"
//! );
//! # Ok::<(), tollgate_policy::Problems>(())
//! ```

mod asks;
mod cells;
mod display;
mod key;
mod rules;

use serde::Serialize;

use crate::facts::Facts;
use crate::file::PolicyFile;

/// What a policy does with a request, apart from how much of each limit is left.
///
/// It prints a line for the whole, and a line for each rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// What the policy does, in a few words.
    pub summary: String,
    /// The entry of a list that decides. If there is one, no rule is asked, and `rules` is empty.
    pub entry: Option<Listed>,
    /// All rules, in the order of the file.
    pub rules: Vec<Explained>,
}

/// An entry of the lists `deny` and `allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// The list.
    pub list: List,
    /// The name of the entry.
    pub name: String,
    /// The number by which the program's protocol answers, if the entry denies and says one.
    pub status: Option<u16>,
}

/// A list of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// Requests that are denied.
    Deny,
    /// Requests that no rule limits.
    Allow,
}

/// What a rule does with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The name of the rule.
    pub name: String,
    /// Whether it applies.
    pub applies: Applied,
    /// Why it applies or does not, as in `method is GET, not POST`.
    pub why: String,
    /// What it asks, if it applies.
    pub asks: Option<Asks>,
}

/// Whether a rule applies to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Applied {
    /// The rule applies, and can deny the request.
    Yes,
    /// The rule applies, but only reports what it would decide.
    Shadow,
    /// It does not apply.
    No,
}

/// What a rule asks of its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Asks {
    /// The parts of the key. If there are none, all requests share one limit.
    pub key: Vec<KeyPart>,
    /// The limits. They are empty if the rule denies the request whatever is left.
    pub limits: Vec<String>,
    /// The plan, if the rule has plans and no override matches.
    pub plan: Option<Plan>,
    /// Whether an override for this key replaces the limits of the rule.
    #[serde(rename = "override")]
    pub is_override: bool,
    /// How many permits the request takes.
    pub cost: Cost,
    /// The name of the store.
    pub store: String,
    /// Why the rule denies the request whatever is left, if it does.
    pub denies: Option<String>,
    /// The number by which the program's protocol answers a denial, if the rule says one.
    pub status: Option<u16>,
}

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyPart {
    /// The name of the fact or resolver.
    pub name: String,
    /// Its value, as the key has it: a network if the rule cuts addresses. `None` if it is missing
    /// or ambiguous.
    pub value: Option<String>,
    /// Its values, if the request has several and the rule does not say which one counts, or if
    /// there are more than are read.
    pub ambiguous: Option<String>,
}

/// A plan, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The name of the plan.
    pub name: String,
    /// Why it was chosen, as in `tier is absent, so the default`.
    pub why: String,
}

/// A cost, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// The number of permits.
    pub permits: u64,
    /// The fact that it depends on, as in `header:x-weight is 3`. `None` if it is fixed.
    pub why: Option<String>,
    /// The fact of the answer that says the actual cost.
    pub settle: Option<String>,
}

/// Explains what a policy does with a request.
///
/// Resolvers and lookups that a program registers are not called: supply what they return as facts.
/// The [module](mod@crate::explain) has an example.
#[must_use]
pub fn explain(file: &PolicyFile, facts: &(impl Facts + ?Sized)) -> Explanation {
    let (entry, rules) = rules::explain(file, facts);
    Explanation {
        summary: display::summary(entry.as_ref(), &rules),
        entry,
        rules,
    }
}
