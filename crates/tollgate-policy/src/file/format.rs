//! The languages of policies.

use std::path::Path;

/// The language of a policy's text.
///
/// ```
/// use tollgate_policy::file::Format;
///
/// assert_eq!(Format::of_path("limits.YML".as_ref()), Format::Yaml);
/// assert_eq!(Format::of_path("limits.conf".as_ref()), Format::Toml);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// TOML.
    #[default]
    Toml,
    /// JSON.
    Json,
    /// YAML 1.2. It needs the feature `yaml`: without it, such a text is an error.
    Yaml,
}

impl Format {
    /// Returns the format that the end of a file's name says: `.json`, `.yaml` or `.yml`, in upper
    /// or lower case. Any other file is TOML.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        let end = path.extension().unwrap_or_default().to_ascii_lowercase();
        match end.to_str() {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Toml,
        }
    }
}
