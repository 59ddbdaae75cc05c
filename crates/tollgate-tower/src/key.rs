//! The key of a request: which of a table's limits it uses.

use std::borrow::Cow;
use std::hash::Hash;
use std::net::IpAddr;

use http::HeaderName;
use tollgate_http::{AddressPrefix, Ambiguous, RequestFacts};

/// The key of a request: which of a table's limits it uses.
///
/// A closure that takes [`RequestFacts`] is one, if it returns an `Option`, or a `Result` of an
/// `Option` and [`Ambiguous`]. [`ByAddress`] and [`ByHeader`] are others. `None` means that the
/// request has no key: see [`MissingKey`](crate::MissingKey). A request whose key is ambiguous is
/// refused with [`Cause::Ambiguous`](tollgate_http::Cause::Ambiguous), whatever is set for missing
/// ones.
///
/// ```
/// use tollgate_http::{Ambiguous, RequestFacts};
/// use tollgate_tower::RequestKey;
///
/// let by_tenant = |facts: &RequestFacts<'_>| {
///     let tenant = facts.query("tenant")?;
///     Ok(tenant.map(|it| it.into_owned()))
/// };
/// let request = http::Request::get("/a?tenant=acme").body(()).unwrap();
/// assert_eq!(by_tenant.key(&RequestFacts::new(&request)), Ok(Some("acme".to_owned())));
/// let request = http::Request::get("/a?tenant=acme&tenant=x").body(()).unwrap();
/// assert_eq!(by_tenant.key(&RequestFacts::new(&request)), Err(Ambiguous));
/// ```
pub trait RequestKey: Send + Sync + 'static {
    /// The type of the key.
    type Key<'r>: Hash;

    /// Returns the key of a request, or `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if the request has several keys that differ.
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Result<Option<Self::Key<'r>>, Ambiguous>;
}

/// Limits of which a request without a key has none.
///
/// No other crate can name this trait.
pub trait HasKey {}

/// What a closure can return as a [`RequestKey`].
pub trait IntoKey {
    /// The key.
    type Key: Hash;

    /// Returns the key.
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if there are several keys.
    fn into_key(self) -> Result<Option<Self::Key>, Ambiguous>;
}

impl<K: Hash> IntoKey for Option<K> {
    type Key = K;

    #[inline]
    fn into_key(self) -> Result<Self, Ambiguous> {
        Ok(self)
    }
}

impl<K: Hash> IntoKey for Result<Option<K>, Ambiguous> {
    type Key = K;

    #[inline]
    fn into_key(self) -> Self {
        self
    }
}

impl<F, K> RequestKey for F
where
    F: Fn(&RequestFacts<'_>) -> K + Send + Sync + 'static,
    K: IntoKey,
{
    type Key<'r> = K::Key;

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Result<Option<K::Key>, Ambiguous> {
        self(facts).into_key()
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
///
/// The key is the network of the address, also for a program that bans a client itself:
///
/// ```
/// # use http::{Request, Response};
/// # use tower::{Layer, ServiceExt, service_fn};
/// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
/// #     Ok(Response::default())
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Keyed, Quota};
/// use tollgate_tower::{AddressPrefix, PeerAddr, RateLimitLayer};
///
/// let limits = Arc::new(Keyed::token_bucket(Quota::per_second(5), 100_000)?);
/// let service = RateLimitLayer::by_address(Arc::clone(&limits)).layer(service_fn(hello));
///
/// // Where the program finds an attack.
/// let network = AddressPrefix::default().network("2001:db8::7".parse()?);
/// limits.key(&network).ban_for(Duration::from_secs(600))?;
///
/// let neighbor = PeerAddr("[2001:db8::9]:443".parse()?);
/// let request = Request::builder().extension(neighbor).body(())?;
/// assert_eq!(service.oneshot(request).await?.status(), 429);
/// # Ok(())
/// # }
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
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Result<Option<IpAddr>, Ambiguous> {
        let address = facts.client_address();
        Ok(address.map(|address| self.prefix.network(address)))
    }
}

/// Keys by the value of a header, such as an API key.
///
/// A client chooses its headers, so a limit by a header alone is only as good as the check of its
/// value. It is read as [`RequestFacts::header`] reads it: a request with several lines that differ
/// is refused, because a client could add a line to have another limit. To ban a key of a table, or
/// to set its quota, pass the text: `table.key("k1").set_quota(quota)`.
///
/// ```
/// use http::{HeaderName, Request};
/// use tollgate_http::{Ambiguous, RequestFacts};
/// use tollgate_tower::{ByHeader, RequestKey};
///
/// let by_key = ByHeader(HeaderName::from_static("x-api-key"));
/// let request = Request::get("/").header("x-api-key", "k1").body(()).unwrap();
/// assert_eq!(by_key.key(&RequestFacts::new(&request)), Ok(Some("k1".into())));
/// let request = Request::get("/").header("x-api-key", "k1").header("x-api-key", "k2");
/// let request = request.body(()).unwrap();
/// assert_eq!(by_key.key(&RequestFacts::new(&request)), Err(Ambiguous));
/// ```
#[derive(Debug, Clone)]
pub struct ByHeader(pub HeaderName);

impl RequestKey for ByHeader {
    type Key<'r> = Cow<'r, str>;

    #[inline]
    fn key<'r>(&self, facts: &RequestFacts<'r>) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        facts.header(self.0.as_str())
    }
}
