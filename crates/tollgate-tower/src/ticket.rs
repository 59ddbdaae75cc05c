//! What a request holds from its decision until the end of its answer's body.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use http::response::Parts;
use http::{Extensions, HeaderMap, StatusCode};

use crate::admission::{Admission, Grant};
use crate::answered::{End, Ended};
use crate::settings::Settings;

/// The limits and settings of a layer, which all clones of its services share.
pub(crate) struct Limits<A> {
    pub(crate) admission: A,
    pub(crate) settings: Settings,
}

/// What a request holds from its decision until the end of its answer's body. However it ends, the
/// grant is told once: a ticket that is dropped ends as [`End::Dropped`].
pub(crate) struct Ticket<A: Admission>(Option<Open<A>>);

struct Open<A: Admission> {
    grant: A::Grant,
    limits: Arc<Limits<A>>,
    status: Option<StatusCode>,
    headers: Option<Box<HeaderMap>>,
    extensions: Extensions,
    bytes: u64,
    /// Whether gRPC says that the call failed.
    has_failed: bool,
}

impl<A: Admission> Ticket<A> {
    /// A ticket for a request that is served. It is empty if there is nothing to do later.
    #[inline]
    pub(crate) fn new(grant: A::Grant, limits: &Arc<Limits<A>>) -> Self {
        if !limits.settings.answers.has_fields() && !grant.needs_end() {
            return Self(None);
        }
        Self(Some(Open {
            grant,
            limits: Arc::clone(limits),
            status: None,
            headers: None,
            extensions: Extensions::new(),
            bytes: 0,
            has_failed: false,
        }))
    }

    /// The ticket of a request that is not limited.
    pub(crate) const fn empty() -> Self {
        Self(None)
    }

    /// Moves the ticket out, and leaves an empty one.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    /// The service has answered.
    #[inline]
    pub(crate) fn answered(&mut self, parts: &mut Parts) {
        let Some(open) = &mut self.0 else { return };
        open.status = Some(parts.status);
        if open.grant.reads_headers(&open.limits.settings) {
            open.headers = Some(Box::new(parts.headers.clone()));
            open.extensions = parts.extensions.clone();
        }
        open.grant.write(&open.limits.settings, &mut parts.headers);
        match open.grant.needs_end() {
            true => self.grpc_status(&parts.headers),
            false => self.0 = None,
        }
    }

    /// Reads the status of gRPC, which is in the trailers, or in the headers of an answer without a
    /// body.
    pub(crate) fn grpc_status(&mut self, headers: &HeaderMap) {
        if let Some(open) = self.0.as_mut().filter(|_| cfg!(feature = "tonic")) {
            let status = headers.get("grpc-status");
            open.has_failed |= status.is_some_and(|status| status != "0");
        }
    }

    /// A part of the body was sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(open) = &mut self.0 {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            open.bytes = open.bytes.saturating_add(bytes);
        }
    }

    /// The request has ended.
    pub(crate) fn end(&mut self, end: End) {
        let Some(open) = self.0.take() else { return };
        if !open.grant.needs_end() {
            return;
        }
        let ended = Ended {
            status: open.status,
            headers: open.headers.as_deref(),
            extensions: Some(&open.extensions),
            bytes: open.bytes,
            has_failed: open.has_failed,
            end,
            ..Ended::default()
        };
        open.grant.end(ended, &open.limits.settings);
    }
}

impl<A: Admission> Drop for Ticket<A> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end(End::Dropped);
            return;
        }
        // The service panicked. If a function of the program does so too, such as one that settles,
        // the process would be aborted. The grant stays as it is then.
        let _ = catch_unwind(AssertUnwindSafe(|| self.end(End::Dropped)));
    }
}

impl<A: Admission> fmt::Debug for Ticket<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.0.is_some()).finish()
    }
}

/// A grant of a request that waits. If it is dropped, its permits come back as far as possible.
pub(crate) struct Unserved<G: Grant>(Option<G>);

impl<G: Grant> Unserved<G> {
    pub(crate) const fn new(grant: G) -> Self {
        Self(Some(grant))
    }

    pub(crate) fn serve(mut self) -> Option<G> {
        self.0.take()
    }
}

impl<G: Grant> Drop for Unserved<G> {
    fn drop(&mut self) {
        if let Some(grant) = self.0.take() {
            grant.cancel();
        }
    }
}
