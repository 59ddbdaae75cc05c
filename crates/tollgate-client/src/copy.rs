//! Copies of requests, which retries need.

use http::Request;

/// Copies a request before it is sent, so that it can be sent again.
///
/// Implement it for bodies that can't be cloned, and pass it to
/// [`copy_with`](super::ClientLimitLayer::copy_with).
///
/// ```
/// use http::Request;
/// use tollgate_client::{ClientLimitLayer, CopyRequest};
///
/// /// A body that is streamed, or none.
/// enum Body {
///     Empty,
///     Stream(std::fs::File),
/// }
///
/// /// Copies requests without a body.
/// #[derive(Debug, Clone, Copy)]
/// struct CopyEmpty;
///
/// impl CopyRequest<Request<Body>> for CopyEmpty {
///     fn copy(&self, request: &Request<Body>) -> Option<Request<Body>> {
///         match request.body() {
///             Body::Empty => {
///                 let mut copy = Request::new(Body::Empty);
///                 *copy.method_mut() = request.method().clone();
///                 *copy.uri_mut() = request.uri().clone();
///                 *copy.headers_mut() = request.headers().clone();
///                 Some(copy)
///             }
///             Body::Stream(_) => None,
///         }
///     }
/// }
///
/// let layer = ClientLimitLayer::new().copy_with(CopyEmpty);
/// # _ = layer;
/// ```
pub trait CopyRequest<Request> {
    /// Returns a copy. A request without a copy is sent once.
    fn copy(&self, request: &Request) -> Option<Request>;
}

/// Clones requests. A reqwest request whose body is a stream is not cloned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CloneRequest;

impl<B: Clone> CopyRequest<Request<B>> for CloneRequest {
    fn copy(&self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}

#[cfg(feature = "reqwest")]
impl CopyRequest<reqwest::Request> for CloneRequest {
    fn copy(&self, request: &reqwest::Request) -> Option<reqwest::Request> {
        request.try_clone()
    }
}

/// Copies no request, so that none is retried. Bodies need not be `Clone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NeverCopy;

impl<Request> CopyRequest<Request> for NeverCopy {
    fn copy(&self, _request: &Request) -> Option<Request> {
        None
    }
}
