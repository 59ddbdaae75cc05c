//! Facts of a request, for policies and for keys.

use std::borrow::Cow;
use std::net::IpAddr;

use http::{HeaderMap, Method, Request, Uri};

/// In which form rules see a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PathForm {
    /// Each segment is decoded, but `%2F` and `%25` stay as they are.
    #[default]
    Decoded,
    /// As the client sent it.
    AsSent,
    /// Decoded, without `.`, `..` and what follows a `;`.
    Normalized,
}

/// The facts of a request.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct RequestFacts<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    client_ip: Option<IpAddr>,
    path: PathForm,
}

impl<'r> RequestFacts<'r> {
    /// Facts of this request, without a client address.
    pub fn new<B>(request: &'r Request<B>) -> Self {
        todo!()
    }

    /// Sets the client's address.
    pub const fn client_ip(self, address: IpAddr) -> Self {
        todo!()
    }

    /// Returns a cookie.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<Cow<'r, str>> {
        todo!()
    }
}
