//! Secrets, hidden from `Debug`.

use std::env::{self, VarError};
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

/// Where a secret of a file comes from. `Debug` does not show the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The file has the secret itself. A policy that is written out contains it too.
    Text(Secret),
    /// The environment variable of this name has it.
    Env(String),
}

impl SecretSource {
    /// Returns the secret, if `check` accepts it. A variable of the environment is read now.
    ///
    /// # Errors
    ///
    /// The message, without the secret.
    pub(crate) fn resolve(
        &self,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<Secret, String> {
        let (secret, of) = match self {
            Self::Text(secret) => (Ok(secret.clone()), String::new()),
            Self::Env(name) => {
                let value = env::var(name).map(Secret::new);
                (value, format!(" in the environment variable {name}"))
            }
        };
        match secret {
            Ok(secret) => match check(secret.reveal()) {
                Ok(()) => Ok(secret),
                Err(message) => Err(message + &of),
            },
            Err(VarError::NotPresent) => Err(format!("needs a value{of}, which is not set")),
            Err(VarError::NotUnicode(_)) => Err(format!("must be text{of}")),
        }
    }
}
