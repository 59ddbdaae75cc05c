//! Reads a policy's file, and reports everything that is wrong with it.
//!
//! TOML, and what serde reads, become the same tree of values, which is then read by hand: an error
//! does not end the reading.

mod also;
mod de;
mod fact;
mod failures;
mod field;
mod fields;
mod json;
mod lines;
mod listed;
pub(crate) mod nearest;
mod overrides;
mod pattern;
mod place;
mod rule;
mod rule_fields;
mod secret;
mod table;
mod toml;
mod top;
mod tree;
mod when;

pub(crate) use nearest::known_names;
pub(crate) use rule::{BAN_OF_ALL, BAN_WITHOUT_KEY, MEMORY, no_fallback};
pub(crate) use rule_fields::MAX_PLANS;

use crate::file::PolicyFile;
use crate::file::disk::MAX_BYTES;
use crate::problem::{Position, Problem, Problems};
use tree::Entries;

/// Reads a policy from TOML. Errors are reported, and wrong parts are left out of the policy.
pub(crate) fn read_toml(text: &str) -> (PolicyFile, Problems) {
    read(text, toml::parse)
}

/// Reads a policy from JSON, as [`read_toml`] does.
pub(crate) fn read_json(text: &str) -> (PolicyFile, Problems) {
    read(text, json::parse)
}

fn read(text: &str, parse: fn(&str, &mut Problems) -> Option<Entries>) -> (PolicyFile, Problems) {
    let size = text.len();
    if size > MAX_BYTES {
        let message = format!("the file has {size} bytes, but may have at most 16 MiB");
        let problem = Problem::error("", "", message).at(Position::new(1, 1));
        return (PolicyFile::default(), problem.into());
    }
    let mut problems = Problems::new();
    let file = parse(text, &mut problems).map(|entries| top::file(&entries, &mut problems));
    (file.unwrap_or_default(), problems)
}

impl PolicyFile {
    /// Reads a policy from JSON, with the line and the column of each error.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let text = "{ \"rule\": [\n  { \"name\": \"api\", \"limits\": \"5/s\" }\n] }";
    /// assert_eq!(
    ///     PolicyFile::from_json(text).unwrap_err().to_string().lines().next(),
    ///     Some("2:3: error: rule \"api\": limit is missing; write `limit` or `plan`")
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the file. If the text is not JSON, the first error of its syntax.
    pub fn from_json(text: &str) -> Result<Self, Problems> {
        let (file, problems) = read_json(text);
        problems.or(file)
    }

    /// Reads a policy from TOML.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let file = PolicyFile::from_toml(
    ///     r#"
    ///     [[rule]]
    ///     name  = "login"
    ///     when  = { method = "POST", path = "/login" }
    ///     key   = "client-ip"
    ///     limit = "5/min"
    ///     "#,
    /// )?;
    /// assert_eq!(file.rules[0].name.as_str(), "login");
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the file, or only the syntax error if the text is not TOML.
    pub fn from_toml(text: &str) -> Result<Self, Problems> {
        let (file, problems) = read_toml(text);
        problems.or(file)
    }
}
