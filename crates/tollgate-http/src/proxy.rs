//! The PROXY protocol, version 2.

use std::net::SocketAddr;

/// A header of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    source: Option<SocketAddr>,
}

impl ProxyHeader {
    /// Returns the address of the client.
    #[must_use]
    pub const fn source(&self) -> Option<SocketAddr> {
        self.source
    }
}
