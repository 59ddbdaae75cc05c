//! What a request holds from its decision until the end of its answer's body.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use http::{Extensions, HeaderMap, Response, StatusCode};

use crate::admission::{Admission, Grant};
use crate::answered::{End, Ended};
use crate::head::Head;
use crate::settings::Settings;

/// The limits and settings of a layer, which all clones of its services share.
pub(crate) struct Limits<A> {
    pub(crate) admission: A,
    pub(crate) settings: Settings,
    /// Whether requests need only their key.
    pub(crate) is_plain: bool,
    /// The same limits for requests in shadow, if there may be any.
    pub(crate) in_shadow: Option<Arc<Self>>,
}

impl<A: Admission> Limits<A> {
    pub(crate) fn new(admission: A, settings: Settings) -> Self {
        let in_shadow = settings.shadow_if.as_ref().map(|_| {
            Arc::new(Self {
                admission: admission.clone(),
                settings: settings.in_shadow(),
                is_plain: false,
                in_shadow: None,
            })
        });
        Self {
            is_plain: settings.is_plain() && admission.is_plain(),
            admission,
            settings,
            in_shadow,
        }
    }

    /// Returns the limits for a request.
    #[inline]
    pub(crate) fn of_request<'l>(self: &'l Arc<Self>, head: Head<'_>) -> &'l Arc<Self> {
        match (&self.in_shadow, &self.settings.shadow_if) {
            (Some(in_shadow), Some(test)) if test(&self.settings.facts(head)) => in_shadow,
            _ => self,
        }
    }
}

/// The status of gRPC for a status that can't be read.
const UNKNOWN: u16 = 2;

/// What a request holds from its decision until the end of its answer's body. However it ends, the
/// grant is told once: a ticket that is dropped ends as [`End::Dropped`].
///
/// It is empty if nothing has to be told.
pub(crate) struct Ticket<A: Admission>(Option<Open<A>>);

struct Open<A: Admission> {
    grant: A::Grant,
    limits: Arc<Limits<A>>,
    status: Option<StatusCode>,
    headers: Option<Box<HeaderMap>>,
    extensions: Extensions,
    bytes: u64,
    /// The status of gRPC, if the answer has one.
    grpc: Option<u16>,
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
            grpc: None,
        }))
    }

    /// The ticket of a request that is not limited.
    pub(crate) const fn empty() -> Self {
        Self(None)
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Writes the fields of the service's answer.
    pub(crate) fn write<B>(&mut self, response: &mut Response<B>) {
        let Some(open) = &mut self.0 else { return };
        open.status = Some(response.status());
        if open.grant.reads_headers(&open.limits.settings) {
            open.headers = Some(Box::new(response.headers().clone()));
            open.extensions = response.extensions().clone();
        }
        let headers = response.headers_mut();
        open.grant.write(&open.limits.settings, headers);
        match open.grant.needs_end() {
            true => self.grpc_status(response.headers()),
            false => self.0 = None,
        }
    }

    /// Reads the status of gRPC, which is in the trailers, or in the headers of an answer without a
    /// body.
    pub(crate) fn grpc_status(&mut self, headers: &HeaderMap) {
        if let Some(open) = self.0.as_mut().filter(|_| cfg!(feature = "tonic")) {
            if let Some(status) = headers.get("grpc-status") {
                let number = status.to_str().ok().and_then(|status| status.parse().ok());
                open.grpc = Some(number.unwrap_or(UNKNOWN));
            }
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
    #[inline]
    pub(crate) fn end(&mut self, end: End) {
        if let Some(open) = self.0.take() {
            open.end(end);
        }
    }
}

impl<A: Admission> Open<A> {
    #[inline(never)]
    fn end(self, end: End) {
        if !self.grant.needs_end() {
            return;
        }
        let ended = Ended {
            status: self.status,
            headers: self.headers.as_deref(),
            extensions: Some(&self.extensions),
            bytes: self.bytes,
            grpc: self.grpc,
            end,
            ..Ended::default()
        };
        self.grant.end(ended, &self.limits.settings);
    }
}

impl<A: Admission> Drop for Ticket<A> {
    #[inline]
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        if !std::thread::panicking() {
            open.end(End::Dropped);
            return;
        }
        // The service panicked. If a function of the program, such as one that settles, panicked
        // too, the process would be aborted. So that panic is caught, and the grant stays as it is.
        let _ = catch_unwind(AssertUnwindSafe(|| open.end(End::Dropped)));
    }
}

impl<A: Admission> fmt::Debug for Ticket<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.0.is_some()).finish()
    }
}
