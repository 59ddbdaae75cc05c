//! The client's address, also behind proxies.

mod canonical;
mod entries;
mod error;
mod forwarded;
mod networks;
mod node;
mod prefix;

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{FORWARDED, HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::proxy::ProxyHeader;
pub(crate) use canonical::canonical;
use entries::Entries;
use networks::Networks;

pub use error::AddressError;
pub use prefix::AddressPrefix;

/// At most this many entries of a header are looked at.
const MAX_ENTRIES: usize = 64;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How the client's address is found: the peer's, or what trusted proxies say.
///
/// The default is the peer's address, and no header is read.
///
/// ```
/// use std::net::IpAddr;
/// use http::HeaderMap;
/// use tollgate_http::ClientAddress;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let addresses = ClientAddress::peer().trust("10.0.0.0/8")?.x_forwarded_for();
///
/// let mut headers = HeaderMap::new();
/// // The client sent the first entry. The proxy 10.0.0.2 appended the address of its peer.
/// headers.insert("x-forwarded-for", "1.1.1.1, 203.0.113.9".parse()?);
///
/// let from_proxy = addresses.of([10, 0, 0, 2].into(), &headers);
/// assert_eq!(from_proxy, "203.0.113.9".parse::<IpAddr>()?);
/// // This peer is not trusted, so its header is not read.
/// let from_client = addresses.of([198, 51, 100, 4].into(), &headers);
/// assert_eq!(from_client, "198.51.100.4".parse::<IpAddr>()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ClientAddress {
    source: Source,
    /// The networks of trusted proxies.
    networks: Option<Arc<Networks>>,
    /// How many proxies there are.
    hops: Option<u8>,
}

/// Where trusted proxies write the address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Source {
    /// Nowhere.
    #[default]
    Peer,
    XForwardedFor,
    Forwarded,
    /// In a header with one address.
    Single(HeaderName),
}

impl ClientAddress {
    /// The peer's address. No header is read.
    pub const fn peer() -> Self {
        Self {
            source: Source::Peer,
            networks: None,
            hops: None,
        }
    }

    /// Trusts the proxies of a network such as `10.0.0.0/8`, or one with an address.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither, or if its address has bits beyond the network.
    pub fn trust(self, network: &str) -> Result<Self, AddressError> {
        Ok(self.trust_networks([networks::parse(network)?]))
    }

    /// Trusts the proxies of these networks, in addition to earlier ones.
    pub fn trust_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        let mut all = self.networks.map(Arc::unwrap_or_clone).unwrap_or_default();
        all.add(networks);
        self.networks = Some(Arc::new(all));
        self
    }

    /// Trusts exactly so many proxies in front of this server, whatever their addresses are.
    pub const fn trusted_hops(mut self, hops: u8) -> Self {
        self.hops = Some(hops);
        self
    }

    /// Reads `X-Forwarded-For` from trusted proxies.
    pub fn x_forwarded_for(mut self) -> Self {
        self.source = Source::XForwardedFor;
        self
    }

    /// Reads `Forwarded` (RFC 7239) from trusted proxies.
    pub fn forwarded(mut self) -> Self {
        self.source = Source::Forwarded;
        self
    }

    /// Reads `X-Real-IP` from trusted proxies.
    pub fn x_real_ip(self) -> Self {
        self.header(HeaderName::from_static("x-real-ip"))
    }

    /// Reads a header with one address from trusted proxies, such as `CF-Connecting-IP`.
    pub fn header(mut self, name: HeaderName) -> Self {
        self.source = Source::Single(name);
        self
    }

    /// Whether the peer of a connection is a trusted proxy.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusts_hop(canonical(peer), 0)
    }

    /// Returns the client's address. It does not allocate.
    #[must_use]
    #[inline]
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = canonical(peer);
        match &self.source {
            Source::Peer => peer,
            source => canonical(self.of_header(source, peer, headers)),
        }
    }

    /// Returns the address that trusted proxies wrote.
    fn of_header(&self, source: &Source, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        match source {
            Source::Peer => peer,
            Source::XForwardedFor => {
                let lines = headers.get_all(&X_FORWARDED_FOR).iter();
                let entries = Entries::new(lines, entries::last_comma);
                self.walk(peer, entries.map(|entry| node::parse(entry?)))
            }
            Source::Forwarded => {
                let lines = headers.get_all(FORWARDED).iter();
                let entries = Entries::new(lines, forwarded::last_comma);
                self.walk(peer, entries.map(|entry| forwarded::parse(entry?)))
            }
            Source::Single(name) => {
                let mut lines = headers.get_all(name).iter();
                match (lines.next(), lines.next()) {
                    (Some(line), None) if self.trusts_hop(peer, 0) => {
                        node::parse(line.as_bytes()).unwrap_or(peer)
                    }
                    _ => peer,
                }
            }
        }
    }

    /// Returns the address that a header of the PROXY protocol says, if the peer is trusted.
    #[must_use]
    pub fn proxied(&self, peer: IpAddr, header: &ProxyHeader) -> IpAddr {
        let peer = canonical(peer);
        match header.source() {
            Some(source) if self.trusts_hop(peer, 0) => source.ip().to_canonical(),
            _ => peer,
        }
    }

    /// Goes from proxy to proxy. `entries` are the addresses that they wrote, from the last one to
    /// the first, and `None` where it is none.
    fn walk(&self, peer: IpAddr, entries: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut entries = entries.take(MAX_ENTRIES);
        let mut client = peer;
        for hop in 0..=u8::MAX {
            if !self.trusts_hop(client, hop) {
                break;
            }
            let Some(Some(address)) = entries.next() else {
                break;
            };
            client = address;
        }
        client
    }

    /// Whether a canonical address is that of a trusted proxy, of which `hop` come after it.
    fn trusts_hop(&self, address: IpAddr, hop: u8) -> bool {
        let by_networks = self.networks.as_ref().map(|all| all.contains(address));
        let by_hops = self.hops.map(|hops| hop < hops);
        match (by_networks, by_hops) {
            (None, None) => false,
            (networks, hops) => networks.unwrap_or(true) && hops.unwrap_or(true),
        }
    }
}
