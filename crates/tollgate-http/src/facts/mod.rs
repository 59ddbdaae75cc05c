//! Facts of a request, for policies and for keys.

#[cfg(feature = "policy")]
mod answer;
mod found;
mod lists;
mod parts;
mod path;
#[cfg(feature = "policy")]
mod policy;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str;

use http::header::{HOST, HeaderMap, HeaderValue};
use http::{Extensions, Method, Request, Uri, request};
use tollgate::address::canonical;

#[cfg(feature = "policy")]
pub use answer::AnswerFacts;
pub use found::Ambiguous;
pub use path::PathForm;

use found::Found;
use parts::Many;

/// The facts of a request, for policies and for hand-written keys.
///
/// With the feature `policy` it implements `tollgate_policy::Facts`, so a policy can decide about
/// it. It does not allocate for a text that is used as the client sent it, unless there are many
/// parameters or cookies, or several values.
///
/// A client can send a header, a parameter or a cookie several times. Then it is not known which
/// one the service reads, so values that differ are [`Ambiguous`]. At most 256 parameters, 256
/// cookies and 256 lines of a header are read. In a request with more of a kind, all values of that
/// kind are ambiguous. A long query, and long cookies, are read once for all names.
///
/// The client sends all facts but its address. So a key that is made of them alone, such as an API
/// key, must be verified before it is used. Otherwise a client that sends another one with each
/// request is never limited.
///
/// ```
/// use std::borrow::Cow;
/// use std::net::IpAddr;
/// use http::Request;
/// use tollgate::{Keyed, Quota};
/// use tollgate_http::{AddressPrefix, ClientAddress, RequestFacts};
///
/// /// Requests with the same key share a limit.
/// #[derive(Hash)]
/// enum Key<'r> {
///     ApiKey(Cow<'r, str>),
///     Network(IpAddr),
/// }
///
/// /// Known API keys have a limit each. Without one, the network of the client has a limit.
/// fn key<'r>(facts: &RequestFacts<'r>, client: IpAddr, known: &[&str]) -> Key<'r> {
///     match facts.header("x-api-key") {
///         Ok(Some(key)) if known.contains(&&*key) => Key::ApiKey(key),
///         _ => Key::Network(AddressPrefix::default().network(client)),
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Keyed::token_bucket(Quota::per_minute(1), 100_000)?;
/// let addresses = ClientAddress::peer();
/// let decide = |peer: &str, api_key: &str| -> Result<bool, Box<dyn std::error::Error>> {
///     let request = Request::get("/items?page=2").header("x-api-key", api_key).body(())?;
///     let client = addresses.of(peer.parse()?, request.headers());
///     let key = key(&RequestFacts::new(&request), client, &["k1", "k2"]);
///     Ok(limiter.try_acquire(&key).is_ok())
/// };
/// assert!(decide("2001:db8::1", "k1")?);
/// assert!(decide("2001:db8::1", "k2")?);
/// assert!(!decide("192.0.2.1", "k2")?);
/// assert!(decide("2001:db8::1", "made up")?);
/// assert!(!decide("2001:db8::2", "another one")?); // in the same network
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct RequestFacts<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: Option<&'r Extensions>,
    client_ip: Option<IpAddr>,
    path: PathSource<'r>,
    form: PathForm,
    parameters: Many<'r>,
    cookies: Many<'r>,
}

/// Where the path is. The path is looked up when it is first needed.
#[derive(Clone, Copy)]
enum PathSource<'r> {
    Uri,
    Own(&'r str),
    Extensions(fn(&Extensions) -> Option<&Uri>),
}

impl<'r> RequestFacts<'r> {
    /// Facts of this request, without a client address.
    #[inline]
    pub fn new<B>(request: &'r Request<B>) -> Self {
        Self::of(request.method(), request.uri(), request.headers())
            .with_extensions(request.extensions())
    }

    /// Facts of the request with this head, without a client address.
    pub fn of_parts(parts: &'r request::Parts) -> Self {
        Self::of(&parts.method, &parts.uri, &parts.headers).with_extensions(&parts.extensions)
    }

    /// Facts of a request with this method, URI and headers, without a client address.
    #[inline]
    pub fn of(method: &'r Method, uri: &'r Uri, headers: &'r HeaderMap) -> Self {
        Self {
            method,
            uri,
            headers,
            extensions: None,
            client_ip: None,
            path: PathSource::Uri,
            form: PathForm::Decoded,
            parameters: Many::new(),
            cookies: Many::new(),
        }
    }

