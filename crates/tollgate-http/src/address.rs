//! The client's address, also behind proxies.

use std::net::IpAddr;

use http::HeaderMap;

/// How the client's address is found: the peer's, or what a trusted proxy says.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ClientAddress {}

impl ClientAddress {
    /// Returns the client's address.
    #[must_use]
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        todo!()
    }
}

/// How many bits of an address count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct AddressPrefix {
    v4: u8,
    v6: u8,
}

impl AddressPrefix {
    /// Returns the network of an address.
    #[must_use]
    pub fn network(self, address: IpAddr) -> IpAddr {
        todo!()
    }
}
