//! The names of keys on the server.
//!
//! ```text
//! namespace:{tag}:limit:user        every key has the same tag
//! namespace:{user}:limit            each user is its own tag
//! ```
//!
//! The limit and the user are *parts*: any bytes. In a part, `{`, `}`, `:`, `%` and the space are
//! written as `%` and two uppercase hex digits, and other printable ASCII is written as it is. A
//! part that is not printable ASCII, or would be longer than [`MAX_PART`], becomes `%sha1-` and its
//! SHA-1. An empty part becomes `%empty`. Neither is an escape: `s` and `m` are no hex digits.
//!
//! So the first `{` and the first `}` are the tag's, and the fields can be told apart. The
//! namespace ends at the first `{`, and a written part is not empty and has no separator.

use std::error::Error;
use std::fmt;

/// The greatest length of a namespace and of a tag.
const MAX_NAME: usize = 64;

/// The greatest length of a part as it is written. A longer one is hashed.
const MAX_PART: usize = 128;

/// Names the keys of limits on the server.
///
/// Keys of different namespaces, tags, limits or users are different, whatever bytes they contain.
/// A key never leaves its namespace or its hash tag. Each begins with the namespace and `:{`, so in
/// an access control list, `~api:{*` stands for the keys of the namespace `api` and for no others.
///
/// In Redis Cluster, the hash tag decides the slot of a key. By default each user is its own tag:
/// users spread over all nodes, and all limits of one user are in one slot, so one call can decide
/// them. [`with_tag`](Self::with_tag) puts all keys in one slot.
///
/// ```
/// use tollgate_redis::Keys;
///
/// # fn main() -> Result<(), tollgate_redis::KeysError> {
/// let keys = Keys::new("api")?;
/// assert_eq!(keys.key("login", b"alice"), b"api:{alice}:login");
/// assert_eq!(keys.key("login", b"a:{b}"), b"api:{a%3A%7Bb%7D}:login");
/// # Ok(())
/// # }
/// ```
///
/// The limit and the user are escaped where they contain `{`, `}`, `:`, `%` or a space. If one is
/// not printable ASCII, or is longer than 128 bytes with its escapes, the key has its SHA-1
/// instead, as `sha1sum` prints it. Two inputs with the same SHA-1 share one limit. A caller can
/// make such a pair at great cost, but no way is known to find an input with the SHA-1 of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Keys {
    namespace: Box<str>,
    tag: Option<Box<str>>,
}

impl Keys {
    /// Names keys in a namespace. Each user is its own hash tag.
    ///
    /// # Errors
    ///
    /// The namespace must be 1 to 64 bytes of printable ASCII without spaces and braces.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// let error = Keys::new("api{1}").unwrap_err();
    /// assert_eq!(error.field(), "namespace");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "namespace has '{' at byte 3, but must be printable ASCII without spaces and braces",
    /// );
    /// ```
    pub fn new(namespace: &str) -> Result<Self, KeysError> {
        Ok(Self {
            namespace: name("namespace", namespace)?,
            tag: None,
        })
    }

    /// Gives all keys the same hash tag, so that one call can decide limits of different users.
    /// In a cluster all of them are then on one node.
    ///
    /// # Errors
    ///
    /// The tag must be 1 to 64 bytes of printable ASCII without spaces and braces.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?.with_tag("eu")?;
    /// assert_eq!(keys.key("login", b"alice"), b"api:{eu}:login:alice");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_tag(self, tag: &str) -> Result<Self, KeysError> {
        Ok(Self {
            tag: Some(name("tag", tag)?),
            ..self
        })
    }

    /// Returns the key of a user's limit. A limit that all users share has the empty user.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?;
    /// assert_eq!(keys.key("all requests", b""), b"api:{%empty}:all%20requests");
    /// assert_eq!(
    ///     keys.key("login", "jürgen".as_bytes()),
    ///     b"api:{%sha1-7c2336ed49150667a64ec6b1eb4932e3f2edcbfe}:login",
    /// );
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key(&self, limit: &str, user: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(MAX_PART);
        key.extend(self.namespace.bytes());
        key.extend(b":{");
        match &self.tag {
            Some(tag) => {
                key.extend(tag.bytes());
                key.extend(b"}:");
                write_part(&mut key, limit.as_bytes());
                key.push(b':');
                write_part(&mut key, user);
            }
            None => {
                write_part(&mut key, user);
                key.extend(b"}:");
                write_part(&mut key, limit.as_bytes());
            }
        }
        key
    }
}

/// Appends a part as it is written in a key: see the module's documentation.
fn write_part(key: &mut Vec<u8>, part: &[u8]) {
    if part.is_empty() {
        key.extend(b"%empty");
        return;
    }
    let start = key.len();
    for &byte in part {
        match byte {
            b'{' => key.extend(b"%7B"),
            b'}' => key.extend(b"%7D"),
            b':' => key.extend(b"%3A"),
            b'%' => key.extend(b"%25"),
            b' ' => key.extend(b"%20"),
            _ => key.push(byte),
        }
        if !(byte == b' ' || byte.is_ascii_graphic()) || key.len() - start > MAX_PART {
            key.truncate(start);
            key.extend(b"%sha1-");
            let hash = sha1_smol::Sha1::from(part).digest();
            key.extend(hash.to_string().bytes());
            return;
        }
    }
}

/// Checks a namespace or a tag.
fn name(field: &'static str, text: &str) -> Result<Box<str>, KeysError> {
    if text.is_empty() {
        return Err(KeysError::Empty { field });
    }
    if text.len() > MAX_NAME {
        let length = text.len();
        return Err(KeysError::TooLong { field, length });
    }
    let is_bad = |c: char| !c.is_ascii_graphic() || matches!(c, '{' | '}');
    match text.char_indices().find(|&(_, c)| is_bad(c)) {
        Some((at, found)) => Err(KeysError::BadCharacter { field, found, at }),
        None => Ok(text.into()),
    }
}

/// The reason why a namespace or a tag was not accepted.
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
}

impl KeysError {
    /// Returns the name of the field: `"namespace"` or `"tag"`.
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
        }
    }
}

impl Error for KeysError {}
