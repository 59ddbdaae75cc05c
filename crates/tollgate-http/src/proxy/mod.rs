//! The PROXY protocol, version 2: what a proxy says of a connection before its first byte.
//!
//! A proxy that forwards connections, such as HAProxy in TCP mode or a network load balancer, can't
//! write headers of HTTP. It sends one binary header at the start of each connection instead. An
//! accept loop reads the header, and hands the rest of the connection to the HTTP server:
//!
//! ```
//! use std::io::{self, Read};
//! use std::net::IpAddr;
//! use tollgate_http::ClientAddress;
//! use tollgate_http::proxy::{self, Progress, ProxyHeader};
//!
//! /// Reads the header, and not a byte after it. Call it with a timeout of a few seconds.
//! fn read_header(stream: &mut impl Read) -> io::Result<ProxyHeader> {
//!     let mut bytes = Vec::new();
//!     loop {
//!         match proxy::read(&bytes).map_err(io::Error::other)? {
//!             Progress::Done(header) => return Ok(header),
//!             Progress::Needs(more) => {
//!                 let len = bytes.len();
//!                 bytes.resize(len + more, 0);
//!                 stream.read_exact(&mut bytes[len..])?;
//!             }
//!         }
//!     }
//! }
//!
//! /// Returns the client's address, which is then the peer of each request of the connection.
//! fn accept(
//!     stream: &mut impl Read,
//!     peer: IpAddr,
//!     addresses: &ClientAddress,
//! ) -> io::Result<IpAddr> {
//!     // Trusted proxies always send a header. Other peers send none, and would be refused here
//!     // if they sent one, since it is no request.
//!     if !addresses.trusts(peer) {
//!         return Ok(peer);
//!     }
//!     Ok(addresses.proxied(peer, &read_header(stream)?))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let addresses = ClientAddress::peer().trust("10.0.0.0/8")?;
//! let sent = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x07\x0a\0\0\x01\xa0\0\x01\xbbGET / ";
//! let mut stream = &sent[..];
//! let client = accept(&mut stream, "10.0.0.2".parse()?, &addresses)?;
//! assert_eq!(client, "198.51.100.7".parse::<IpAddr>()?);
//! assert_eq!(stream, b"GET / ");
//! # Ok(())
//! # }
//! ```
//!
//! Version 1, a line of text, is refused: its length is not known before its end, so reading it can
//! take bytes of the request.

mod checksum;
mod error;
mod kind;

use std::net::SocketAddr;

use kind::Kind;

pub use error::ProxyError;

/// The longest header that is accepted, in bytes.
///
/// The protocol allows 65551 bytes. Proxies send less than 300, or some thousands if they add a
/// client's certificate.
pub const MAX_LEN: usize = START + 4096;

/// The length of what comes before addresses.
const START: usize = 16;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of the PROXY protocol, version 2.
///
/// The proxy chose what it says. Use [`ClientAddress::proxied`](crate::ClientAddress::proxied),
/// which uses it from trusted peers only.
///
/// ```
/// use tollgate_http::proxy::{self, Progress};
///
/// // A health check of the proxy itself.
/// let header = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
/// let Progress::Done(header) = proxy::read(header)? else { unreachable!() };
/// assert!(header.is_local());
/// assert_eq!(header.source(), None);
/// assert_eq!(header.header_len(), 16);
/// # Ok::<(), tollgate_http::proxy::ProxyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    is_local: bool,
    addresses: Option<(SocketAddr, SocketAddr)>,
    len: usize,
}

impl ProxyHeader {
    /// Returns whether the proxy opened the connection for itself, such as for a health check.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns the address of the client, as the proxy saw it. `None` if the proxy opened the
    /// connection for itself, if the client came over a Unix socket, or if the proxy does not say.
    #[must_use]
    pub fn source(&self) -> Option<SocketAddr> {
        self.addresses.map(|(source, _)| source)
    }

    /// Returns the address that the client connected to. It is there if
    /// [`source`](Self::source) is.
    #[must_use]
    pub fn destination(&self) -> Option<SocketAddr> {
        self.addresses.map(|(_, destination)| destination)
    }

    /// Returns how many bytes the header has. The bytes after it belong to the connection.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.len
    }
}

/// What [`read`] knows so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The header is complete.
    Done(ProxyHeader),
    /// The header has at least this many more bytes. All of them belong to the header.
    Needs(usize),
}

/// Reads a header from the bytes at the start of a connection.
///
/// If the bytes are not enough, read as many more as [`Progress::Needs`] says, and call it again
/// with all of them. It asks for at most [`MAX_LEN`] bytes, in two steps.
///
/// A checksum is verified if there is one. Other additions (TLVs) are skipped, but each must be
/// whole. If the header has no addresses, whatever follows is skipped.
///
/// ```
/// use tollgate_http::proxy::{self, Progress, ProxyError};
///
/// assert_eq!(proxy::read(b"\r\n\r\n"), Ok(Progress::Needs(12)));
/// assert_eq!(proxy::read(b"GET / HTTP/1.1"), Err(ProxyError::Signature));
/// assert_eq!(proxy::read(b"PROXY TCP4 192."), Err(ProxyError::Version1));
/// ```
///
/// # Errors
///
/// Returns an error if the bytes are not the start of a header, or if the header is malformed or
/// longer than [`MAX_LEN`]. Close the connection then.
pub fn read(bytes: &[u8]) -> Result<Progress, ProxyError> {
    let Some((start, rest)) = bytes.split_first_chunk::<START>() else {
        return unfinished(bytes);
    };
    let [signature @ .., version, family, high, low] = start;
    if signature != SIGNATURE {
        return Err(not_version_2(bytes));
    }
    let kind = Kind::read(*version, *family)?;
    let length = u16::from_be_bytes([*high, *low]);
    let len = START.saturating_add(length.into());
    if len > MAX_LEN {
        return Err(ProxyError::TooLong(length));
    }
    let shortest = kind.addresses_len();
    if usize::from(length) < shortest {
        return Err(ProxyError::TooShort { length, shortest });
    }
    let Some(payload) = rest.get(..length.into()) else {
        return Ok(Progress::Needs(len.saturating_sub(bytes.len())));
    };
    let Some((addresses, additions)) = payload.split_at_checked(shortest) else {
        return Err(ProxyError::TooShort { length, shortest });
    };
    if kind.has_additions() {
        checksum::verify(start, addresses, additions)?;
    }
    Ok(Progress::Done(ProxyHeader {
        is_local: matches!(kind, Kind::Local),
        addresses: kind.read_addresses(addresses),
        len,
    }))
}

/// Whether bytes that are too few can be the start of a header.
fn unfinished(bytes: &[u8]) -> Result<Progress, ProxyError> {
    let (found, _) = bytes
        .split_at_checked(SIGNATURE.len())
        .unwrap_or((bytes, &[]));
    if SIGNATURE.starts_with(found) {
        return Ok(Progress::Needs(START.saturating_sub(bytes.len())));
    }
    Err(not_version_2(bytes))
}

fn not_version_2(bytes: &[u8]) -> ProxyError {
    if bytes.starts_with(b"PROXY ") {
        ProxyError::Version1
    } else {
        ProxyError::Signature
    }
}
