//! Which address is the client's.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{FORWARDED, HeaderMap, HeaderName};
use ipnet::IpNet;
use tollgate::address::canonical;

use super::entries::{self, Entries};
use super::error::AddressError;
use super::networks::{self, Networks};
use super::{forwarded, node};

/// At most this many entries of a header are looked at.
const MAX_ENTRIES: usize = 64;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How the client's address is found: the peer's, or what trusted proxies say.
///
/// The default is the peer's address: nothing is trusted, and no header is read. Behind a proxy,
/// say which proxies to trust, and which header they write:
///
/// ```
/// use std::net::IpAddr;
/// use http::HeaderMap;
/// use tollgate_http::ClientAddress;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let addresses = ClientAddress::peer().trust("10.0.0.0/28")?.x_forwarded_for();
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
///
/// # Which entry is the client
///
/// Each proxy appends the address of its peer. So the last entry is as true as the last proxy is
/// trusted, and the entry before it as true as that one. Entries are read from the last to the
/// first, over all lines of the header, for as long as the address is that of a trusted proxy. The
/// first address that is not a trusted proxy's is the client's.
///
/// - If the peer is not trusted, the client is the peer, whatever the headers say.
/// - If all entries are trusted, the client is the first one of the header.
/// - An entry that is no address ends the search: one that is malformed or empty, `unknown`, or a
///   name such as `_hidden`. The client is then the proxy that wrote it. All clients for which a
///   proxy writes such an entry are one client.
/// - At most 64 entries are looked at, and each has at most 1024 bytes. So a long header costs no
///   more than a short one. Nothing is allocated.
/// - `::ffff:192.0.2.7` and `64:ff9b::192.0.2.7` are `192.0.2.7`, as a peer, in an entry and in a
///   network: see [`canonical`].
///
/// # Settings for proxies
///
/// [The guide][proxies] has the settings of nginx, HAProxy, Envoy and others, there and here. It
/// explains the PROXY protocol, and what goes wrong if too much is trusted: clients choose their
/// address.
///
/// [proxies]: https://docs.rs/tollgate-tower/latest/tollgate_tower/guide/http/index.html#behind-a-proxy
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ClientAddress {
    source: Source,
    /// The networks of trusted proxies.
    networks: Option<Arc<Networks>>,
    /// How many proxies are trusted.
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
    /// The peer's address. No header is read. This is the default.
    pub const fn peer() -> Self {
        Self {
            source: Source::Peer,
            networks: None,
            hops: None,
        }
    }

    /// Trusts the proxies in a network such as `10.0.0.0/28`, or one proxy by its address.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither, or if its address has bits beyond the network.
    pub fn trust(self, network: &str) -> Result<Self, AddressError> {
        Ok(self.trust_networks([networks::parse(network)?]))
    }

    /// Trusts the proxies in these networks, in addition to earlier ones.
    ///
    /// The number of networks makes little difference to the time that [`of`](Self::of) takes.
    pub fn trust_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        let mut all = self.networks.map(Arc::unwrap_or_clone).unwrap_or_default();
        all.add(networks);
        self.networks = Some(Arc::new(all));
        self
    }

    /// Trusts this number of proxies in front of this server, whatever their addresses are.
    ///
    /// The peer is the first of them. With 1, the client is the last entry of the header; with 2,
    /// the one before it. If there are fewer entries, the client is the first one of the header.
    ///
    /// Use it for proxies whose addresses are not known, and only if each request passes through
    /// all of them. A client that reaches this server or an inner proxy directly can write what an
    /// outer proxy would have written.
    ///
    /// With networks too, both must hold: a proxy is trusted if its address is in a network and
    /// there are at most `hops` of them. So each setting can only make the other stricter. If
    /// clients have addresses in a trusted network, this keeps them from being taken for proxies.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use http::HeaderMap;
    /// use tollgate_http::ClientAddress;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-forwarded-for", "1.1.1.1, 10.0.0.77".parse()?);
    ///
    /// // 10.0.0.77 is a client inside the network of the proxy 10.0.0.2.
    /// let addresses = ClientAddress::peer().trust("10.0.0.0/8")?.x_forwarded_for();
    /// let forged = addresses.of([10, 0, 0, 2].into(), &headers);
    /// assert_eq!(forged, "1.1.1.1".parse::<IpAddr>()?);
    /// let client = addresses.trusted_hops(1).of([10, 0, 0, 2].into(), &headers);
    /// assert_eq!(client, "10.0.0.77".parse::<IpAddr>()?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn trusted_hops(mut self, hops: u8) -> Self {
        self.hops = Some(hops);
        self
    }

    /// Reads `X-Forwarded-For` from trusted proxies, in place of another header.
    pub fn x_forwarded_for(mut self) -> Self {
        self.source = Source::XForwardedFor;
        self
    }

    /// Reads `Forwarded` (RFC 7239) from trusted proxies, in place of another header.
    ///
    /// An entry has one `for`, such as `for="[2001:db8::1]:4711";proto=https`.
    pub fn forwarded(mut self) -> Self {
        self.source = Source::Forwarded;
        self
    }

    /// Reads `X-Real-IP` from trusted proxies, in place of another header.
    ///
    /// It has one address. If there are several lines, or if it is malformed, the client is the
    /// peer. The header's address is not checked further, also if it is that of a trusted proxy.
    pub fn x_real_ip(self) -> Self {
        self.header(HeaderName::from_static("x-real-ip"))
    }

    /// Reads a header with one address from trusted proxies, as [`x_real_ip`](Self::x_real_ip)
    /// does. Examples are `CF-Connecting-IP`, `True-Client-IP` and `Fly-Client-IP`.
    pub fn header(mut self, name: HeaderName) -> Self {
        self.source = Source::Single(name);
        self
    }

    /// Returns whether the peer of a connection is a trusted proxy.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusts_hop(canonical(peer), 0)
    }

    /// Returns the address of the client that sent these headers. It does not allocate.
    ///
    /// `peer` is the address of the other end of the connection. Use [`AddressPrefix`] to make a
    /// key of the address.
    ///
    /// [`AddressPrefix`]: crate::AddressPrefix
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

    /// Follows the trusted proxies to the client. `entries` are the addresses that the proxies
    /// wrote, from the last one to the first: `None` is an entry that is no address.
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

    /// Whether a canonical address is that of a trusted proxy, with this number of proxies between
    /// it and this server.
    fn trusts_hop(&self, address: IpAddr, hop: u8) -> bool {
        let by_networks = self.networks.as_ref().map(|all| all.contains(address));
        let by_hops = self.hops.map(|hops| hop < hops);
        match (by_networks, by_hops) {
            (None, None) => false,
            (networks, hops) => networks.unwrap_or(true) && hops.unwrap_or(true),
        }
    }
}
