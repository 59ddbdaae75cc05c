//! The key of a request: which of a table's limits it uses.

use std::hash::Hash;
use std::net::IpAddr;

use http::HeaderName;
use tollgate_http::{AddressPrefix, RequestFacts};

/// The key of a request: which of a table's limits it uses.
///
/// A closure that takes [`RequestFacts`] and returns an `Option` is one. [`ByAddress`] and
/// [`ByHeader`] are others. `None` means that the request has no key: see
/// [`Missing`](crate::Missing).
///
/// ```
/// use tollgate_http::RequestFacts;
/// use tollgate_tower::RequestKey;
///
/// let by_tenant = |facts: &RequestFacts<'_>| facts.query("tenant").map(|it| it.into_owned());
/// let request = http::Request::get("/a?tenant=acme").body(()).unwrap();
/// assert_eq!(by_tenant.key(&RequestFacts::new(&request)).as_deref(), Some("acme"));
/// ```
pub trait RequestKey: Send + Sync + 'static {
    /// The type of the key.
    type Key<'r>: Hash;

    /// Returns the key of a request, or `None` if it has none.
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<Self::Key<'r>>;
}

impl<F, K> RequestKey for F
where
    F: Fn(&RequestFacts<'_>) -> Option<K> + Send + Sync + 'static,
    K: Hash,
{
    type Key<'r> = K;

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<K> {
        self(facts)
    }
}

/// Keys by the client's address: IPv4 addresses, and networks of 64 bits of IPv6.
///
/// ```
/// use http::Request;
/// use tollgate_http::RequestFacts;
/// use tollgate_tower::{ByAddress, RequestKey};
///
/// let request = Request::get("/").body(()).unwrap();
/// let of = |address: &str| {
///     let facts = RequestFacts::new(&request).client_ip(address.parse().unwrap());
///     ByAddress::default().key(&facts)
/// };
/// assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
/// assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ByAddress {
    prefix: AddressPrefix,
}

impl ByAddress {
    /// Keys by this many bits of the client's address.
    #[must_use]
    pub const fn prefix(prefix: AddressPrefix) -> Self {
        Self { prefix }
    }
}

impl RequestKey for ByAddress {
    type Key<'r> = IpAddr;

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<IpAddr> {
        Some(self.prefix.network(facts.client_address()?))
    }
}

/// Keys by the value of a header, such as an API key.
///
/// A client chooses its headers, so a limit by a header alone is only as good as the check of its
/// value. A request that has several lines of the header is keyed by the first.
///
/// ```
/// use http::{HeaderName, Request};
/// use tollgate_http::RequestFacts;
/// use tollgate_tower::{ByHeader, RequestKey};
///
/// let by_key = ByHeader(HeaderName::from_static("x-api-key"));
/// let request = Request::get("/").header("x-api-key", "k1").body(()).unwrap();
/// assert_eq!(by_key.key(&RequestFacts::new(&request)), Some(&b"k1"[..]));
/// ```
#[derive(Debug, Clone)]
pub struct ByHeader(pub HeaderName);

impl RequestKey for ByHeader {
    type Key<'r> = &'r [u8];

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Option<&'r [u8]> {
        Some(facts.headers().get(&self.0)?.as_bytes())
    }
}
