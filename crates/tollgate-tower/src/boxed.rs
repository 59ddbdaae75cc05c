//! Limits of any kind behind one type.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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

    fn needs_end(&self, grant: &dyn AnyGrant) -> bool;
    fn reads_headers(&self, grant: &dyn AnyGrant, settings: &Settings) -> bool;
    fn end(&self, grant: Box<dyn AnyGrant>, ended: Ended<'_>, settings: &Settings);
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

    // The grant is always one of these limits.
    fn needs_end(&self, grant: &dyn AnyGrant) -> bool {
        let grant = grant.as_any().downcast_ref();
        grant.is_some_and(|grant| Decide::needs_end(self, grant))
    }

    fn reads_headers(&self, grant: &dyn AnyGrant, settings: &Settings) -> bool {
        let grant = grant.as_any().downcast_ref();
        grant.is_some_and(|grant| Decide::reads_headers(self, grant, settings))
    }

    fn end(&self, grant: Box<dyn AnyGrant>, ended: Ended<'_>, settings: &Settings) {
        if let Ok(grant) = grant.into_any().downcast() {
            Decide::end(self, *grant, ended, settings);
        }
    }
}

fn boxed<A: Admission>(decided: Admit<A>) -> Admit<BoxedLimits> {
    match decided {
        Admit::Free => Admit::Free,
        Admit::Said(values) => Admit::Said(values),
        Admit::Granted(grant, values) => Admit::Granted(any(grant), values),
        Admit::Delayed(grant, values, delay) => Admit::Delayed(grant.map(any), values, delay),
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

    fn needs_end(&self, grant: &Self::Grant) -> bool {
        self.0.needs_end(&**grant)
    }

    fn reads_headers(&self, grant: &Self::Grant, settings: &Settings) -> bool {
        self.0.reads_headers(&**grant, settings)
    }

    fn end(&self, grant: Self::Grant, ended: Ended<'_>, settings: &Settings) {
        self.0.end(grant, ended, settings);
    }
}

/// [`Grant`], for a pointer.
pub trait AnyGrant: Any + Send {
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn cancel(self: Box<Self>);
}

impl<G: Grant + Send + 'static> AnyGrant for G {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn cancel(self: Box<Self>) {
        Grant::cancel(*self);
    }
}

impl Grant for Box<dyn AnyGrant> {
    fn cancel(self) {
        AnyGrant::cancel(self);
    }
}
