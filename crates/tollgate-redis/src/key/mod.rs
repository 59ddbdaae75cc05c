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
//! A user that is not empty is written as its [`UserHash`], unless users are readable.
//!
//! So the first `{` and the first `}` are the tag's, and the fields can be told apart. The
//! namespace ends at the first `{`, and a written part is not empty and has no separator.

pub(crate) mod error;
mod user_hash;

use crate::key::error::{KeysError, MAX_NAME, MIN_SECRET};
use crate::key::user_hash::UserHash;

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
/// assert_eq!(keys.key("login", b"alice"), b"api:{sQBspkE8zIeukU9kOO1yEw}:login");
/// # Ok(())
/// # }
/// ```
///
/// # Users are hashed
///
/// A user is often a session, a token or an address. So a key has the user's hash: the server does
/// not store the user, and shows it in no command, log, snapshot or error. The hash is
/// HMAC-SHA-256, cut to 128 bits, in base64url. Its key is the HMAC of the secret under the
/// namespace (the step *extract* of RFC 5869). All processes with the same namespace and the same
/// secret make the same keys.
///
/// - With a [secret](Self::with_secret), a user can't be found from its key without the secret.
/// - Without a secret, users are hidden from a glance, but not from guessing: whoever can read keys
///   can hash each address or name that may be in use, and compare.
///
/// [`with_readable_users`](Self::with_readable_users) turns this off. The user of a limit that all
/// users share is empty, and is written as `%empty`.
///
/// # Escapes
///
/// Limits, and readable users, are escaped where they contain `{`, `}`, `:`, `%` or a space. If one
/// is not printable ASCII, or is longer than 128 bytes with its escapes, the key has its SHA-1
/// instead, as `sha1sum` prints it. Two inputs with the same SHA-1 share one limit. A caller can
/// make such a pair at great cost, but no way is known to find an input with the SHA-1 of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    namespace: Box<str>,
    tag: Option<Box<str>>,
    users: Users,
}

/// How users are written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Users {
    Hashed(UserHash),
    HashedWithSecret(UserHash),
    Readable,
}

impl Keys {
    /// Names keys in a namespace. Each user is hashed without a secret, and is its own hash tag.
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
            users: Users::Hashed(UserHash::new(namespace, b"")),
        })
    }

    /// Hashes users with a secret, so that they can't be found by guessing. The secret is at least
    /// 16 random bytes, which all processes have in common. `openssl rand -hex 16` makes one.
    ///
    /// With another secret, limits start anew. Neither keys nor `Debug` show the secret.
    ///
    /// # Errors
    ///
    /// The secret must have at least 16 bytes.
    ///
    /// ```
    /// use tollgate_redis::{Keys, KeysError};
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?.with_secret("0123456789abcdef")?;
    /// assert_eq!(keys.key("login", b"alice"), b"api:{u2OwexZEtAw1ZM-jcu4n9g}:login");
    ///
    /// let error = keys.with_secret("0123").unwrap_err();
    /// assert_eq!(error, KeysError::ShortSecret { length: 4 });
    /// assert_eq!(error.to_string(), "secret has 4 bytes, but must have at least 16 bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_secret(self, secret: impl AsRef<[u8]>) -> Result<Self, KeysError> {
        let secret = secret.as_ref();
        if secret.len() < MIN_SECRET {
            let length = secret.len();
            return Err(KeysError::ShortSecret { length });
        }
        let hash = UserHash::new(&self.namespace, secret);
        Ok(Self {
            users: Users::HashedWithSecret(hash),
            ..self
        })
    }

    /// Writes users as they are, for limits whose users are no secret. The server, its logs and its
    /// errors show them. Of this method and [`with_secret`](Self::with_secret), the last call
    /// counts.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?.with_readable_users();
    /// assert_eq!(keys.key("login", b"alice"), b"api:{alice}:login");
    /// assert_eq!(keys.key("login", b"a:{b}"), b"api:{a%3A%7Bb%7D}:login");
    /// assert_eq!(
    ///     keys.key("login", "jürgen".as_bytes()),
    ///     b"api:{%sha1-7c2336ed49150667a64ec6b1eb4932e3f2edcbfe}:login",
    /// );
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_readable_users(self) -> Self {
        Self {
            users: Users::Readable,
            ..self
        }
    }

    /// Returns whether users are hashed with a secret.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?;
    /// assert!(!keys.has_secret());
    /// assert!(keys.with_secret("0123456789abcdef")?.has_secret());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn has_secret(&self) -> bool {
        matches!(self.users, Users::HashedWithSecret(_))
    }

    /// Returns whether users are written as they are.
    ///
    /// ```
    /// use tollgate_redis::Keys;
    ///
    /// # fn main() -> Result<(), tollgate_redis::KeysError> {
    /// let keys = Keys::new("api")?;
    /// assert!(!keys.has_readable_users());
    /// assert!(keys.with_readable_users().has_readable_users());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn has_readable_users(&self) -> bool {
        matches!(self.users, Users::Readable)
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
    /// assert_eq!(keys.key("login", b"alice"), b"api:{eu}:login:sQBspkE8zIeukU9kOO1yEw");
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
    /// assert_eq!(keys.key("login", b"alice"), b"api:{sQBspkE8zIeukU9kOO1yEw}:login");
    /// assert_eq!(keys.key("all requests", b""), b"api:{%empty}:all%20requests");
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
                self.write_user(&mut key, user);
            }
            None => {
                self.write_user(&mut key, user);
                key.extend(b"}:");
                write_part(&mut key, limit.as_bytes());
            }
        }
        key
    }

    fn write_user(&self, key: &mut Vec<u8>, user: &[u8]) {
        match &self.users {
            Users::Hashed(hash) | Users::HashedWithSecret(hash) if !user.is_empty() => {
                key.extend(hash.text(user));
            }
            _ => write_part(key, user),
        }
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
