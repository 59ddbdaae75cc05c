//! The secret by which stores hide keys, from the file or from the environment.

use std::env::{self, VarError};

use crate::file::secret::Secret;
use crate::file::{KeySecret, PolicyFile};
use crate::problem::{Problem, Problems};

/// The least length of a secret, in bytes, as `tollgate-redis` has it.
const MIN_BYTES: usize = 16;

impl PolicyFile {
    /// Returns the secret of the file's keys, if it has one. A variable of the environment is read
    /// now.
    ///
    /// ```
    /// use tollgate_policy::file::PolicyFile;
    ///
    /// let file = PolicyFile::from_toml("key-secret = '0123456789abcdef'")?;
    /// assert_eq!(file.resolve_key_secret()?.unwrap().reveal(), "0123456789abcdef");
    ///
    /// let file = PolicyFile::from_toml("key-secret = { env = 'NOT_SET' }")?;
    /// assert_eq!(
    ///     file.resolve_key_secret().unwrap_err().to_string(),
    ///     "1:14: error: key-secret needs a value in the environment variable NOT_SET, which is \
    ///      not set"
    /// );
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    ///
    /// # Errors
    ///
    /// One error: the variable is not set or is not text, or the secret has fewer than 16 bytes.
    pub fn resolve_key_secret(&self) -> Result<Option<Secret>, Problems> {
        let Some(written) = &self.key_secret else {
            return Ok(None);
        };
        let (secret, of) = match &written.value {
            KeySecret::Text(secret) => (Ok(secret.clone()), String::new()),
            KeySecret::Env(name) => {
                let value = env::var(name).map(Secret::new);
                (value, format!(" in the environment variable {name}"))
            }
        };
        let message = match secret {
            Ok(secret) if secret.reveal().len() >= MIN_BYTES => return Ok(Some(secret)),
            Ok(_) => format!("must have at least {MIN_BYTES} bytes{of}"),
            Err(VarError::NotPresent) => format!("needs a value{of}, which is not set"),
            Err(VarError::NotUnicode(_)) => format!("must be text{of}"),
        };
        let problem = Problem::error("key-secret", "", message);
        Err(problem.at(written.position).into())
    }
}
