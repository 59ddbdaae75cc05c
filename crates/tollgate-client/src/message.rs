//! What the layer reads of requests and answers, of `http` and of reqwest.

use std::fmt;

use http::header::HOST;
use http::{HeaderMap, Method, Request, Response, StatusCode};

/// A request that the layer can send: `http::Request`, and `reqwest::Request` with the feature
/// `reqwest`.
pub trait ClientRequest: sealed::Sealed {
    /// Returns the head of the request.
    fn head(&self) -> RequestHead<'_>;

    /// Returns the request's URL, if answers of this client say which URL answered.
    #[doc(hidden)]
    fn url(&self) -> Option<&str> {
        None
    }
}

/// An answer that the layer can read: `http::Response`, and `reqwest::Response` with the feature
/// `reqwest`.
pub trait ClientResponse: sealed::Sealed {
    /// Returns the status.
    fn status(&self) -> StatusCode;

    /// Returns the fields.
    fn headers(&self) -> &HeaderMap;

    /// Returns the URL that answered, if the answer says it.
    #[doc(hidden)]
    fn url(&self) -> Option<&str> {
        None
    }
}

mod sealed {
    #[allow(unreachable_pub)] // As the other public names of a sealed trait.
    pub trait Sealed {}
}

/// The head of a request: what [`group_by`](super::ClientLimitLayer::group_by) sees of it.
///
/// ```
/// use http::Request;
/// use tollgate_client::ClientRequest;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let request = Request::get("https://api.example.com/users?page=2").body(())?;
/// let head = request.head();
/// assert_eq!((head.host(), head.port()), (Some("api.example.com"), Some(443)));
/// assert_eq!(head.path(), "/users");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct RequestHead<'r> {
    method: &'r Method,
    scheme: Option<&'r str>,
    host: Option<&'r str>,
    port: Option<u16>,
    path: &'r str,
    headers: &'r HeaderMap,
}

impl<'r> RequestHead<'r> {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'r Method {
        self.method
    }

    /// Returns the scheme, for instance `https`. A request may have none.
    #[must_use]
    pub const fn scheme(&self) -> Option<&'r str> {
        self.scheme
    }

    /// Returns the host: the URI's, or that of the field `Host`.
    #[must_use]
    pub const fn host(&self) -> Option<&'r str> {
        self.host
    }

    /// Returns the port, or the scheme's if the request names none.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the path, without the query.
    #[must_use]
    pub const fn path(&self) -> &'r str {
        self.path
    }

    /// Returns the fields.
    #[must_use]
    pub const fn headers(&self) -> &'r HeaderMap {
        self.headers
    }
}

impl fmt::Debug for RequestHead<'_> {
    /// Does not show the fields, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", self.method)
            .field("scheme", &self.scheme)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn port_of(scheme: Option<&str>) -> Option<u16> {
    match scheme {
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => Some(443),
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ => None,
    }
}

impl<B> sealed::Sealed for Request<B> {}

impl<B> ClientRequest for Request<B> {
    fn head(&self) -> RequestHead<'_> {
        let uri = self.uri();
        let scheme = uri.scheme_str();
        let (host, port) = match uri.host() {
            Some(host) => (Some(host), uri.port_u16()),
            None => {
                let field = self.headers().get(HOST).and_then(|host| host.to_str().ok());
                field.map_or((None, None), split_port)
            }
        };
        RequestHead {
            method: self.method(),
            scheme,
            host,
            port: port.or_else(|| port_of(scheme)),
            path: uri.path(),
            headers: self.headers(),
        }
    }
}

/// Splits `host:port`. The host of an IPv6 address is in brackets.
fn split_port(field: &str) -> (Option<&str>, Option<u16>) {
    match field.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (Some(host), port.parse().ok()),
        _ => (Some(field), None),
    }
}

impl<B> sealed::Sealed for Response<B> {}

impl<B> ClientResponse for Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

#[cfg(feature = "reqwest")]
mod for_reqwest {
    use super::{
        ClientRequest, ClientResponse, HeaderMap, RequestHead, StatusCode, port_of, sealed,
    };

    impl sealed::Sealed for reqwest::Request {}

    impl ClientRequest for reqwest::Request {
        fn head(&self) -> RequestHead<'_> {
            let url = self.url();
            let scheme = Some(url.scheme());
            RequestHead {
                method: self.method(),
                scheme,
                host: url.host_str(),
                port: url.port().or_else(|| port_of(scheme)),
                path: url.path(),
                headers: self.headers(),
            }
        }

        fn url(&self) -> Option<&str> {
            Some(self.url().as_str())
        }
    }

    impl sealed::Sealed for reqwest::Response {}

    impl ClientResponse for reqwest::Response {
        fn status(&self) -> StatusCode {
            self.status()
        }

        fn headers(&self) -> &HeaderMap {
            self.headers()
        }

        fn url(&self) -> Option<&str> {
            // reqwest gives this host to an answer that was made from parts.
            let url = self.url();
            (url.host_str() != Some("no.url.provided.local")).then(|| url.as_str())
        }
    }
}
