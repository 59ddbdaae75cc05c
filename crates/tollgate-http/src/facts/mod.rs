//! Facts of a request, for policies and for keys.

#[cfg(feature = "policy")]
mod answer;
mod path;
#[cfg(feature = "policy")]
mod policy;
mod text;

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{HOST, HeaderMap};
use http::{Extensions, Method, Request, Uri, request};

use crate::address::canonical;

#[cfg(feature = "policy")]
pub use answer::AnswerFacts;
pub use path::PathForm;

/// The facts of a request, for policies and for keys.
///
/// With the feature `policy`, it implements `tollgate_policy::Facts`.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct RequestFacts<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: Option<&'r Extensions>,
    client_ip: Option<IpAddr>,
    path: PathSource<'r>,
    form: PathForm,
}

/// Where the path is. It is looked for when it is asked for.
#[derive(Debug, Clone, Copy)]
enum PathSource<'r> {
    Uri,
    Own(&'r str),
    Extensions(fn(&Extensions) -> Option<&Uri>),
}

impl<'r> RequestFacts<'r> {
    /// Facts of this request, without a client address.
    #[inline]
    pub fn new<B>(request: &'r Request<B>) -> Self {
        let facts = Self::of(request.method(), request.uri(), request.headers());
        Self {
            extensions: Some(request.extensions()),
            ..facts
        }
    }

    /// Facts of the request with this head, without a client address.
    pub fn of_parts(parts: &'r request::Parts) -> Self {
        Self {
            extensions: Some(&parts.extensions),
            ..Self::of(&parts.method, &parts.uri, &parts.headers)
        }
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
        }
    }

    /// Sets the client's address.
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

    /// Sets the path, in place of that of the URI. A query at its end is left out.
    ///
    /// Use it if a router has taken a prefix from the URI, and rules have the whole path.
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
    #[must_use]
    pub fn host(&self) -> Option<&'r str> {
        if let Some(authority) = self.uri.authority() {
            let text = authority.as_str();
            return Some(text.rsplit_once('@').map_or(text, |(_, host)| host));
        }
        let host = self.headers.get(HOST)?;
        Some(std::str::from_utf8(host.as_bytes()).unwrap_or_default())
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

    /// Returns a header. Several lines are joined with `, `.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Cow<'r, str>> {
        text::header(self.headers, name)
    }

    /// Returns a parameter of the query, decoded.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<Cow<'r, str>> {
        text::query(self.uri.query()?, name)
    }

    /// Returns a cookie.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<Cow<'r, str>> {
        text::cookie(self.headers, name)
    }

    /// Returns the client's address, if it was set.
    #[must_use]
    #[inline]
    pub const fn client_address(&self) -> Option<IpAddr> {
        self.client_ip
    }
}
