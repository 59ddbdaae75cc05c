//! Limits of any kind behind one type.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tollgate_http::{Cause, Refusal};

use crate::admission::{Admission, Admit, Decide, Grant};
use crate::answered::Ended;
use crate::head::Head;
use crate::settings::Settings;

/// The limits of a [`RateLimitLayer`](crate::RateLimitLayer) whose kind its type does not say:
/// [`boxed`](crate::RateLimitLayer::boxed) makes it.
#[derive(Clone)]
pub struct BoxedLimits(Arc<dyn AnyLimits>);

impl BoxedLimits {
    pub(crate) fn new(limits: impl Admission) -> Self {
        Self(Arc::new(limits))
    }
}

impl fmt::Debug for BoxedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedLimits").finish_non_exhaustive()
    }
}

type AnyOutcome = Box<dyn Any + Send>;

/// [`Decide`], for a pointer.
trait AnyLimits: Send + Sync {
    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<BoxedLimits>;

    fn go_on(
        &self,
        outcome: AnyOutcome,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<BoxedLimits>;
}

impl<A: Admission> AnyLimits for A {
    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<BoxedLimits> {
        boxed(Decide::admit(self, head, settings, patience, has_place))
    }

    fn go_on(
        &self,
        outcome: AnyOutcome,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<BoxedLimits> {
        match outcome.downcast() {
            Ok(outcome) => boxed(Decide::go_on(
                self, *outcome, head, settings, patience, has_place,
            )),
            // Unreachable: the outcome is that of these limits.
            Err(_) => settings.refuse(head, &Refusal::new(Cause::Misconfigured)),
        }
    }
}

fn boxed<A: Admission>(decided: Admit<A>) -> Admit<BoxedLimits> {
    match decided {
        Admit::Free => Admit::Free,
        Admit::Granted(grant) => Admit::Granted(any(grant)),
        Admit::Delayed(grant, delay) => Admit::Delayed(grant.map(any), delay),
        Admit::MustWait => Admit::MustWait,
        Admit::Retry(wait, place) => Admit::Retry(wait, place),
        Admit::Pending(pending) => Admit::Pending(any_outcome(pending)),
        Admit::Refused(response) => Admit::Refused(response),
        Admit::Untold => Admit::Untold,
    }
}

fn any(grant: impl Grant + Send + 'static) -> Box<dyn AnyGrant> {
    Box::new(grant)
}

type AnyPending = Pin<Box<dyn Future<Output = AnyOutcome> + Send>>;

fn any_outcome<T: Send + 'static>(pending: impl Future<Output = T> + Send + 'static) -> AnyPending {
    Box::pin(async { Box::new(pending.await) as AnyOutcome })
}

impl Admission for BoxedLimits {}

impl Decide for BoxedLimits {
    type Grant = Box<dyn AnyGrant>;
    type Outcome = AnyOutcome;
    type Pending = AnyPending;

    fn admit(
        &self,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        self.0.admit(head, settings, patience, has_place)
    }

    fn go_on(
        &self,
        outcome: AnyOutcome,
        head: Head<'_>,
        settings: &Settings,
        patience: Option<Duration>,
        has_place: bool,
    ) -> Admit<Self> {
        self.0.go_on(outcome, head, settings, patience, has_place)
    }
}

/// [`Grant`], for a pointer.
pub trait AnyGrant: Send {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap);
    fn needs_end(&self) -> bool;
    fn reads_headers(&self, settings: &Settings) -> bool;
    fn end(self: Box<Self>, ended: Ended<'_>, settings: &Settings);
    fn cancel(self: Box<Self>);
}

impl<G: Grant + Send> AnyGrant for G {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        Grant::write(self, settings, headers);
    }

    fn needs_end(&self) -> bool {
        Grant::needs_end(self)
    }

    fn reads_headers(&self, settings: &Settings) -> bool {
        Grant::reads_headers(self, settings)
    }

    fn end(self: Box<Self>, ended: Ended<'_>, settings: &Settings) {
        Grant::end(*self, ended, settings);
    }

    fn cancel(self: Box<Self>) {
        Grant::cancel(*self);
    }
}

impl Grant for Box<dyn AnyGrant> {
    fn write(&self, settings: &Settings, headers: &mut HeaderMap) {
        (**self).write(settings, headers);
    }

    fn needs_end(&self) -> bool {
        (**self).needs_end()
    }

    fn reads_headers(&self, settings: &Settings) -> bool {
        (**self).reads_headers(settings)
    }

    fn end(self, ended: Ended<'_>, settings: &Settings) {
        AnyGrant::end(self, ended, settings);
    }

    fn cancel(self) {
        AnyGrant::cancel(self);
    }
}
