//! What a request holds from its decision until the end of its answer's body.

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use http::{Extensions, HeaderMap, Response, StatusCode};
use tollgate_http::FieldValues;

use crate::admission::Admission;
use crate::answered::{End, Ended};
use crate::head::Head;
use crate::settings::Settings;

/// The limits and settings of a layer, which all clones of its services share.
pub(crate) struct Limits<A> {
    pub(crate) admission: A,
    settings: Settings,
    /// Whether requests need only their key.
    pub(crate) is_plain: bool,
    /// The settings for requests in shadow, if there may be any.
    in_shadow: Option<Settings>,
}

impl<A: Admission> Limits<A> {
    pub(crate) fn new(admission: A, settings: Settings) -> Self {
        let has_shadow = settings.shadow_if.is_some();
        Self {
            is_plain: settings.is_plain() && admission.is_plain(),
            in_shadow: has_shadow.then(|| settings.in_shadow()),
            admission,
            settings,
        }
    }

    /// Returns whether a request is in shadow.
    #[inline]
    pub(crate) fn shadows(&self, head: Head<'_>) -> bool {
        let test = self.settings.shadow_if.as_ref();
        test.is_some_and(|test| test(&self.settings.facts(head)))
    }
}

impl<A> Limits<A> {
    /// Returns the settings for requests that are in shadow, or for those that are not.
    #[inline]
    pub(crate) fn settings(&self, is_shadow: bool) -> &Settings {
        match &self.in_shadow {
            Some(in_shadow) if is_shadow => in_shadow,
            _ => &self.settings,
        }
    }
}

/// The limits as the requests of one connection hold them. They count their references apart from
/// those of other connections, so that these write nothing that the others read. The requests of a
/// router of axum have one count: it clones its routes for each request, and not the service here.
#[expect(
    clippy::redundant_allocation,
    reason = "the two count other references"
)]
pub(crate) struct Held<A>(Arc<Arc<Limits<A>>>);

impl<A> Held<A> {
    pub(crate) fn new(limits: Arc<Limits<A>>) -> Self {
        Self(Arc::new(limits))
    }

    /// Returns the limits for another connection.
    pub(crate) fn of_another(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

#[cfg(test)]
impl<A> Held<A> {
    /// Returns the limits, as all connections hold them.
    pub(crate) fn of_all(&self) -> Arc<Limits<A>> {
        Arc::clone(&self.0)
    }

    /// Returns whether both are of one connection.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<A> Clone for Held<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> Deref for Held<A> {
    type Target = Limits<A>;

    #[inline]
    fn deref(&self) -> &Limits<A> {
        &self.0
    }
}

/// The status of gRPC for a status that can't be read.
const UNKNOWN: u16 = 2;

/// What a request holds from its decision until the end of its answer's body. However it ends, the
/// grant is told once: a ticket that is dropped ends as [`End::Dropped`].
pub(crate) struct Ticket<A: Admission> {
    /// The fields of the answer, until there is one.
    values: FieldValues,
    /// `None` if nothing has to be told.
    open: Option<Open<A>>,
}

struct Open<A: Admission> {
    grant: A::Grant,
    limits: Held<A>,
    is_shadow: bool,
    status: Option<StatusCode>,
    headers: Option<Box<HeaderMap>>,
    extensions: Extensions,
    bytes: u64,
    /// The status of gRPC, if the answer has one.
    grpc: Option<u16>,
}

impl<A: Admission> Ticket<A> {
    /// The ticket of a request that is granted.
    #[inline]
    pub(crate) fn new(
        grant: A::Grant,
        values: FieldValues,
        limits: &Held<A>,
        is_shadow: bool,
    ) -> Self {
        let open = limits.admission.needs_end(&grant).then(|| Open {
            grant,
            limits: limits.clone(),
            is_shadow,
            status: None,
            headers: None,
            extensions: Extensions::new(),
            bytes: 0,
            grpc: None,
        });
        Self { values, open }
    }

    /// The ticket of a request of which nothing has to be told later.
    pub(crate) const fn said(values: FieldValues) -> Self {
        let open = None;
        Self { values, open }
    }

    /// The ticket of a request that is not limited.
    pub(crate) fn empty() -> Self {
        Self::said(FieldValues::default())
    }

    /// Returns the fields of the answer, if nothing has to be told later.
    pub(crate) fn only_said(mut self) -> Result<FieldValues, Self> {
        match self.open {
            None => Ok(mem::take(&mut self.values)),
            Some(_) => Err(self),
        }
    }

    #[inline]
    pub(crate) const fn is_over(&self) -> bool {
        self.open.is_none()
    }

    /// Writes the fields of the service's answer.
    pub(crate) fn write<B>(&mut self, response: &mut Response<B>) {
        if let Some(open) = &mut self.open {
            open.status = Some(response.status());
            if open
                .limits
                .admission
                .reads_headers(&open.grant, open.settings())
            {
                open.headers = Some(Box::new(response.headers().clone()));
                open.extensions = response.extensions().clone();
            }
        }
        mem::take(&mut self.values).write(response.headers_mut());
        self.grpc_status(response.headers());
    }

    /// Reads the status of gRPC, which is in the trailers, or in the headers of an answer without a
    /// body.
    pub(crate) fn grpc_status(&mut self, headers: &HeaderMap) {
        if let Some(open) = self.open.as_mut().filter(|_| cfg!(feature = "tonic")) {
            if let Some(status) = headers.get("grpc-status") {
                let number = status.to_str().ok().and_then(|status| status.parse().ok());
                open.grpc = Some(number.unwrap_or(UNKNOWN));
            }
        }
    }

    /// A part of the body was sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            open.bytes = open.bytes.saturating_add(bytes);
        }
    }

    /// The request has ended.
    #[inline]
    pub(crate) fn end(&mut self, end: End) {
        if let Some(open) = self.open.take() {
            open.end(end);
        }
    }
}

impl<A: Admission> Open<A> {
    fn settings(&self) -> &Settings {
        self.limits.settings(self.is_shadow)
    }

    #[inline(never)]
    fn end(self, end: End) {
        let ended = Ended {
            status: self.status,
            headers: self.headers.as_deref(),
            extensions: Some(&self.extensions),
            bytes: self.bytes,
            grpc: self.grpc,
            end,
            ..Ended::default()
        };
        let settings = self.limits.settings(self.is_shadow);
        self.limits.admission.end(self.grant, ended, settings);
    }
}

impl<A: Admission> Drop for Ticket<A> {
    #[inline]
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
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
        f.debug_tuple("Ticket").field(&self.open.is_some()).finish()
    }
}
