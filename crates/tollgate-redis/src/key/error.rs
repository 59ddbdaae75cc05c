//! Why the names of keys can't be made.

use std::error::Error;
use std::fmt;

/// The greatest length of a namespace and of a tag. A namespace fits one block of the hash.
pub(crate) const MAX_NAME: usize = 64;

/// The least length of a secret: that of the hash.
pub(crate) const MIN_SECRET: usize = 16;

/// The reason why a namespace, a tag or a secret was not accepted.
///
/// ```
/// use tollgate_redis::{Keys, KeysError};
///
/// let error = Keys::new("").unwrap_err();
/// assert_eq!(error, KeysError::Empty { field: "namespace" });
/// assert_eq!(error.to_string(), "namespace is empty, but must have 1 to 64 bytes");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeysError {
    /// The field is empty.
    Empty {
        /// `"namespace"` or `"tag"`.
        field: &'static str,
    },
    /// The field has more than 64 bytes.
    TooLong {
        /// `"namespace"` or `"tag"`.
        field: &'static str,
        /// How many bytes it has.
        length: usize,
    },
    /// The field has a character that is a brace, a space or not printable ASCII.
    BadCharacter {
        /// `"namespace"` or `"tag"`.
        field: &'static str,
        /// The first such character.
        found: char,
        /// Where it begins, in bytes from the start.
        at: usize,
    },
    /// The secret has fewer than 16 bytes. The error does not show it.
    ShortSecret {
        /// How many bytes it has.
        length: usize,
    },
}

impl KeysError {
    /// Returns the name of the field: `"namespace"`, `"tag"` or `"secret"`.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// let error = Keys::new("api").and_then(|keys| keys.with_tag("a b")).unwrap_err();
    /// assert_eq!(error.field(), "tag");
    /// ```
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match *self {
            Self::Empty { field }
            | Self::TooLong { field, .. }
            | Self::BadCharacter { field, .. } => field,
            Self::ShortSecret { .. } => "secret",
        }
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty { field } => {
                write!(f, "{field} is empty, but must have 1 to {MAX_NAME} bytes")
            }
            Self::TooLong { field, length } => {
                write!(
                    f,
                    "{field} has {length} bytes, but must have 1 to {MAX_NAME} bytes"
                )
            }
            Self::BadCharacter { field, found, at } => write!(
                f,
                "{field} has {found:?} at byte {at}, but must be printable ASCII without spaces \
                 and braces"
            ),
            Self::ShortSecret { length } => write!(
                f,
                "secret has {length} bytes, but must have at least {MIN_SECRET} bytes"
            ),
        }
    }
}

impl Error for KeysError {}
