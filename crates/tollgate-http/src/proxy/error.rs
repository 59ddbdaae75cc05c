//! What is wrong with a header.

use std::error::Error;
use std::fmt;

use super::MAX_LEN;

/// The bytes at the start of a connection are no header of the PROXY protocol, version 2.
///
/// It names the field, its value and what is allowed.
///
/// ```
/// use tollgate_http::proxy;
///
/// let error = proxy::read(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x04").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "PROXY header: a length of 4 bytes is too short; the addresses have 12"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyError {
    /// The bytes do not begin with the signature of the protocol. Perhaps a client connected
    /// without a proxy.
    Signature,
    /// The proxy sends version 1, a line of text.
    Version1,
    /// The version is not 2.
    Version(u8),
    /// The command is neither 0 (local) nor 1 (proxy).
    Command(u8),
    /// The family of the addresses is above 3.
    Family(u8),
    /// The transport is above 2.
    Transport(u8),
    /// What follows is too short for the addresses.
    TooShort {
        /// The length in the header.
        length: u16,
        /// How long the addresses are.
        shortest: usize,
    },
    /// With this length, the header is longer than [`MAX_LEN`].
    TooLong(u16),
    /// The addition (TLV) of this type ends beyond the header, or it is a second checksum or one
    /// that has not 4 bytes.
    Addition(u8),
    /// The header was changed on its way.
    Checksum {
        /// The checksum in the header.
        found: u32,
        /// The one that its bytes have.
        expected: u32,
    },
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PROXY header: ")?;
        match self {
            Self::Signature => f.write_str("the connection does not begin with its signature"),
            Self::Version1 => {
                f.write_str("version 1 is not supported; let the proxy send version 2")
            }
            Self::Version(version) => write!(f, "version {version} is unknown; must be 2"),
            Self::Command(command) => {
                write!(
                    f,
                    "command {command} is unknown; must be 0 (local) or 1 (proxy)"
                )
            }
            Self::Family(family) => write!(f, "address family {family} is unknown; must be 0 to 3"),
            Self::Transport(transport) => {
                write!(f, "transport {transport} is unknown; must be 0 to 2")
            }
            Self::TooShort { length, shortest } => write!(
                f,
                "a length of {length} bytes is too short; the addresses have {shortest}"
            ),
            Self::TooLong(length) => write!(
                f,
                "a length of {length} bytes is too long; the whole header can have {MAX_LEN} bytes"
            ),
            Self::Addition(kind) => write!(f, "the TLV of type {kind:#04x} is malformed"),
            Self::Checksum { found, expected } => write!(
                f,
                "the checksum is {found:#010x}; the bytes have {expected:#010x}"
            ),
        }
    }
}

impl Error for ProxyError {}
