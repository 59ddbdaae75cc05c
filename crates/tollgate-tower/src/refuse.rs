//! How a refusal is written: in HTTP or gRPC.

use bytes::Bytes;
#[cfg(feature = "tonic")]
use http::{Method, header};
use http::{Request, Response};
use tollgate_http::Refusal;

use crate::settings::Settings;

impl Settings {
    /// Writes the answer to a request that is refused, in its protocol. It is in a box, since it is
    /// large and is moved several times.
    pub(crate) fn refuse<B>(
        &self,
        request: &Request<B>,
        refusal: &Refusal<'_>,
    ) -> Box<Response<Bytes>> {
        #[cfg(feature = "tonic")]
        if self.grpc && is_grpc(request) {
            return Box::new(self.answers.refuse_grpc(refusal));
        }
        let _ = request;
        Box::new(self.answers.refuse(refusal))
    }
}

/// Returns whether a request is a call of gRPC, which is always a `POST`. If another method could
/// have this content type, caches would store its refusals: their status is 200. Calls of gRPC-Web
/// are not included: their errors are in the body.
#[cfg(feature = "tonic")]
fn is_grpc<B>(request: &Request<B>) -> bool {
    if request.method() != Method::POST {
        return false;
    }
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let Some(rest) = content_type.and_then(|it| it.as_bytes().strip_prefix(b"application/grpc"))
    else {
        return false;
    };
    matches!(rest.first(), None | Some(b'+' | b';'))
}
