//! Reads a policy's file, and reports everything that is wrong with it.
//!
//! TOML, JSON, YAML, and what serde reads, become the same tree of values, which is then read by
//! hand: an error does not end the reading.

mod also;
mod client;
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
mod store;
mod table;
mod toml;
mod top;
mod tree;
mod when;
#[cfg(feature = "yaml")]
mod yaml;

pub(crate) use nearest::known_names;
pub(crate) use rule::{BAN_OF_ALL, BAN_WITHOUT_KEY, no_fallback};
pub(crate) use rule_fields::MAX_PLANS;
pub(crate) use store::{MEMORY, REDIS};

use crate::file::disk::MAX_BYTES;
use crate::file::{Format, PolicyFile};
use crate::problem::{Position, Problem, Problems};

/// The most characters that separate values. Each separator can cost 500 bytes of memory.
const MAX_SEPARATORS: usize = 4_000_000;

/// Reads a policy. Errors are reported, and wrong parts are left out of the policy.
pub(crate) fn read(text: &str, format: Format) -> (PolicyFile, Problems) {
    let parse = match format {
        Format::Toml => toml::parse,
        Format::Json => json::parse,
        #[cfg(feature = "yaml")]
        Format::Yaml => yaml::parse,
        #[cfg(not(feature = "yaml"))]
        Format::Yaml => no_yaml,
    };
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

#[cfg(not(feature = "yaml"))]
fn no_yaml(_: &str, problems: &mut Problems) -> Option<tree::Entries> {
    let message = "the policy is YAML, which needs the feature `yaml` of tollgate-policy";
    problems.push(Problem::error("", "", message).at(Position::new(1, 1)));
    None
}

/// Refuses a text with too many of the characters that separate values.
fn check_separators(text: &str, separators: &str) -> Result<(), Problem> {
    let is_separator = |byte: &u8| separators.as_bytes().contains(byte);
    let count = text.bytes().filter(is_separator).count();
    if count <= MAX_SEPARATORS {
        return Ok(());
    }
    let shown: Vec<_> = separators.escape_debug().map(String::from).collect();
    let message = format!(
        "the file has {count} of the characters `{}`, but may have at most {MAX_SEPARATORS}",
        shown.join(" ")
    );
    Err(Problem::error("", "", message).at(Position::new(1, 1)))
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
        Self::from_text(text, Format::Json)
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
        Self::from_text(text, Format::Toml)
    }

    /// Reads a policy from YAML 1.2, with the line and the column of each error. [The
    /// guide](crate::guide::policy#toml-yaml-and-json) says what is not read.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let text = "rule:\n  - name: login\n    key: client-ip\n    limit: 5/min\n";
    /// let file = PolicyFile::from_yaml(text)?;
    /// assert_eq!(file.rules[0].name.as_str(), "login");
    ///
    /// let problems = PolicyFile::from_yaml(&text.replace("5/min", "5")).unwrap_err();
    /// assert_eq!(
    ///     problems.to_string(),
    ///     "4:12: error: rule \"login\": limit is 5, but must be text such as \"5/min\", or a \
    ///      list of such texts"
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the file. If the text is not such YAML, the first error of its syntax.
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, Problems> {
        Self::from_text(text, Format::Yaml)
    }

    /// Reads a policy in a format.
    ///
    /// ```
    /// use tollgate_policy::file::{Format, PolicyFile};
    ///
    /// let format = Format::of_path("limits.json".as_ref());
    /// let file = PolicyFile::from_text("{ \"apply\": \"all\" }", format)?;
    /// assert_eq!(PolicyFile::from_toml("apply = 'all'"), Ok(file));
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the file, or only those of its syntax.
    pub fn from_text(text: &str, format: Format) -> Result<Self, Problems> {
        let (file, problems) = read(text, format);
        problems.or(file)
    }
}
