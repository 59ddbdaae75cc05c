//! How a request is refused, and what the program is told.

use bytes::Bytes;
use http::Response;
#[cfg(feature = "tonic")]
use http::{Method, header};
use tollgate_http::Refusal;

use crate::admission::{Admit, Decide};
use crate::decision::LayerDecision;
use crate::head::Head;
use crate::settings::Settings;

impl Settings {
    /// Refuses a request, unless the limit is in shadow.
    pub(crate) fn refuse<A: Decide>(&self, head: Head<'_>, refusal: &Refusal<'_>) -> Admit<A> {
        let report = self.report_of(refusal.rule_name().unwrap_or(&self.name));
        match self.is_shadow {
            true => report.shadow(),
            false => report.denied(refusal.cause()),
        }
        self.tell(head, || match self.is_shadow {
            true => LayerDecision::WouldDeny(refusal),
            false => LayerDecision::Denied(refusal),
        });
        match self.is_shadow {
            true => Admit::Untold,
            false => Admit::Refused(self.write_refusal(head, refusal)),
        }
    }

    /// Writes the answer to a request that is refused, in its protocol.
    pub(crate) fn write_refusal(&self, head: Head<'_>, refusal: &Refusal<'_>) -> Response<Bytes> {
        #[cfg(feature = "tonic")]
        if self.grpc && is_grpc(head) {
            return self.answers.refuse_grpc(refusal);
        }
        let _ = head;
        self.answers.refuse(refusal)
    }

    /// Tells the program what was decided, if it asks for that.
    #[inline]
    pub(crate) fn tell<'d>(&self, head: Head<'_>, decision: impl FnOnce() -> LayerDecision<'d>) {
        if let Some(tell) = &self.on_decision {
            tell(&self.facts(head), &decision());
        }
    }
}

/// Returns whether a request is a call of gRPC, which is always a `POST`. If another method could
/// have this content type, caches would store its refusals: their status is 200. Calls of gRPC-Web
/// are not included: their errors are in the body.
#[cfg(feature = "tonic")]
fn is_grpc(head: Head<'_>) -> bool {
    if head.method != Method::POST {
        return false;
    }
    let content_type = head.headers.get(header::CONTENT_TYPE);
    let Some(rest) = content_type.and_then(|it| it.as_bytes().strip_prefix(b"application/grpc"))
    else {
        return false;
    };
    matches!(rest.first(), None | Some(b'+' | b';'))
}
