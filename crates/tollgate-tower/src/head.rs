//! A request, without its body.

use http::{Extensions, HeaderMap, Method, Request, Uri};

/// A request, without its body.
#[derive(Debug, Clone, Copy)]
pub struct Head<'r> {
    pub(crate) method: &'r Method,
    pub(crate) uri: &'r Uri,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) extensions: &'r Extensions,
}

impl<'r> Head<'r> {
    #[inline(always)]
    pub(crate) fn of<B>(request: &'r Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}
