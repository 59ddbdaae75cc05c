//! The hash by which users are written in keys.
//!
//! Base64url has 22 characters for 128 bits, and hex digits would be 32. On Valkey a stored key is
//! 16 bytes smaller so, and operators need not compute hashes: `tollgate key` prints keys.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Characters of a hash.
const LENGTH: usize = 22;

/// The digits of base64url.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// HMAC-SHA-256 under a key, whose blocks are hashed once. It does not show the key.
#[derive(Clone)]
pub(crate) struct UserHash(Arc<Hmac<Sha256>>);

impl UserHash {
    /// Returns the hash of a namespace, which has at most 64 bytes and no zero byte, and a secret.
    /// The secret may be empty.
    ///
    /// Different namespaces and secrets have different keys. If the secret were the key itself, one
    /// that ends with a zero byte would be the same as one without, and a user would have the same
    /// hash in all namespaces.
    pub(crate) fn new(namespace: &str, secret: &[u8]) -> Self {
        let mut extract = under(namespace.as_bytes());
        extract.update(secret);
        Self(Arc::new(under(&extract.finalize().into_bytes())))
    }

    /// Returns the hash as it is written.
    pub(crate) fn text(&self, user: &[u8]) -> [u8; LENGTH] {
        let mut hash = Hmac::clone(&self.0);
        hash.update(user);
        let bytes = hash.finalize().into_bytes();
        let bits = bytes.iter().take(16);
        let bits = bits.fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
        std::array::from_fn(|place| {
            let bits = match place {
                // The last digit has the last two bits and four zeros.
                21 => bits << 4,
                _ => bits >> (122 - 6 * place),
            };
            DIGITS[(bits & 63) as usize]
        })
    }
}

/// Returns the hash under a key of at most 64 bytes, which is filled up with zeros.
fn under(key: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    Hmac::new(&block.into())
}

impl fmt::Debug for UserHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// Two values are equal if they hash a user alike.
impl PartialEq for UserHash {
    fn eq(&self, other: &Self) -> bool {
        self.text(b"") == other.text(b"")
    }
}

impl Eq for UserHash {}