    /// Sets the request's extensions, for [`extension`](Self::extension) and
    /// [`path_from`](Self::path_from).
    #[inline]
    pub const fn with_extensions(mut self, extensions: &'r Extensions) -> Self {
        self.extensions = Some(extensions);
        self
    }

    /// Sets the client's address, such as [`ClientAddress::of`](crate::ClientAddress::of) finds it.
    #[inline]
    pub const fn client_ip(mut self, address: IpAddr) -> Self {
        self.client_ip = Some(canonical(address));
        self
    }

    /// Sets the form of the path. The default is [`PathForm::Decoded`].
    #[inline]
    pub const fn path_form(mut self, form: PathForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the path, in place of that of the URI. The path is as the client sent it: it is brought
    /// into the form of [`path_form`](Self::path_form), and a query at its end is left out.
    ///
    /// Use it if a router has taken a prefix off the URI, and rules match the whole path.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::RequestFacts;
    ///
    /// let request = Request::get("/users?page=2").body(())?;
    /// let facts = RequestFacts::new(&request).with_path("/api/users?page=2");
    /// assert_eq!(facts.path(), "/api/users");
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn with_path(mut self, path: &'r str) -> Self {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        self.path = PathSource::Own(path);
        self
    }

    /// Sets where the URI with the whole path may be among the request's extensions. Without one
    /// there, the path is that of the request's URI.
    ///
    /// ```
    /// use http::{Request, Uri};
    /// use tollgate_http::RequestFacts;
    ///
    /// #[derive(Clone)]
    /// struct Original(Uri);
    ///
    /// let mut request = Request::get("/users").body(())?;
    /// request.extensions_mut().insert(Original(Uri::from_static("/api/users")));
    /// let facts = RequestFacts::new(&request)
    ///     .path_from(|extensions| Some(&extensions.get::<Original>()?.0));
    /// assert_eq!(facts.path(), "/api/users");
    /// # Ok::<(), http::Error>(())
    /// ```
    #[inline]
    pub const fn path_from(mut self, find: fn(&Extensions) -> Option<&Uri>) -> Self {
        self.path = PathSource::Extensions(find);
        self
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'r Method {
        self.method
    }

    /// Returns the path in its form, without the query.
    ///
    /// The path of `OPTIONS *` is `*`, and that of a `CONNECT` without a path is `/`.
    #[must_use]
    pub fn path(&self) -> Cow<'r, str> {
        let uri = match self.path {
            PathSource::Own(path) => return self.form.of(path),
            PathSource::Extensions(find) => self.extensions.and_then(find).unwrap_or(self.uri),
            PathSource::Uri => self.uri,
        };
        self.form.of(match uri.path() {
            // A `CONNECT` has a host and no path.
            "" => "/",
            path => path,
        })
    }

