//! The secret by which stores hide keys, from the file or from the environment.

use crate::file::PolicyFile;
use crate::file::secret::Secret;
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
        let check = |secret: &str| match secret.len() >= MIN_BYTES {
            true => Ok(()),
            false => Err(format!("must have at least {MIN_BYTES} bytes")),
        };
        let message = match written.resolve(check) {
            Ok(secret) => return Ok(Some(secret)),
            Err(message) => message,
        };
        let problem = Problem::error("key-secret", "", message);
        Err(problem.at(written.position).into())
    }
}
