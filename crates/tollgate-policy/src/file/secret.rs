//! Secrets, hidden from `Debug`.

use std::fmt;

/// A secret. `Debug` does not show it.
///
/// ```
/// use tollgate_policy::Secret;
///
/// let secret = Secret::new("0123456789abcdef");
/// assert_eq!(secret.reveal(), "0123456789abcdef");
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text. Do not log or print it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