    /// Returns the host that the client asked for, with a port if the client sent one.
    ///
    /// That is the host in the URI (HTTP/2, or a request to a proxy), or else the `Host` header. A
    /// header that is not UTF-8 is an empty host.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::RequestFacts;
    ///
    /// let request = Request::get("/").header("host", "example.com:8080").body(())?;
    /// assert_eq!(RequestFacts::new(&request).host()?.as_deref(), Some("example.com:8080"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if there is no host in the URI, and several `Host` headers differ.
    pub fn host(&self) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        self.hosts().single()
    }

    fn hosts(&self) -> Found<'r> {
        let mut found = Found::default();
        match self.uri.authority() {
            Some(authority) => {
                let text = authority.as_str();
                let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
                found.push(host.into());
            }
            None => {
                let lines = self.headers.get_all(HOST).iter();
                let text = |line: &'r HeaderValue| str::from_utf8(line.as_bytes());
                let mut hosts = lines.map(|line| text(line).unwrap_or_default().into());
                found.extend(hosts.by_ref().take(found::MAX_PARTS));
                found.more = hosts.next().is_some();
            }
        }
        found
    }

    /// Returns all headers.
    #[must_use]
    pub const fn headers(&self) -> &'r HeaderMap {
        self.headers
    }

    /// Returns an extension of the request, such as the user that an earlier layer found.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::RequestFacts;
    ///
    /// #[derive(Clone)]
    /// struct User(String);
    ///
    /// let mut request = Request::new(());
    /// request.extensions_mut().insert(User("ann".into()));
    /// let facts = RequestFacts::new(&request);
    /// assert_eq!(facts.extension::<User>().map(|user| &*user.0), Some("ann"));
    /// ```
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&'r T> {
        self.extensions?.get()
    }

    /// Returns a header. Names are compared without case.
    ///
    /// Equal lines count as one. Several lines of a header whose value is a list, such as `accept`,
    /// `via` and `x-forwarded-for`, are one text: they are joined with `, `, and those of `cookie`
    /// with `; `. A header that is empty is there. Bytes that are not UTF-8 become U+FFFD. If an
    /// HTTP/2 request has no header `host`, its value is that of [`host`](Self::host).
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::{Ambiguous, RequestFacts};
    ///
    /// let request = Request::get("/").header("accept", "a/b").header("accept", "c/d");
    /// let request = request.header("x-api-key", "k1").header("x-api-key", "k2").body(())?;
    /// let facts = RequestFacts::new(&request);
    /// assert_eq!(facts.header("Accept")?.as_deref(), Some("a/b, c/d"));
    /// assert_eq!(facts.header("x-api-key"), Err(Ambiguous));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if the header is not a list and has several lines that differ, or if it has
    /// more than 256 lines.
    pub fn header(&self, name: &str) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        self.header_values(name).single()
    }

    fn header_values(&self, name: &str) -> Found<'r> {
        // HTTP/2 has the host in the URI.
        let is_host = name.eq_ignore_ascii_case(HOST.as_str());
        match is_host && !self.headers.contains_key(HOST) {
            true => self.hosts(),
            false => text::header(self.headers, name),
        }
    }

    /// Returns a header as a whole number: of several lines, the largest. So a client that sends a
    /// cost twice pays for the larger one. A number beyond [`u64::MAX`] counts as that.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::RequestFacts;
    ///
    /// let request = Request::get("/").header("x-items", "1").header("x-items", "40").body(())?;
    /// assert_eq!(RequestFacts::new(&request).header_number("x-items"), Some(40));
    /// # Ok::<(), http::Error>(())
    /// ```
    #[must_use]
    pub fn header_number(&self, name: &str) -> Option<u64> {
        text::number(self.headers, name)
    }

    /// Returns the parameter of the query with this name.
    ///
    /// Names and values are decoded, with `+` as a space. A parameter without `=` is empty. Bytes
    /// that are not UTF-8 become U+FFFD.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::{Ambiguous, RequestFacts};
    ///
    /// let request = Request::get("/?q=two+words&%66lag&a=1&a=%31&b=1&b=2").body(())?;
    /// let facts = RequestFacts::new(&request);
    /// assert_eq!(facts.query("q")?.as_deref(), Some("two words"));
    /// assert_eq!(facts.query("flag")?.as_deref(), Some(""));
    /// assert_eq!(facts.query("a")?.as_deref(), Some("1"));
    /// assert_eq!(facts.query("b"), Err(Ambiguous));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if several parameters of this name differ, or if there are more than 256
    /// parameters in all.
    pub fn query(&self, name: &str) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        self.query_values(name).single()
    }

    fn query_values(&self, name: &str) -> Found<'r> {
        let query = self.uri.query();
        query.map_or_else(Found::default, |query| {
            parts::parameter(query, &self.parameters, name)
        })
    }

    /// Returns the cookie with this name, of all lines.
    ///
    /// Names and values are decoded, and quotes around a value are left out. So a client can't
    /// write one cookie in several ways. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate_http::RequestFacts;
    ///
    /// let request = Request::get("/").header("cookie", "theme=dark; session=\"s%31\"").body(())?;
    /// assert_eq!(RequestFacts::new(&request).cookie("session")?.as_deref(), Some("s1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Ambiguous`] if several cookies of this name differ, or if there are more than 256 cookies
    /// in all.
    pub fn cookie(&self, name: &str) -> Result<Option<Cow<'r, str>>, Ambiguous> {
        self.cookie_values(name).single()
    }

    fn cookie_values(&self, name: &str) -> Found<'r> {
        parts::cookie(self.headers, &self.cookies, name)
    }

    /// Returns the client's address, if it was set.
    ///
    /// A client with IPv6 has many addresses: make a key of its network, with
    /// [`AddressPrefix`](crate::AddressPrefix).
    #[must_use]
    #[inline]
    pub const fn client_address(&self) -> Option<IpAddr> {
        self.client_ip
    }
}

impl fmt::Debug for RequestFacts<'_> {
    /// Does not show headers, the query and extensions, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestFacts")
            .field("method", self.method)
            .field("host", &self.host())
            .field("path", &self.path())
            .field("client_ip", &self.client_ip)
            .finish_non_exhaustive()
    }
}
